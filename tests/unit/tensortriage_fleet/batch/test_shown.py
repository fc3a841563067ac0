"""A batch once more, in every format, and what a job of GitHub is told."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import documents
from tensortriage.errors import UsageError
from tensortriage.values.serial import dump, to_plain
from tensortriage_fleet.batch import junit
from tensortriage_fleet.batch.batch_result import BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.batch.shown import ShownBatch, summary
from tensortriage_fleet.findings import github, sarif
from tensortriage_fleet.findings.finding import Finding

FOUND = Finding("local-fault", "local-fault at Conv '/conv'", "it doubles", "y", 14000.0, "/conv", "Conv", "up (Up)")


def cell(target, outcome=CellOutcome.AS_EXPECTED, ending=None, **more):
    given = {"expected": "nothing wrong", "line": f"triage run net.onnx --target {target}", "file": "net.onnx"}
    ending = ending or CellEnding(0, 1.0, summary="fine")
    return CellResult(f"net / {target}", "net", "real", target, "run", outcome, ending=ending, **(given | more))


ENDING = CellEnding(1, 1.0, "local-fault", "it doubles", "/conv", (FOUND,))
REASON = "local-fault at /conv (expected: nothing wrong): it doubles"
BAD = cell("bf16", CellOutcome.UNEXPECTED, ENDING, reason=REASON, report="cells/x/case/report.html")
OTHERWISE = cell("fp16", CellOutcome.UNEXPECTED, reason="match (expected: rounding)", expected="rounding")
RESULT = BatchResult("zoo/release.yaml", (cell("fp32"), BAD, OTHERWISE), 3.0, "2026-01-01T00:00:00+00:00")


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (tmp_path / "triage-batch").mkdir()
    dump(RESULT, tmp_path / "triage-batch/batch.json")
    return Path("triage-batch")


def test_a_batch_is_read_back_as_it_was_and_is_as_its_schema_says(case):
    shown = ShownBatch(case)
    document = json.loads(shown.render("json"))
    assert document == to_plain(RESULT)
    documents.check(document, "the batch")


def test_every_format_tells_what_failed(case):
    shown = ShownBatch(case)
    assert "FAILED   net / bf16: local-fault at /conv" in shown.render("console")
    assert "<!doctype html>" in shown.render("html")
    document = json.loads(shown.render("json"))
    first, second = github.render(document, case).splitlines()
    assert first.startswith("::error file=zoo/net.onnx,title=net / bf16%3A local-fault at Conv '/conv'::it doubles%0A")
    assert "output 'y': 14,000x its limit" in first
    assert "match (expected: rounding)%0Aexpected: rounding" in second
    results = json.loads(sarif.render(document, case))["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["local-fault", "unexpected"]
    tests = ElementTree.fromstring(junit.render(document, case))
    failure = next(tests.iter("failure"))
    assert failure.get("type") == "local-fault"
    assert "; output 'y': 14,000x its limit; op Conv '/conv'; module up (Up)" in failure.get("message")
    assert next(tests.iter("testcase")).get("file") == "zoo/net.onnx"
    assert "report: triage-batch/cells/x/case/report.html" in first
    with pytest.raises(UsageError, match="this case is a batch"):
        shown.render("model-explorer")


def test_the_summary_has_a_row_for_each_cell_that_failed():
    text = summary(RESULT)
    assert text.startswith("**3 cells: 1 ok, 2 FAILED**")
    assert "| net / bf16 | `y` | 14,000x | `Conv '/conv'` | `up (Up)` | nothing wrong |" in text
    assert "triage run net.onnx --target bf16" in text
    assert "all as expected" in summary(BatchResult("release.yaml", (cell("fp32"),), 1.0))


def test_github_is_told_where_it_is_there(case, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(case / "summary.md"))
    document = to_plain(RESULT)
    github.tell(document, case, "page", err=False)
    assert (capsys.readouterr().out, (case / "summary.md").exists()) == ("", False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    github.tell(document, case, summary(RESULT), err=True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("::error ")) == ("", 2)
    assert (case / "summary.md").read_text() == summary(RESULT) + "\n"
