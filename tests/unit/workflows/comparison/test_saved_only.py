"""Saved outputs against each other: expected errors are differences of the numbers written here."""

import numpy as np
import pytest

from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError, UsageError
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Saved


def saved(name, *iterations):
    return Saved(name, [{key: np.float32(value) for key, value in found.items()} for found in iterations])


def compared(*results, **named):
    return compare(CompareRequest(model=None, saved=results, **named))


def judged(result):
    return [[row.judgement.within for row in item.comparison.rows] for item in result.comparisons]


ONE = {"y": [1.0, 2.0], "z": [3.0]}


def test_every_iteration_is_judged_by_itself():
    moved = {"y": [1.0, 2.5], "z": [3.0]}
    result = compared(saved("old", ONE, ONE), saved("new", ONE, moved))
    assert judged(result) == [[True, True], [False, True]]
    (row, _) = result.comparisons[1].comparison.rows
    assert row.metrics.max_abs_error == 0.5
    assert not result.passed
    assert (result.reference, result.targets, result.builds) == ("old", ("new",), 0)
    assert result.unjudged == "no model was given"


def test_without_a_tolerance_it_is_polygraphys():
    """1e-5, absolute or relative: 9e-6 of 1 is within, 2e-5 is not."""
    near, far = {"y": [1.000009, 2.0], "z": [3.0]}, {"y": [1.00002, 2.0], "z": [3.0]}
    assert judged(compared(saved("a", ONE), saved("b", near), saved("c", far))) == [[True, True], [False, True]]


def test_chosen_outputs_and_given_tolerances():
    other = {"y": [1.0, 2.25], "z": [9.0]}
    tolerances = [PolygraphyTolerance(atol=0.3, rtol=0.0)]
    result = compared(saved("a", ONE), saved("b", other), outputs=OutputChoice(("y",)), tolerances=tolerances)
    assert judged(result) == [[True]]
    result = compared(saved("a", ONE), saved("b", other), outputs=OutputChoice(("*",), ("y",)), tolerances=tolerances)
    assert judged(result) == [[False]]


def test_one_result_alone_can_be_validated():
    bad = {"y": [np.nan, np.inf], "z": [3.0]}
    assert compared(saved("a", ONE), validate=True).passed
    result = compared(saved("a", bad), validate=True)
    (found,) = result.invalid
    assert (found.participant, found.output, found.nan, found.inf) == ("a", "y", 1, 1)
    assert not result.passed


def test_stops_at_the_first_failure():
    other = {"y": [7.0, 7.0], "z": [3.0]}
    result = compared(saved("a", ONE, ONE, ONE), saved("b", ONE, other, other), fail_fast=True)
    assert judged(result) == [[True, True], [False, True]]


@pytest.mark.parametrize(
    ("error", "slug", "results", "named"),
    [
        (DataError, "results-too-few", [saved("a", ONE, ONE), saved("b", ONE)], {}),
        (DataError, "output-missing", [saved("a", ONE), saved("b", {"y": [1.0, 2.0]})], {}),
        (DataError, "output-incompatible", [saved("a", ONE), saved("b", {"y": [1.0], "z": [3.0]})], {}),
        (UsageError, "choice-needs-model", [saved("a", ONE), saved("b", ONE)],
         {"outputs": OutputChoice(by_type=["Conv"])}),
        (UsageError, "value-unknown", [saved("a", ONE), saved("b", ONE)], {"outputs": OutputChoice(["nothing"])}),
        (UsageError, "tolerance-unused", [saved("a", ONE), saved("b", ONE)],
         {"tolerances": [PolygraphyTolerance(atol={"nothing": 1.0})]}),
        (UsageError, "model-needed", [saved("a", ONE)], {"targets": [EngineSpec("onnxruntime")]}),
        (UsageError, "model-needed", [], {}),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_an_error(error, slug, results, named):
    with pytest.raises(error) as caught:
        compared(*results, **named)
    assert caught.value.slug == slug


def test_a_tolerance_for_nothing_may_be_a_warning(caplog):
    tolerances = [PolygraphyTolerance(atol={"nothing": 1.0})]
    assert compared(saved("a", ONE), saved("b", ONE), tolerances=tolerances, strict=False).passed
    assert "'nothing'" in caplog.text
