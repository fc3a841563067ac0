"""A batch as a page and as XML: all of it is there, and nothing in a name can act."""

import re
import xml.etree.ElementTree as ElementTree

from tensortriage_fleet.batch.batch_result import BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.batch.batch_text import cell_line, closing_lines
from tensortriage_fleet.batch.junit import junit
from tensortriage_fleet.batch.overview import render_overview, tables

HOSTILE = "</td><script>alert(1)</script>\x1b[2J\u202e&'\""


def cell(model="net", feed="real", target="fp16", command="run", outcome=CellOutcome.AS_EXPECTED, **more):
    given = {"expected": "nothing wrong", "ending": CellEnding(0, 1.5, summary="fine"), "line": "triage run net.onnx"}
    return CellResult(
        f"{model} / {feed} / {target} / {command}", model, feed, target, command, outcome, **(given | more)
    )


def batch(*cells):
    return BatchResult("release.yaml", cells, 3.0, "2026-01-01T00:00:00+00:00", {"numpy": "2"})


BAD = cell(target="bf16", outcome=CellOutcome.UNEXPECTED, reason=HOSTILE, ending=CellEnding(1, 2.0, HOSTILE, HOSTILE),
           report="cells/x/case/report.html")  # fmt: skip
CRASHED = cell(target="int8", outcome=CellOutcome.UNEXPECTED, reason="killed", ending=CellEnding(-9, 1.0))
SKIPPED = cell(target="tf32", outcome=CellOutcome.SKIPPED, reason="later", ending=None)


def test_junit_counts_failures_errors_and_skipped():
    suite = ElementTree.fromstring(junit(batch(cell(), BAD, CRASHED, SKIPPED))).find("testsuite")
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1", "time": "4.500"
    }  # fmt: skip
    assert [child.tag for case in suite for child in case if child.tag != "system-out"] == [
        "failure",
        "error",
        "skipped",
    ]
    assert "\\x1b[2J" in suite.find("testcase/failure").get("message")


def test_lone_surrogates_and_control_characters_are_no_trouble_for_xml():
    ElementTree.fromstring(junit(batch(cell(model="\ud800\x00\ufffe"))).encode())


def test_the_page_escapes_what_it_shows_and_runs_nothing():
    page = render_overview(batch(cell(model=HOSTILE), BAD, SKIPPED))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "script-src" not in page
    assert "default-src &#39;none&#39;" in page
    assert 'href="cells/x/case/report.html"' in page
    assert "1 cell not as expected" in page


def test_a_sentence_stands_on_the_page_once():
    said = "1 of 1 tensor outside the limit"
    failed = cell(
        outcome=CellOutcome.UNEXPECTED, reason=f"a problem (expected: nothing wrong): {said}",
        ending=CellEnding(1, 2.0, summary=said),
    )  # fmt: skip
    page = render_overview(batch(failed, cell(target="bf16")))
    assert page.count(said) == 1
    assert page.count("(expected: nothing wrong)") == 1
    assert "exit code 1" in page


def test_what_is_crossed_is_a_table():
    found = tables([cell(), cell(target="bf16"), cell(model="other"), cell(feed="", target="", command="lint")])
    assert found[0].columns == [("fp16", "run"), ("bf16", "run")]
    assert [(row.model, [c is not None for c in row.cells]) for row in found[0].rows] == [
        ("net", [True, True]), ("other", [True, False])
    ]  # fmt: skip
    assert found[1].columns == [("", "lint")]


def test_exit_codes():
    assert batch(cell(), SKIPPED).exit_code == 0
    assert batch(cell(), BAD).exit_code == 1
    assert batch(SKIPPED).exit_code == 1  # nothing ran: nothing is shown
    assert batch(cell(), cell(outcome=CellOutcome.NOT_RUN, ending=None)).exit_code == 1


def test_lines():
    assert cell_line(cell()) == "ok       net / real / fp16 / run: fine (1.5 s)"
    assert re.match(r"FAILED +net / real / bf16 / run: .*alert", cell_line(BAD))
    assert "\x1b" not in cell_line(BAD)
    lines = list(closing_lines(batch(cell(kept=True), BAD, SKIPPED)))
    assert lines[0] == "3 cells: 1 ok, 1 FAILED, 1 skipped; 3.0 s, 1 known from earlier"
    assert lines[2].strip() == "triage run net.onnx"
