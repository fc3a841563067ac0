import dataclasses
import math

import numpy as np
import pytest

from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.cuts import Cuts
from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.task_metric import SampleScore, TaskComparison
from tensortriage.report.run_result import CompareResult, Disagreement, FeedComparison, Invalid
from tensortriage.report.terminal.lines import plain
from tensortriage.report.terminal.run_text import (
    MOST_NAMES,
    MOST_ROWS,
    Shown,
    closing,
    comparison_lines,
    lost_to_format,
    rank,
    to_document,
)
from tensortriage.runs.outcome import Outcome, OutcomeKind
from tensortriage.values.serial import from_json


def row(name, ratio=0.5, error=0.001, *, basis=Basis.FLOOR, limit="floor", exact=False, **more):
    reference = np.arange(1, 9, dtype=np.int64 if exact else np.float32)
    metrics = measure(reference, (reference + (1 if exact else error)).astype(reference.dtype))
    if exact:
        more = {"measure": "share of unequal elements", "figure": error, **more}
    return Row(name, f"/{name}", "Conv", metrics, Judgement(ratio <= 1, limit, ratio, basis), **more)


def result(*rows, unmatched=(), paired=None, comparisons=None, **more):
    compared = Comparison("ref", "target", rows, unmatched, paired or {}) if rows else None
    given = {"reference": "ref", "targets": ("target",), "feeds": {"real[0]": "real"}, "observation": "deployed",
             "moved": {}, "comparisons": (FeedComparison("real[0]", compared),) if compared else (), "invalid": (),
             "task_metrics": {}, "outcomes": {}}  # fmt: skip
    return CompareResult(**(given | more | ({"comparisons": comparisons} if comparisons else {})))


def texts(found, width=100):
    return [plain(line) for line in comparison_lines(found, width)]


def styles(found):
    return {plain(line): line[0][1] for line in comparison_lines(found, 100) if not isinstance(line, str)}


def test_tensors_come_worst_first_with_their_figures():
    lines = texts(result(row("good"), row("bad", 3.0, 0.5)))
    assert lines[0] == "target against ref: deployed, 1 feed, 2 tensors, 1 beyond their limit"
    assert lines[1].split() == ["tensor", "op", "max", "abs", "rel.", "RMS", "SQNR", "dB", "of", "limit"]
    assert lines[2].split() == ["bad", "Conv", "0.5", "0.099", "20.1", "3x", "FAIL"]
    assert lines[3].split() == ["good", "Conv", "0.001", "0.000198", "74.1", "0.5x", "ok"]
    assert lines[4:] == [
        "  first beyond its limit in graph order: bad, Conv '/bad' (tensor 2 of 2)",
        "  limit: floor",
        "failed (0 builds in 0.0 s, 0 runs in 0.0 s)",
    ]


def test_failing_ones_are_first_whatever_their_ratio_and_nan_is_worst_of_all():
    ranked = [row("a", 0.9), row("b", 2.0), row("c", math.nan), row("d", 2.0, 0.5), row("e", 0.9, 0.5)]
    assert [each.value for each in sorted(ranked, key=rank)] == ["c", "d", "b", "e", "a"]


def test_exact_values_are_told_by_how_many_are_unequal():
    lines = texts(result(row("ids", 5.0, 1.0, exact=True), row("same", 0.0, 0.0, exact=True)))
    assert lines[2].split() == ["ids", "Conv", "1", "5x", "FAIL"]
    assert "  ids: 8 of 8 elements are unequal" in lines
    assert not [line for line in lines if line.startswith("  same:")]
    noted = texts(result(row("ids", 5.0, 1.0, exact=True, note="3 ranks differ")))
    assert "  ids: 3 ranks differ" in noted
    assert noted[2].split() == ["ids", "Conv", "5x", "FAIL"], "the largest error of an index says nothing"


def test_at_most_twelve_rows_are_listed_and_the_rest_counted():
    lines = texts(result(*[row(f"v{number:02}", ratio=number / 100) for number in range(MOST_ROWS + 3)]))
    listed = [line.split()[0] for line in lines if line.endswith("ok")]
    assert listed == [f"v{number:02}" for number in reversed(range(3, MOST_ROWS + 3))]
    assert "  ... and 3 tensors more within their limits: --all shows them" in lines


