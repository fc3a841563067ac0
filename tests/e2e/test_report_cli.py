"""``triage report`` as a user runs it: a child process, real files, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from running_cli import triage
from unit.report.samples import hostile, range_overflow, write_case


def report(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return triage("report", *words, cwd=cwd)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    write_case(range_overflow(), tmp_path / "triage-case")
    return tmp_path


def test_without_arguments_the_default_case_is_shown(case: Path) -> None:
    done = report(cwd=case)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "range-overflow" in text
    assert "\x1b" not in text
    assert text.splitlines()[-2].startswith("  1. triage debug precision")


@pytest.mark.lengthy
def test_formats_go_where_they_belong(case: Path) -> None:
    assert report("--format", "html", cwd=case).stdout.split() == ["wrote", "triage-case/report.html"]
    assert (case / "triage-case" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert report("-f", "markdown", cwd=case).stdout.startswith("## range-overflow")
    assert report("-o", "issue.md", cwd=case).returncode == 0
    assert (case / "issue.md").read_text(encoding="utf-8").startswith("## range-overflow")
    assert report("-f", "html", "-o", "-", cwd=case).stdout.startswith("<!doctype html>")
    assert report("-f", "model-explorer", "-o", "m.json", cwd=case).returncode == 0
    assert json.loads((case / "m.json").read_text(encoding="utf-8"))["results"]


def test_json_is_one_document_on_stdout_and_text_goes_to_stderr(case: Path) -> None:
    alone = report("--json", cwd=case)
    assert json.loads(alone.stdout)["format"] == "tensortriage.report/1"
    assert alone.stderr == ""
    both = report("--json", "-o", "x.html", cwd=case)
    assert json.loads(both.stdout) == json.loads(alone.stdout)
    assert both.stderr.split() == ["wrote", "x.html"]


@pytest.mark.lengthy
def test_hostile_names_in_a_poor_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_case(hostile(), tmp_path)
    for name, value in {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    done = report(str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    markdown = report(str(tmp_path), "-f", "markdown", cwd=tmp_path)
    assert "名前" in markdown.stdout


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["nowhere"], "case-missing"),
        (["empty"], "verdict-missing"),
        (["damaged"], "json-invalid"),
        (["-f", "pdf"], "report-format-unknown"),
        (["-o", "x.pdf"], "report-format-unknown"),
        (["-o", "no/such/place.html"], "file-unwritable"),
        (["--colour"], "usage"),
    ],
)
def test_what_cannot_be_done_is_one_error_block(case: Path, arguments: list[str], slug: str) -> None:
    for name in ("empty", "damaged"):
        (case / name).mkdir()
    (case / "damaged" / "verdict.json").write_bytes(b"\xff\xfe{")
    done = report(*arguments, cwd=case)
    assert done.returncode == 2
    assert done.stdout == ""
    error, cure = done.stderr.splitlines()
    assert error.startswith(f"triage: error[{slug}]: ")
    assert cure.startswith("  cure: ")


def test_a_closed_pipe_is_no_error(case: Path) -> None:
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'"{sys.executable}" -c "from tensortriage.cli import main; main()" report --json | head -c 10',
        ],
        cwd=case,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
