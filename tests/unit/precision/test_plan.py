"""A finished precision search as the document that others read."""

import json
import math

import pytest

from tensortriage.errors import StoreError
from tensortriage.model.provenance.origin import NodeOrigin
from tensortriage.precision.plan import ErrorFacts, Honoured, Keeping, Point, PrecisionAlternative, PrecisionPlan
from tensortriage.values.serial import dump, load

FACTS = ErrorFacts("at most 1 %", as_asked=math.inf, measured=0.001, predicted=None, gap_db=None, ratio=0.1)
SMALL = PrecisionPlan(
    kept=(), builds=1, checks=1, error=FACTS, precision="fp16", higher="fp32", asked="engine", mode="auto",
    minimality="one-minimal", nodes=(), candidates=4, fixed=(), low_share=None, casts=None,
)  # fmt: skip
WHOLE = PrecisionPlan(
    kept=("mul",), builds=3, checks=2, error=FACTS, precision="fp16", higher="fp32", asked="check", mode="bisect",
    minimality="prefix", nodes=(Keeping("mul", "Mul", "it overflows", 2.0, 0.1, "fails",
                                        NodeOrigin("block.mul", "Linear", "net.py", 3)),),
    candidates=4, fixed=("round",), low_share=0.75, casts=2, pareto=(Point(1, 0.1, 20.0, True, False, 0.5, 0.9),),
    honoured=Honoured(True, 4, ("mul",), ("add",)), settings={"tensorrt": "layerPrecisions"},
    remedies=(PrecisionAlternative("bf16", "another format", 0, 0.01, "b.onnx"),), next=("triage run",),
    files={"model": "o.onnx"}, emulated=7, seconds=1.5, interrupted=True, model="m.onnx", sha256="00",
    target="onnxruntime", deployed="onnxruntime", inputs="real", command="triage debug precision",
)  # fmt: skip


@pytest.mark.parametrize("plan", [SMALL, WHOLE])
def test_it_is_read_as_it_was_written(plan, tmp_path):
    dump(plan, tmp_path / "precision.json")
    assert load(tmp_path / "precision.json", PrecisionPlan) == plan


def test_a_search_ends_by_itself_and_rounding_explains_the_error_unless_it_says_otherwise():
    assert (SMALL.interrupted, FACTS.explained, Honoured(told=False).narrower) == (False, True, ())
    assert (SMALL.honoured, SMALL.pareto, SMALL.remedies) == (None, (), ())


def test_another_version_is_refused(tmp_path):
    path = tmp_path / "precision.json"
    dump(SMALL, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "tensortriage.precision/0"}))
    with pytest.raises(StoreError) as caught:
        load(path, PrecisionPlan)
    assert caught.value.slug == "format-unknown"