def test_failures_that_are_not_shown_are_called_so_and_the_first_of_the_graph_is_named():
    rows = [row("fine"), row("first", 2.0, module="net.a"), *[row(f"v{n:02}", 3.0 + n) for n in range(MOST_ROWS)]]
    lines = texts(result(*rows))
    assert not any(line.startswith("first ") for line in lines), "it is better than twelve others"
    assert "  ... and 2 tensors more, 1 of them beyond their limit: --all shows them" in lines
    assert "  first beyond its limit in graph order: first, Conv '/first', net.a (tensor 2 of 14)" in lines
    assert not any("first beyond" in line for line in texts(result(row("only", 2.0)))), "there is nothing to order"


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        (Shown("graph"), [f"v{n:02}" for n in range(1, 1 + MOST_ROWS)]),
        (Shown("graph", everything=True), [f"v{n:02}" for n in range(20)]),
        (Shown(), ["v07", "v04", *[f"v{n:02}" for n in (3, *range(5, 7), *range(8, 15))]]),
        (Shown(everything=True), ["v07", "v04", "v03", *[f"v{n:02}" for n in (5, 6, *range(8, 20), 0, 1, 2)]]),
    ],
)
def test_tensors_are_shown_in_the_order_that_was_asked_for(shown, names):
    ratios = {4: 5.0, 7: 9.0}
    rows = [row(f"v{n:02}", ratios.get(n, 2.0 if n > 2 else 0.5)) for n in range(20)]
    lines = [plain(line) for line in comparison_lines(result(*rows), 200, shown)]
    assert [line.split()[0] for line in lines if line.endswith(("ok", "FAIL"))] == names


def test_a_tensor_is_shown_once_on_the_feed_where_it_is_worst():
    found = result(row("a", 0.5), row("b", 0.6))
    again = dataclasses.replace(
        found.comparisons[0], feed="other", comparison=Comparison("ref", "target", (row("a", 7.0), row("b", 0.1)))
    )
    lines = texts(dataclasses.replace(found, comparisons=(*found.comparisons, again)))
    assert lines[0] == "target against ref: deployed, 2 feeds, 2 tensors, 1 beyond their limit"
    assert [line.split()[0] for line in lines if line.endswith(("ok", "FAIL"))] == ["a", "b"]
    assert [line.split()[-2] for line in lines if line.endswith(("ok", "FAIL"))] == ["7x", "0.6x"]


def test_what_could_not_be_compared_and_what_was_paired_is_said():
    names = tuple(f"n{number:02}" for number in range(MOST_NAMES + 2))
    lines = texts(result(row("a"), unmatched=names, paired={"a": "A"}, moved={"target": True, "ref": False}))
    assert f"  not compared, on one side only: {', '.join(names[:MOST_NAMES])} and 2 more" in lines
    assert "  paired by value, target's name first: A is a" in lines
    assert "  marking changed the model's own outputs on target" in lines
    assert "  marking did not change the model's own outputs on ref" in lines


def test_tensors_of_a_module_are_named_with_it():
    lines = texts(result(row("a", module="net.mlp"), row("b", 0.9, module="net.mlp"), row("c")))
    assert "  net.mlp: b, a" in lines


def test_one_limit_is_told_and_several_are_those_of_each_tensor():
    assert "  limit: abs <= 1" in texts(result(row("a", limit="abs <= 1"), row("b", limit="abs <= 1")))
    assert "  limit: the noise floor of each tensor" in texts(result(row("a", limit="1"), row("b", limit="2")))


def test_what_hardware_chooses_freely_is_counted_where_it_passes():
    found = result(row("a", basis=Basis.HARDWARE), row("b"), row("c", 2.0, basis=Basis.HARDWARE))
    assert any(line.startswith("  1 of them are beyond rounding") for line in texts(found))
    assert not any("beyond rounding" in line for line in texts(result(row("b"))))


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ((row("a", 0.5, 2.0), row("b", 0.5, 3.0)), "b"),
        ((row("a", 2.0, 2.0),), None),
        ((row("a", 2.0, 2.0, basis=Basis.LOST),), "a"),
        ((row("a", 0.5, 2.0, basis=Basis.EQUALITY),), None),
        ((row("a", 0.5, 0.1),), None),
        ((row("a", 0.5, 2.0, exact=True),), None),
    ],
)
def test_what_a_format_may_cost_is_told_of_a_deployed_model_only(rows, lost):
    found = lost_to_format(rows)
    assert (found.value if found else None) == lost
    told = f"the format alone can explain the loss of {lost}, "
    assert any(told in line for line in texts(result(*rows))) is (lost is not None)
    assert not any("the format alone" in line for line in texts(result(*rows, observation="instrumented")))


def test_a_reference_that_contradicts_the_model_is_loud():
    one = Disagreement("real[0]", "v", "n", "Pow", 0.5, "floor 1e-6")
    found = result(row("a"), disagreements=(one, dataclasses.replace(one, value="w"), one), unjudged="no arithmetic")
    lines = texts(found)
    assert lines[0] == "ref could not be judged by the model: no arithmetic"
    assert lines[1].startswith("ref and the model disagree: on real[0], 'v' of Pow 'n' is off by 50 % from what")
    assert "(floor 1e-6), and so are 1 more tensors; these" in lines[1]
    assert styles(found)[lines[1]] == "bold red"
    assert lines[-1].startswith("failed")
    alone = texts(result(row("a"), disagreements=(dataclasses.replace(one, node=""),)))[0]
    assert alone.startswith("ref and the model disagree: on real[0], 'v' is off by")
    assert "more tensors" not in alone


