"""``triage debug build`` and what reads its files, end to end: an engine that draws its tactics, one of them faulty."""

import json
import sys

import pytest

from running_cli import EXAMPLES, triage

ENGINE = "script:varying.py,node=/block2/conv1/Conv,kind=scale,tactics=2,draws=n"
MODEL, INPUTS = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "varying.py").write_text("from tensortriage_testing import VaryingEngine as Engine\n")
    return tmp_path


def build(folder, *words, engine=ENGINE):
    return triage("debug", "build", MODEL, "--target", engine, *words, cwd=folder)


def test_the_guilty_tactic_is_named_confirmed_and_avoided(folder):
    done = build(folder, "--inputs", INPUTS, "--json", "--save-tactics", "good.json")
    assert done.returncode == 0, done.stderr
    study = json.loads(done.stdout)
    assert study["format"] == "tensortriage.builds/1"
    assert study["good"] >= 1 <= study["bad"]
    (guilty,) = study["blame"]["guilty"]
    assert (guilty["layer"], guilty["bad"]["tactic"], guilty["good"]["tactic"]) == ("/block2/conv1/Conv", "0x0", "0x1")
    assert study["blame"]["cured"] is True
    assert study["pinned"]["same_outputs"] is study["pinned"]["again_same"] is True
    assert "guilty: layer '/block2/conv1/Conv'" in done.stderr

    again = build(folder, "--inputs", INPUTS, "--json", "--save-tactics", "good.json")
    assert json.loads(again.stdout)["trials"] == study["trials"], "a rerun asks nothing again"

    diff = triage("inspect", "diff-tactics", "--dir", "triage-case", "--json", cwd=folder)
    assert diff.returncode == 1
    only_bad = {(one["layer"], one["choice"]) for one in json.loads(diff.stdout)["only_bad"]}
    assert ("/block2/conv1/Conv", "tactic_0 0x0") in only_bad

    shown = triage("inspect", "tactics", "good.json", cwd=folder)
    assert shown.returncode == 0
    assert "/block2/conv1/Conv" in shown.stdout

    given = triage(
        "run", MODEL, "--target", f"{ENGINE},load_tactics=good.json", "--inputs", INPUTS, "--json", cwd=folder
    )
    assert given.returncode == 0, given.stderr


@pytest.mark.lengthy
def test_a_command_judges_and_artifacts_are_sorted(folder):
    check = [sys.executable, "-c", "import json,sys; rows=json.load(open('t.json'))['choices']; "
             "sys.exit(any(r['layer'] == '/fc/Gemm' and r['tactic'] == '0x1' for r in rows))"]  # fmt: skip
    done = build(folder, "--save-tactics", "t.json", "--until", "6", "--no-pin", "--artifacts", "t.json",
                 "--json", "--check", *check)  # fmt: skip
    assert done.returncode == 0, done.stderr
    study = json.loads(done.stdout)
    assert study["good"] + study["bad"] == 6
    assert study["good"] >= 1 <= study["bad"]
    kept = folder / "polygraphy_artifacts"
    assert (len(list((kept / "good").iterdir())), len(list((kept / "bad").iterdir()))) == (study["good"], study["bad"])
    assert (study["suspects"][0]["layer"], study["suspects"][0]["choice"]) == ("/fc/Gemm", "tactic_1 0x1")


@pytest.mark.lengthy
def test_an_edited_check_is_asked_anew_and_what_it_writes_does_not_matter(folder):
    (folder / "log").write_text("")
    bad = []
    for judge in ("exit 0", "exit 0", "exit 1"):
        (folder / "check.sh").write_text(f"echo asked >> $1; {judge}\n")
        done = build(folder, "--until", "2", "--no-pin", "--json", "--check", "sh", "check.sh", "log")
        bad.append((json.loads(done.stdout)["bad"], len((folder / "log").read_text().split())))
    assert bad == [(0, 2), (0, 2), (2, 4)]


