"""References that lose what does not fit in int16, and how much targets may lose: the stand-in for ONNX Runtime."""

import dataclasses

import numpy as np
import pytest
from onnx import numpy_helper

from machine import NEWER, OLDER, be_processor
from models import proto
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.limits import limits_of
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.costs import of_int16, rounding_costs
from tensortriage.envelope.reference import cut_off
from tensortriage.values.store import MemoryStore
from tensortriage_testing import quantized

STAND_IN = EngineSpec("saturating")


def with_pair(size):
    """Return a quantized product of 64 terms, and its feed: a pair of weights in steps, of 127, meets data of 251."""
    rng = np.random.default_rng(0)
    weight = rng.normal(0, 0.2, (64, 16)).astype(np.float32)
    weight[:2, 0], weight[5, 3] = size / 127, 1.0
    message = proto("g (float[8, 64] x) => (float[8, 16] y) { [product] y = MatMul(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    feed = {"x": rng.normal(0, 1, (8, 64)).astype(np.float32)}
    feed["x"] = np.clip(feed["x"], -3, 3)
    feed["x"][:, :2], feed["x"][0, 3:5] = 2.9, (-3, 3)
    return quantized(message, feed, per_channel=False), feed


@pytest.fixture
def asked(investigate):
    def ask(size):
        message, feed = with_pair(size)
        return investigate(message, feed, target="saturating")

    return ask


def test_what_an_engine_loses_is_what_its_int8_weights_lose(asked, monkeypatch):
    be_processor(monkeypatch, OLDER)
    inv = asked(100)
    feed = inv.question.feeds[0]
    lost = cut_off(inv.lab, STAND_IN, inv.model, feed)
    made, right = (inv.lab.outputs(spec, inv.model, feed)["y"] for spec in (STAND_IN, inv.question.reference))
    assert lost == pytest.approx(error_of(measure(right, made)), rel=1e-6)
    assert lost > 0.01
    assert cut_off(inv.lab, EngineSpec.parse("saturating:fused=false"), inv.model, feed) == 0.0
    assert cut_off(inv.lab, EngineSpec("float64"), inv.model, feed) == 0.0
    be_processor(monkeypatch, NEWER)
    assert cut_off(inv.lab, STAND_IN, inv.model, feed) == 0.0


def test_a_reference_that_loses_as_much_excuses_nothing(asked, monkeypatch):
    be_processor(monkeypatch, OLDER)
    inv = asked(100)
    feed = inv.question.feeds[0]
    exact, lossy = (
        of_int16(
            dataclasses.replace(inv.setting(feed), reference=spec, golden_outputs=lambda spec=spec: outputs(inv, spec)),
            *(None, None, ["y"]),
        )["y"]
        for spec in (PLAIN, STAND_IN)
    )
    assert exact == lossy == pytest.approx(rounding_costs(inv.setting(feed))["y"], rel=0.02)


def outputs(inv, spec):
    return MemoryStore(inv.lab.outputs(spec, inv.model, inv.question.feeds[0]))


@pytest.mark.parametrize(("size", "matters"), [(66, False), (100, True)])  # int16 ends at 2 x 65.3 x 251
def test_as_much_as_rounding_costs_may_be_lost(asked, monkeypatch, size, matters):
    be_processor(monkeypatch, OLDER)
    inv = asked(size)
    feed = inv.question.feeds[0]
    made, right = (np.asarray(inv.lab.outputs(spec, inv.model, feed)["y"]) for spec in (STAND_IN, PLAIN))
    figures = {"y": measure(right, made)}
    own = rounding_costs(inv.setting(feed))["y"]
    assert error_of(figures["y"]) > 0.003
    assert (error_of(figures["y"]) > own) is matters
    limit = limits_of(inv, feed, figures, apart={}, asked=False)["y"]
    assert limit.allows(error_of(figures["y"])) is not matters
    assert limit.by == (("order-of-sums",) if matters else ("int16-sums",))
    be_processor(monkeypatch, NEWER)
    assert not limits_of(inv, feed, figures, apart={}, asked=False)["y"].allows(error_of(figures["y"]))


@pytest.mark.parametrize(
    ("engine", "excused"),
    [("saturating", True), ("saturating:fused=false,kind=noise,node=product,amount=0.004", False)],
)
def test_an_engine_that_computes_uint8_weights_alike_does_not_saturate(asked, monkeypatch, engine, excused):
    """Expected: the stand-in loses by saturation alone; the other, which is exact, by a planted noise of like size."""
    be_processor(monkeypatch, OLDER)
    inv = asked(66)
    inv = inv.about(dataclasses.replace(inv.question, target=EngineSpec.parse(engine)))
    feed = inv.question.feeds[0]
    made, right = (np.asarray(inv.lab.outputs(spec, inv.model, feed)["y"]) for spec in (inv.question.target, PLAIN))
    figures = {"y": measure(right, made)}
    assert 0.003 < error_of(figures["y"]) < rounding_costs(inv.setting(feed))["y"]
    assert limits_of(inv, feed, figures, apart={}, asked=False)["y"].allows(error_of(figures["y"])) is excused