def test_what_did_not_run_and_what_is_invalid_is_red():
    bad = tuple(Invalid("target", "real[0]", f"out{number}", number, 7) for number in range(MOST_ROWS + 2))
    crash = {"ref": Outcome(OutcomeKind.OK), "target": Outcome(OutcomeKind.CRASH, "signal\x1b 11")}
    found = result(outcomes=crash, invalid=bad, commands=("trtexec --onnx=m",), cuts=Cuts(2, (("x",),), 10**9, 10**8))
    lines = texts(found)
    assert lines[0] == "target: engine-crash: signal\\x1b 11"
    assert "run in 2 blocks" in lines[1]
    assert lines[2] == "invalid: out0 of target on real[0]: 0 NaN, 7 Inf"
    assert lines[1 + 1 + MOST_ROWS] == "... and 2 more invalid outputs"
    assert lines[-2] == "built as: trtexec --onnx=m"
    assert {styles(found)[line] for line in (lines[0], lines[2], lines[-1])} == {"red"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (result(row("a"), builds=2, build_seconds=1.25, checks=3, run_seconds=0.5),
         "passed (2 builds in 1.2 s, 3 runs in 0.5 s)"),
        (result(row("a", 2.0)), "failed (0 builds in 0.0 s, 0 runs in 0.0 s)"),
        (result(row("a"), feeds={"random[0]": "random"}),
         "passed (0 builds in 0.0 s, 0 runs in 0.0 s; the inputs were random)"),
        (result(), "nothing was compared (0 builds in 0.0 s, 0 runs in 0.0 s)"),
        (result(task_metrics={"ref": math.nan}), "failed (0 builds in 0.0 s, 0 runs in 0.0 s)"),
    ],
)  # fmt: skip
def test_the_last_line_says_whether_it_passed_and_what_it_cost(found, said):
    assert closing(found) == texts(found)[-1] == said
    assert styles(found)[said] == ("green" if found.passed else "red")


TASK = TaskComparison("target", 4, -0.25, -0.5, -0.1, None, 2, 1, 1, (), ("all are dark",))


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (TASK, ["  -0.25 over 4 samples; 95 % interval -0.5 to -0.1 (paired bootstrap)",
                "  worse on 2, better on 1; another class wins on 1", "  in common: all are dark"]),
        (dataclasses.replace(TASK, high=0.1, flips=None, common=()),
         ["  -0.25 over 4 samples; 95 % interval -0.5 to +0.1 (paired bootstrap); the true difference may be zero",
          "  worse on 2, better on 1"]),
        (dataclasses.replace(TASK, low=0.1, high=0.5, worse=0, better=0, flips=0, common=()),
         ["  -0.25 over 4 samples; 95 % interval +0.1 to +0.5 (paired bootstrap)"]),
        (dataclasses.replace(TASK, differing_at_most=0.5, worse=0, better=0, flips=None, common=()),
         ["  no sample of 4 differs: with 95 % confidence at most 50 % do"]),
        (dataclasses.replace(TASK, samples=1, differing_at_most=1.0, low=None, worse=0, better=0, flips=3, common=()),
         ["  worse on 0, better on 0; another class wins on 3"]),
    ],
)  # fmt: skip
def test_a_task_metric_is_told_with_how_sure_its_difference_is(found, lines):
    assert texts(result(row("a"), task_comparisons=(found,)))[-1 - len(lines) : -1] == lines


def test_samples_that_lose_are_told_with_the_classes_that_change():
    sample = SampleScore("real[3]", 1.0, 0.25, (1, 2, 3, 4, 5), (1, 7, 8, 9, 0), 0.125, 3.0)
    plain_sample = SampleScore("real[4]", 1.0, 0.5, largest_input=2.0)
    lines = texts(result(row("a"), task_comparisons=(dataclasses.replace(TASK, worst=(sample, plain_sample)),)))
    assert "    real[3]: 1 -> 0.25, class 2 -> 7, 3 -> 8, 4 -> 9 and 1 more, margin 0.125, largest input 3" in lines
    assert "    real[4]: 1 -> 0.5, largest input 2" in lines


def test_the_metric_of_each_participant_is_told_and_the_document_says_whether_it_passed():
    found = result(row("a"), task_metrics={"ref": 0.75, "target": 0.5})
    assert "task metric of ref: 0.75" in texts(found)
    assert from_json(to_document(found), dict)["passed"] is True
