"""``triage report`` as a user runs it: a child process, real files, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unit.report.samples import hostile, range_overflow, write_case


def triage(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", "report", *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def case(tmp_path: Path) -> Path:
    write_case(range_overflow(), tmp_path / "triage-case")
    return tmp_path


def test_without_arguments_the_default_case_is_shown(case: Path) -> None:
    done = triage(cwd=case)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "range-overflow" in text
    assert "\x1b" not in text
    assert text.splitlines()[-2].startswith("  1. triage debug precision")


@pytest.mark.lengthy
def test_formats_go_where_they_belong(case: Path) -> None:
    assert triage("--format", "html", cwd=case).stdout.decode().split() == ["wrote", "triage-case/report.html"]
    assert (case / "triage-case" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert triage("-f", "markdown", cwd=case).stdout.startswith(b"## range-overflow")
    assert triage("-o", "issue.md", cwd=case).returncode == 0
    assert (case / "issue.md").read_text(encoding="utf-8").startswith("## range-overflow")
    assert triage("-f", "html", "-o", "-", cwd=case).stdout.startswith(b"<!doctype html>")
    assert triage("-f", "model-explorer", "-o", "m.json", cwd=case).returncode == 0
    assert json.loads((case / "m.json").read_text(encoding="utf-8"))["results"]


def test_json_is_one_document_on_stdout_and_text_goes_to_stderr(case: Path) -> None:
    alone = triage("--json", cwd=case)
    assert json.loads(alone.stdout)["format"] == "tensortriage.report/1"
    assert alone.stderr == b""
    both = triage("--json", "-o", "x.html", cwd=case)
    assert json.loads(both.stdout) == json.loads(alone.stdout)
    assert both.stderr.decode().split() == ["wrote", "x.html"]


@pytest.mark.lengthy
def test_hostile_names_in_a_poor_locale(tmp_path: Path) -> None:
    write_case(hostile(), tmp_path)
    done = triage(str(tmp_path), cwd=tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    markdown = triage(str(tmp_path), "-f", "markdown", cwd=tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert "名前" in markdown.stdout.decode("utf-8")


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
    done = triage(*arguments, cwd=case)
    assert done.returncode == 2
    assert done.stdout == b""
    error, cure = done.stderr.decode().splitlines()
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