@pytest.mark.lengthy
def test_as_polygraphy_in_one_build_each(folder):
    """What Polygraphy 0.53.6 prints and sorts: one build until good, and one until bad."""
    for until, check, words in (("good", "true", "Passed: 1/1 | Pass Rate: 100.0%"),
                                ("bad", "false", "Passed: 0/1 | Pass Rate: 0.0%")):  # fmt: skip
        done = triage("polygraphy", "debug", "build", MODEL, "--target", ENGINE, "--save-tactics=replay.json",
                      "--artifacts-dir", "sorted", f"--until={until}", "--artifacts", "replay.json",
                      "--check", check, cwd=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"Finished 1 iteration(s) | {words}" in done.stdout
    kept = {word: [path.name[:7] for path in (folder / "sorted" / word).iterdir()] for word in ("good", "bad")}
    assert kept == {"good": ["replay_"], "bad": ["replay_"]}
    done = triage("polygraphy", "inspect", "diff-tactics", "--dir", "sorted", cwd=folder)
    assert done.returncode == 0, done.stderr  # there it tells, and never fails


@pytest.mark.lengthy
def test_builds_that_are_all_good(folder):
    done = build(folder, "--inputs", INPUTS, "--rate", "0.6", engine="script:varying.py,tactics=2,draws=n")
    assert done.returncode == 0, done.stderr
    assert "4 builds: 4 good, 0 bad" in done.stdout  # 0.4^4 = 0.026 <= 0.05 < 0.4^3
    assert "outputs: the same in every build" in done.stdout


def test_a_goal_out_of_reach_is_exit_code_4(folder):
    done = build(folder, "--inputs", INPUTS, "--until", "bad", "--max-builds", "2", "--no-pin",
                 engine="script:varying.py,tactics=2")  # fmt: skip
    assert done.returncode == 4
    assert "stopped at the maximum number of builds" in done.stdout


@pytest.mark.parametrize(
    ("words", "slug", "code"),
    [
        (["--until", "never"], "build-until-unknown", 2),
        (["--load-tactics", "none.json"], "tactics-unreadable", 2),
        (["--target", "nothing"], "engine-unknown", 2),
        (["--fp16"], "usage", 2),
    ],
)
def test_errors(folder, words, slug, code):
    done = build(folder, "--inputs", INPUTS, *words)
    assert done.returncode == code
    assert f"error[{slug}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.lengthy
def test_diff_needs_both_kinds(folder):
    (folder / "good").mkdir()
    (folder / "bad").mkdir()
    (folder / "good" / "x.engine").write_bytes(b"\x00\xff")
    done = triage("inspect", "diff-tactics", "--dir", ".", cwd=folder)
    assert done.returncode == 2
    assert "error[tactics-one-sided]" in done.stderr


@pytest.mark.lengthy
def test_diagnose_says_intermittent(folder):
    done = triage("diagnose", MODEL, "--inputs", INPUTS, "--target", ENGINE, "--builds", "4", "--json", cwd=folder)
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == "intermittent"
    assert verdict["next"][0].startswith("triage debug build")
    (step,) = [step for step in verdict["steps"] if step["question"] == "are the outputs equal from build to build?"]
    assert 0 < step["evidence"]["failing"] < step["evidence"]["builds"] == 5


@pytest.mark.lengthy
def test_diagnose_of_builds_that_are_alike(folder):
    done = triage("diagnose", MODEL, "--inputs", INPUTS, "--target", "script:varying.py,tactics=2", "--builds", "1",
                  "--json", cwd=folder)  # fmt: skip
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == "match"
    (step,) = [step for step in verdict["steps"] if step["question"] == "are the outputs equal from build to build?"]
    assert step["answer"].startswith("yes: the outputs of 2 builds are bit-equal")


def test_polygraphys_flags_stand_for_tensorrt(folder):
    """Neither TensorRT nor a driver is there in CI: which engine was meant is in the error."""
    done = triage("debug", "build", MODEL, "--fp16", "--until", "2", "--check", "true", cwd=folder)
    assert done.returncode == 3, done.stderr
    assert "engine 'tensorrt' cannot be used here" in done.stderr
    both = triage("debug", "build", MODEL, "--until", "2", "--inputs", INPUTS, cwd=folder)
    assert (both.returncode, "error[target-missing]" in both.stderr) == (2, True)
