"""What is wrong, read from documents: who is to blame, which output is worst, and by how many times its limit."""

import pytest

from tensortriage_fleet.findings.finding import findings_of

ORIGIN = {"module": "up", "module_class": "Upsample", "file": "/w/net.py", "line": 13}


def report(verdict="local-fault", *, lost=False, culprits=(), outputs=()):
    told = {"verdict": verdict, "summary": "it is wrong", "lost": lost, "culprits": list(culprits)}
    return {"format": "tensortriage.report/1", "verdict": told, "outputs": {"rows": list(outputs)}}


def output(name="y", *, error=0.28, limit=2e-5, nonfinite=0, within=False):
    return {
        "name": name, "within": within, "nonfinite_target": nonfinite, "figure": error, "relative_rms_error": error,
        "limit": limit,
    }  # fmt: skip


def culprit(node="/conv", **more):
    return {"node": node, "op_type": "Conv", "reason": f"{node} doubles", "origin": ORIGIN} | more


def test_a_diagnosis_blames_each_culprit_and_tells_the_worst_output():
    first, second = findings_of(
        report(culprits=[culprit(), culprit("/other")], outputs=[output("x", error=0.1), output()])
    )
    assert (first.rule, first.title, first.message) == ("local-fault", "local-fault at Conv '/conv'", "it is wrong")
    assert second.message == "/other doubles"
    assert first.details == ("output 'y': 14,000x its limit", "op Conv '/conv'", "module up (Upsample)")
    assert (first.file, first.line, first.is_sure) == ("/w/net.py", 13, True)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (output(limit=0.28), "output 'y'"),  # rounding predicts all of it: that is what it does, and no limit
        (output(error="NaN"), "output 'y'"),
        (output(limit=None), "output 'y'"),
        (output(nonfinite=3), "output 'y'"),
        (output(error=None), "output 'y'"),
    ],
)
def test_where_no_limit_says_it_no_ratio_is_told(row, words):
    (found,) = findings_of(report("range-overflow", outputs=[row]))
    assert found.output_words == words


@pytest.mark.parametrize(
    ("verdict", "lost", "sure"),
    [("match", False, []), ("rounding", False, []), ("rounding", True, [True]), ("inconclusive", False, [False]),
     ("of-a-newer-version", False, [True])],
)  # fmt: skip
def test_what_ended_well_has_no_findings_and_what_stayed_open_is_not_sure(verdict, lost, sure):
    assert [found.is_sure for found in findings_of(report(verdict, lost=lost))] == sure


def row(value, ratio, *, within=False, **more):
    judgement = {"within": within, "ratio": ratio, "limit": "noise floor 1e-06"}
    made = {"value": value, "node": "/fc", "op_type": "Gemm", "module": "fc (Linear, net.py:3)", "figure": 0.5}
    return made | {"measure": "relative RMS error", "judgement": judgement} | more


def run(*rows, **more):
    compared = [{"comparison": {"rows": [one]}} for one in rows]
    return {"format": "tensortriage.run/1", "outcomes": {}, "comparisons": compared} | more


def test_a_run_tells_each_output_beyond_its_limit_once_and_the_worst_of_it():
    found = findings_of(run(row("y", 3.0), row("x", "Infinity"), row("y", 14000.0), row("z", 0.5, within=True)))
    assert [(one.output, one.ratio_words) for one in found] == [("y", "14,000x"), ("x", "")]
    assert found[0].details == (
        "output 'y': 14,000x its limit", "made by Gemm '/fc'", "module fc (Linear, net.py:3)"
    )  # fmt: skip
    assert "'y' is beyond its limit (noise floor 1e-06): relative RMS error 0.5" in found[0].message


def test_a_run_that_failed_otherwise_says_how():
    wrong = {"value": "h", "node": "/mul", "op_type": "Mul", "limit": "1e-06"}
    told = findings_of(
        run(
            outcomes={"onnxruntime": {"kind": "ok", "message": ""}, "x": {"kind": "build-failed", "message": "no Pad"}},
            disagreements=[wrong],
            invalid=[{"participant": "x", "output": "y", "nan": 2, "inf": 0}],
            unevaluated="too large",
        )
    )
    assert [(found.rule, found.is_sure) for found in told] == [
        ("build-failed", True), ("reference-wrong", True), ("invalid-output", True), ("no-limit", False)
    ]  # fmt: skip
    assert told[1].op == "Mul '/mul'"


def test_errors_and_lint_name_their_rule():
    (error,) = findings_of({"format": "tensortriage.error/1", "slug": "s", "message": "m", "cure": "c"})
    assert (error.rule, error.message) == ("s", "m. c")
    base = {"slug": "r", "node": "/n", "op_type": "Cast", "value": "", "why": "w", "cure": "c", "origin": ORIGIN}
    (found,) = findings_of(
        {"format": "tensortriage.lint/1", "findings": [base | {"severity": "problem"}, base | {"severity": "hint"}]}
    )
    assert (found.title, found.message, found.line) == ("r at Cast '/n'", "w: c", 13)


def test_steps_blame_the_op_of_the_first_wrong_step():
    rows = [{"values": []}, {"values": [{"value": "logits", "ratio": 5.0}, {"value": "logits", "ratio": "Infinity"}]}]
    blamed = {"node": "/cat", "op_type": "Concat", "module": "layers.0"}
    told = {"format": "tensortriage.steps/1", "verdict": "fault", "summary": "s", "first": 1, "value": "logits"}
    (found,) = findings_of(told | {"rows": rows, "diagnosis": blamed})
    assert (found.title, found.output_words) == ("fault at step 1, Concat '/cat'", "output 'logits'")
    assert findings_of(told | {"verdict": "drift"}) == ()
    (unsure,) = findings_of(told | {"verdict": "inconclusive", "first": None, "rows": [], "diagnosis": None})
    assert (unsure.title, unsure.is_sure) == ("inconclusive", False)


def test_an_engine_that_contradicts_itself_is_told_by_relation():
    answer = {"relation": "equal-rows", "question": "same?", "answer": "no: 3 %", "node": "/n", "op_type": "Gemm"}
    answers = [answer | {"outcome": "broken", "parting": {"value": "y"}}, answer | {"outcome": "holds"}]
    (found,) = findings_of({"format": "tensortriage.consistency/1", "answers": answers})
    assert (found.rule, found.message, found.details) == ("equal-rows", "same? no: 3 %", ("output 'y'", "op Gemm '/n'"))


def test_other_documents_tell_nothing():
    assert findings_of({}) == findings_of({"format": "tensortriage.plan/1"}) == ()
