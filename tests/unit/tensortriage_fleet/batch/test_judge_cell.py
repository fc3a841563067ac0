"""Is a cell as expected, and what does its document say?"""

import json

import pytest

from tensortriage.runs.commands.process import Finished
from tensortriage.runs.commands.transcript import Printed
from tensortriage_fleet.batch.batch_file import Expectation
from tensortriage_fleet.batch.batch_result import CellEnding
from tensortriage_fleet.batch.judge_cell import ending_of, expected_words, misfit

OVERFLOW = CellEnding(1, 0.0, "range-overflow", "too large", "/Pow")


@pytest.mark.parametrize(
    ("rule", "ending", "reason"),
    [
        (None, CellEnding(0, 0.0), ""),
        (None, CellEnding(1, 0.0), "a problem (expected: nothing wrong)"),
        (None, OVERFLOW, "range-overflow at /Pow (expected: nothing wrong): too large"),
        (Expectation(verdict="range-overflow"), OVERFLOW, ""),
        (Expectation(verdict=("match", "rounding")), OVERFLOW, "range-overflow at /Pow (expected: match or rounding)"),
        (Expectation(verdict="match"), CellEnding(2, 0.0, "model-missing"), "model-missing (expected: match)"),
        (Expectation(culprit="*Pow"), OVERFLOW, ""),
        (Expectation(verdict="range-overflow", culprit="/Add"), OVERFLOW, "culprit /Pow (expected: /Add)"),
        (Expectation(match=False), CellEnding(1, 0.0), ""),
        (Expectation(match=True), CellEnding(1, 0.0), "a problem (expected: nothing wrong)"),
        (Expectation(match=False), CellEnding(4, 0.0), "no answer (expected: a problem)"),
        (Expectation(exit=(2, 3)), CellEnding(3, 0.0), ""),
        (Expectation(exit=2), CellEnding(0, 0.0), "nothing wrong (expected: bad input)"),
        (Expectation(exit=0), CellEnding(None, 1.0, summary="took too long"), "took too long"),
        (Expectation(match=False), CellEnding(-9, 1.0, summary="killed by SIGKILL"), "killed by SIGKILL"),
    ],
)
def test_what_is_not_as_expected_says_why(rule, ending, reason):
    assert misfit(rule, ending) == reason


def test_what_is_expected_in_words():
    assert expected_words(None) == "nothing wrong"
    assert expected_words(Expectation(verdict="match", culprit="x", atol=1e-3)) == "match, culprit x, atol 0.001"
    assert expected_words(Expectation(skip="later")) == "skipped"


def row(*, within, figure, value="y", ratio=0.0):
    judgement = {"within": within, "ratio": ratio, "limit": "noise floor"}
    return {
        "value": value,
        "node": "/fc",
        "op_type": "Gemm",
        "measure": "rms",
        "judgement": judgement,
        "figure": figure,
    }


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"format": "tensortriage.error/1", "slug": "s", "message": "m"}, ("s", "m", "")),
        (
            {
                "format": "tensortriage.report/1",
                "verdict": {"verdict": "v", "summary": "s", "culprits": [{"node": "n"}]},
            },
            ("v", "s", "n"),
        ),
        (
            {
                "format": "tensortriage.run/1",
                "outcomes": {"x": {"kind": "ok", "message": ""}},
                "comparisons": [
                    {
                        "comparison": {
                            "rows": [row(within=True, figure=9.0), row(within=False, figure=2.0, ratio=14000.0)]
                        }
                    },
                    {"comparison": {"rows": [row(within=False, figure=0.5, value="x", ratio=3.0)]}},
                ],
            },
            ("", "output 'y': 14,000x its limit (made by Gemm '/fc'); 2 of 3 tensors outside the limit", ""),
        ),
        (
            {
                "format": "tensortriage.run/1",
                "outcomes": {},
                "comparisons": [{"comparison": {"rows": [row(within=True, figure="NaN")]}}],
            },
            ("", "0 of 1 tensor outside the limit, largest figure NaN", ""),
        ),
        (
            {"format": "tensortriage.run/1", "comparisons": [], "outcomes": {"x": {"kind": "hang", "message": "slow"}}},
            ("", "hang on x: slow", ""),
        ),
        ({"format": "tensortriage.lint/1", "findings": [{"severity": "hint"}] * 2}, ("", "2 hints", "")),
        ({"format": "tensortriage.lint/1", "findings": []}, ("", "no findings", "")),
        ([], ("", "last words", "")),
    ],
)
def test_documents_in_one_sentence(tmp_path, document, said):
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    ending = ending_of(Finished(1, Printed("first\nlast words\n"), 2.0), path)
    assert (ending.verdict, ending.summary, ending.culprit) == said
    assert (ending.code, ending.seconds) == (1, 2.0)


@pytest.mark.parametrize(("code", "said"), [(None, "time limit"), (-11, "SIGSEGV"), (4, "no answer")])
def test_ends_without_a_document(tmp_path, code, said):
    assert said in ending_of(Finished(code, Printed(), 1.0), tmp_path / "none").summary
