"""Lint findings as text and as Polygraphy's JSON."""

import json

from tensortriage.model.lint.finding import LintFinding, Severity
from tensortriage.report.terminal.lines import plain
from tensortriage_polygraphy.lint.lint_text import closing_line, finding_lines, polygraphy_report


def hint(number, why="it may overflow", **given):
    fields = {"value": "", "where": "", "cure": "use fp32", **given}
    return LintFinding(
        "some-trap", Severity.HINT, f"n{number}", "Pow", fields["value"], fields["where"], why, fields["cure"]
    )


REFUSED = LintFinding("engine-refuses", Severity.EXCEPTION, "b\x1b[2J", "No", "", "", "no No", "", "onnxruntime")


def texts(findings):
    return list(map(plain, finding_lines(findings)))


def test_paragraphs():
    assert texts([REFUSED, *map(hint, range(5))]) == [
        "exception[engine-refuses]",
        "  No 'b\\x1b[2J': no No",
        "hint[some-trap], 5 times",
        "  Pow 'n0': it may overflow",
        "  Pow 'n1'",
        "  Pow 'n2'",
        "  ... and 2 more: --json has them all",
        "  cure: use fp32",
    ]


def test_places():
    assert texts([hint(0, value="w", where="if/then")])[1] == "  Pow 'n0', value 'w', in if/then: it may overflow"
    whole = LintFinding("onnx-checker", Severity.EXCEPTION, "", "", "", "", "bad model", "")
    assert texts([whole]) == ["exception[onnx-checker]", "  bad model"]


def test_closing():
    line = closing_line([REFUSED, hint(1)], target="onnxruntime", formats=("fp16",), passing=1, failing=1, skipped=3)
    assert line == "1 exception, 0 problems, 1 hint; meant for fp16; onnxruntime runs 1 of 5 nodes"
    assert closing_line([], target="", formats=(), passing=0, failing=0, skipped=0) == (
        "0 exceptions, 0 problems, 0 hints"
    )


def test_polygraphys_report():
    problem = LintFinding("scale-not-positive", Severity.PROBLEM, "", "", "s", "", "scale is 0", "calibrate")
    document = json.loads(polygraphy_report([REFUSED, problem, hint(0)], passing=["b", "a"], failing=["c"]))
    assert document == {
        "summary": {"passing": ["a", "b"], "failing": ["c"]},
        "lint_entries": [
            {"level": "exception", "source": "onnxruntime", "message": "no No", "nodes": ["b\x1b[2J"]},
            {"level": "warning", "source": "rule", "message": "scale-not-positive: scale is 0"},
            {"level": "info", "source": "rule", "message": "some-trap: it may overflow", "nodes": ["n0"]},
        ],
    }
