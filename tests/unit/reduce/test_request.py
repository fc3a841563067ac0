"""What a reduction may be asked for, and what it is requested when nothing else is said."""

from pathlib import Path

import pytest

from tensortriage.errors import UsageError
from tensortriage.reduce.request import Ends, ReduceMode, ReduceRequest, ShapeSource
from tensortriage.runs.commands.check import CheckSpec

MODEL, RESULT = Path("m.onnx"), Path("r.onnx")
CHECK = CheckSpec(words=("false",))


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({"target": "onnxruntime"}, "reduce-no-output"),
        ({"target": "onnxruntime", "check": CHECK, "output": RESULT}, "reduce-two-judges"),
    ],
)
def test_requests_that_contradict_themselves(given, slug):
    with pytest.raises(UsageError) as caught:
        ReduceRequest(model=MODEL, **given)
    assert caught.value.slug == slug
    assert caught.value.cure


@pytest.mark.parametrize(
    "given",
    [{"output": RESULT}, {"min_good": RESULT}, {"output": RESULT, "check": CHECK}, {"min_good": RESULT, "target": "a"}],
)
def test_one_file_and_at_most_one_judge_will_do(given):
    ReduceRequest(model=MODEL, **given)


def test_nothing_is_left_out_unless_that_is_asked_for():
    request = ReduceRequest(model=MODEL, output=RESULT)
    assert (request.mode, request.ends, request.shape_source) == (ReduceMode.AUTO, Ends.BOTH, ShapeSource.INFERENCE)
    assert (request.check, request.tolerance, request.person) == (None, None, None)
    assert (request.budget.checks, request.budget.seconds, request.shrink_seconds) == (None, None, None)
    assert (request.jobs, request.premise, request.keep_artifact, request.input_shapes) == (1, 3, False, {})
    with pytest.raises(AttributeError):
        request.jobs = 2


@pytest.mark.parametrize("ends", Ends)
def test_the_modes_of_polygraphy_choose_complete_candidates_themselves(ends):
    assert [mode for mode in ReduceMode if mode.is_polygraphys] == [ReduceMode.BISECT, ReduceMode.LINEAR]
    assert {mode: mode.ends(ends) for mode in ReduceMode} == {
        ReduceMode.AUTO: ends, ReduceMode.BLOCKS: ends, ReduceMode.BISECT: Ends.BOTH, ReduceMode.LINEAR: Ends.BOTH,
    }  # fmt: skip
