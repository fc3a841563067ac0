"""The request of a precision search: one goal, one judge, a lower format that is named, a model that is spared."""

from pathlib import Path

import pytest

from models import with_external_data
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.precision.search.request import (
    GoalRequest,
    PrecisionMode,
    PrecisionRequest,
    load_model,
    low_precision,
)
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.values.dtype import Precision

TARGET = "emulate:precision=bf16"
GOALS = {
    "tolerance": PolygraphyTolerance(atol={"": 1e-3}),
    "sqnr_db": 0.0,
    "floor_factor": 3.0,
    "metric": lambda outputs, feed: 1.0,
}


def request(**given):
    """Return a request that an engine judges, unless it says otherwise."""
    return PrecisionRequest(**{"model": Path("m.onnx"), "target": TARGET, **given})


def slug_of(ask, *given, **more):
    """Return the slug with which something is refused."""
    with pytest.raises(UsageError) as caught:
        ask(*given, **more)
    return caught.value.slug


@pytest.mark.parametrize("name", GOALS)
def test_one_goal_is_asked_for(name):
    found = getattr(GoalRequest(**{name: GOALS[name]}), name)
    assert getattr(found, "function", found) is GOALS[name]
    for other in GOALS.keys() - {name}:
        assert slug_of(GoalRequest, **{name: GOALS[name], other: GOALS[other]}) == "precision-goals-many"


def test_a_smallest_mean_needs_a_metric():
    assert slug_of(GoalRequest, metric_min=0.0) == "precision-goals-many"
    assert GoalRequest(metric_min=0.0, metric=GOALS["metric"]).metric_min == 0.0


def test_either_an_engine_or_a_command_judges():
    check = CheckSpec(words=("true",))
    assert request().check is None
    assert request(target="", check=check).check is check
    assert slug_of(request, target="") == slug_of(request, check=check) == "precision-judge"


def test_what_is_usual():
    found = request()
    assert (found.mode, found.reverse, found.low, found.max_builds) == (PrecisionMode.AUTO, False, None, 10)
    assert (found.latency, found.remedies, found.keep_artifact) == (False, False, False)
    assert found.feeding.most == 8


@pytest.mark.parametrize(
    ("low", "target", "found"),
    [
        (None, TARGET, Precision.BF16),
        (Precision.FP16, None, Precision.FP16),
        (Precision.FP16, "onnxruntime", Precision.FP16),
        (None, "onnxruntime", None),
        (None, None, None),
        (Precision.FP32, TARGET, None),
        (Precision.FP64, None, None),
        (Precision.TF32, None, None),
    ],
)
def test_the_lower_format_is_that_of_the_option_or_of_the_target(low, target, found):
    spec = None if target is None else EngineSpec.parse(target)
    asked = request(low=low)
    if found is None:
        assert slug_of(low_precision, asked, spec) == "precision-low-missing"
    else:
        assert low_precision(asked, spec) is found


def test_an_engine_that_computes_in_no_lower_format_is_named():
    with pytest.raises(UsageError, match="onnxruntime computes in fp32"):
        low_precision(request(), EngineSpec("onnxruntime"))
    with pytest.raises(UsageError, match="no lower format is named"):
        low_precision(request(), None)


def test_no_file_of_the_model_is_overwritten(tmp_path):
    path = with_external_data(tmp_path)
    for name in ("model.onnx", "weights.bin"):
        assert slug_of(load_model, request(model=path, output=tmp_path / name)) == "output-is-input"
    assert load_model(request(model=path, output=tmp_path / "mixed.onnx")).path == path
    (tmp_path / "moved").mkdir()
    (tmp_path / "weights.bin").rename(tmp_path / "moved" / "weights.bin")
    found = load_model(request(model=path, external_data_dir=tmp_path / "moved"))
    assert found.graph.weight("W").shape == (4, 8)
