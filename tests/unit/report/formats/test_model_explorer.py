import json
import math
from typing import Any

import pytest

from tensortriage.diagnose.state.layer_rows import LayerRow, Layers
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.report.document import Report
from tensortriage.report.formats import model_explorer
from unit.report.samples import hostile


def render(*rows: LayerRow) -> Any:
    text = model_explorer.render(Report(Verdict("match", 1.0, ""), layers=Layers(rows)))
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def value_of(**numbers: Any) -> float:
    return float(render(LayerRow("v", "n", "Add", **numbers))["results"]["n"]["value"])


def test_the_value_is_the_excess_over_the_floor_in_decibel() -> None:
    # 20 log10(0.1 / 0.001) = 40.
    assert value_of(in_context_error=0.1, floor=0.001) == 40.0
    assert value_of(local_error=0.1, local_floor=0.01) == 20.0
    # Without a floor against 1e-6: 20 log10(0.001 / 1e-6) = 60.
    assert value_of(in_context_error=0.001) == 60.0


@pytest.mark.parametrize("bad", [{"in_context_error": math.nan}, {"in_context_error": 0.1, "nonfinite_target": 1}])
def test_non_finite_is_beyond_any_error(bad: dict[str, Any]) -> None:
    assert value_of(**bad) == model_explorer.NONFINITE_DECIBEL


def test_equal_tensors_are_far_below_the_floor() -> None:
    assert value_of(in_context_error=0.0) == -model_explorer.NONFINITE_DECIBEL


def test_a_node_with_several_outputs_shows_its_worst_and_unmeasured_ones_none() -> None:
    results = render(
        LayerRow("v0", "split", "Split", in_context_error=0.001, floor=0.001),
        LayerRow("v1", "split", "Split", in_context_error=0.01, floor=0.001),
        LayerRow("w", "other", "Add"),
    )["results"]
    assert results == {"split": {"value": 20.0}}


def test_thresholds_rise_and_cover_every_value() -> None:
    document = json.loads(model_explorer.render(hostile()))
    limits = [threshold["value"] for threshold in document["thresholds"]]
    assert limits == sorted(limits)
    assert all(result["value"] <= limits[-1] for result in document["results"].values())
