"""``triage debug repeat`` end to end, in processes of their own."""

import json
import subprocess
import sys

import pytest

from running_cli import triage

FLAKY = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; echo run $n; test $((n % 4)) -ne 2"
"""Every fourth run fails, the third first."""


@pytest.mark.parametrize(
    ("words", "code", "runs"),
    [
        (["--until", "3", "--check", "true"], 0, 3),
        (["--until", "6", "--check", FLAKY], 1, 6),
        (["--until", "bad", "--check", FLAKY], 1, 3),
        (["--until", "good", "--check", "false", "--", "--max-runs", "4"], 1, 4),
        (["--check", "true"], 0, 16),
        (["--until", "2", "--fail-regex", "run 1", "--check", FLAKY], 1, 2),
        (["--until", "2", "--check-timeout", "0.2", "--check", "sleep", "60"], 4, 2),
    ],
)
def test_exit_code_and_number_of_runs(tmp_path, words, code, runs):
    done = triage("debug", "repeat", "--json", *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    result = json.loads(done.stdout)
    assert result["format"] == "tensortriage.repeat/1"
    assert result["passed"] + result["failed"] + result["unresolved"] == runs


@pytest.mark.lengthy
def test_artifacts_and_text(tmp_path):
    command = f"{FLAKY} && echo made > artifact.bin || (echo made > artifact.bin; false)"
    done = triage("debug", "repeat", "--until", "4", "--artifacts", "artifact.bin", "--check", command, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "4 runs, 3 passed, 1 failed" in done.stdout
    assert "failure rate 25 % of 4; between 5 % and 70 % with 95 % confidence" in done.stdout
    folder = tmp_path / "polygraphy_artifacts"
    assert (len(list((folder / "good").iterdir())), len(list((folder / "bad").iterdir()))) == (3, 1)
    assert "run 2" in done.stdout  # what the failing run printed
    assert "run 1\n" not in done.stdout


@pytest.mark.lengthy
def test_a_replay_is_used_again_for_the_same_check_only(tmp_path):
    words = ["debug", "repeat", "--until", "5"]
    first = triage(*words, "--save-debug-replay", "r.json", "--check", FLAKY, cwd=tmp_path)
    assert (tmp_path / "n").read_text().strip() == "5"
    again = triage(*words, "--load-debug-replay", "r.json", "--check", FLAKY, cwd=tmp_path)
    assert (tmp_path / "n").read_text().strip() == "5"
    assert (first.returncode, again.returncode) == (1, 1)
    assert (tmp_path / "r_skip_current.json").exists()
    other = triage(*words, "--load-debug-replay", "r.json", "--check", "true", cwd=tmp_path)
    assert other.returncode == 2
    assert "error[replay-foreign]" in other.stderr


@pytest.mark.lengthy
def test_without_check_a_person_is_asked(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", "debug", "repeat", "--until", "bad"],
        cwd=tmp_path, input="p\nwhat\npass\nf\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "3 runs, 2 passed, 1 failed" in done.stdout
    assert ">>> Did run 1 [p]ass, [f]ail, [q]uit?" in done.stderr


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--until", "never", "--check", "true"], "repeat-until-unknown"),
        (["--until", "0", "--check", "true"], "repeat-until-unknown"),
        (["--check", "no-such-program"], "check-program-missing"),
        (["--fail-code", "one", "--check", "true"], "check-code-invalid"),
        (["--fail-code", "1", "--ignore-fail-code", "2", "--check", "true"], "check-rules-conflict"),
        (["--fail-regex", "(", "--check", "true"], "check-pattern-invalid"),
        (["--load-debug-replay", "missing.json", "--check", "true"], "replay-unreadable"),
        (["--check"], "usage"),
    ],
)
def test_errors(tmp_path, words, slug):
    done = triage("debug", "repeat", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error[{slug}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.lengthy
def test_debug_of_the_check_is_its_own(tmp_path):
    done = triage("debug", "repeat", "--until", "1", "--show-output", "--check", "echo", "--debug", cwd=tmp_path)
    assert done.returncode == 0
    assert "--debug" in done.stdout
