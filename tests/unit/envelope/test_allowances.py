"""Freedoms forgive what they cost and no more, and on unknown hardware only when they are a habit."""

import numpy as np
import onnx
import pytest

from tensortriage.compare.judgement.thresholds import SUSPECT_RATIO
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope import allowances as allowances_module
from tensortriage.envelope.allowances import allowances, whole_model, widened
from tensortriage.envelope.floors import Floors
from tensortriage.envelope.freedoms import FP16_SUMS, FREEDOMS, LARGE_WINOGRAD, TF32, WINOGRAD, freedoms_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision

CENTRE = np.random.default_rng(0).standard_normal(4096)


def off_by(error):
    """Return the figures of a tensor whose relative RMS error is as given."""
    noise = np.random.default_rng(1).standard_normal(CENTRE.size)
    noise *= error * np.sqrt(np.mean(CENTRE**2)) / np.sqrt(np.mean(noise**2))
    return measure(CENTRE, CENTRE + noise)


def granted(errors, *, hardware=Hardware.GPU, allowed=1e-3, kinds="MatMul", suspects=None):
    figures = {FP16_SUMS: {value: off_by(allowed) for value in errors}}
    floors = dict.fromkeys(errors, 1e-4)
    return allowances(
        figures, errors, floors, op_types=lambda value: frozenset({kinds}), suspects=suspects or list(errors),
        hardware=hardware,
    )  # fmt: skip


def test_an_error_of_the_size_of_a_freedom_is_granted_and_a_larger_one_is_not():
    found = granted({"a": 1.2e-3, "b": 2e-2})
    assert set(found) == {"a"}
    assert found["a"].freedom is FP16_SUMS
    assert 1e-3 < found["a"].error < 2e-3  # 3 dB and a little for few elements


def test_a_freedom_concerns_its_operators_only():
    assert granted({"a": 1e-3}, kinds="Add") == {}


@pytest.mark.parametrize(("hardware", "expected"), [(Hardware.ANY, set()), (Hardware.GPU, {"a"})])
def test_one_product_of_many_is_no_habit_of_unknown_hardware(hardware, expected):
    errors = {"a": 1e-3, "b": 5e-5, "c": 5e-5, "d": 5e-5}
    assert set(granted(errors, hardware=hardware, suspects=["a"])) == expected


def test_half_of_the_products_are_a_habit():
    errors = {"a": 1e-3, "b": 1e-3, "c": 5e-5, "d": 5e-5}
    assert set(granted(errors, hardware=Hardware.ANY, suspects=["a", "b"])) == {"a", "b"}


def test_floors_are_widened_to_what_is_granted():
    floors = Floors({"a": 1e-7}, {"a": 1e-4}, {}, "envelope")
    wide = widened(floors, granted({"a": 1.2e-3}))
    assert SUSPECT_RATIO * wide.target["a"] == pytest.approx(granted({"a": 1.2e-3})["a"].error)
    assert wide.taken == {"a": FP16_SUMS}
    assert wide.fp32 == floors.fp32


def test_hardware_says_which_freedoms_are_its_own():
    assert TF32 in freedoms_of(Hardware.GPU, Precision.FP32)
    assert TF32 not in freedoms_of(Hardware.CPU, Precision.FP32)
    assert FP16_SUMS not in freedoms_of(Hardware.GPU, Precision.FP32)
    assert set(freedoms_of(Hardware.ANY, Precision.FP16)) >= set(freedoms_of(Hardware.GPU, Precision.FP16))


def test_large_tiles_of_winograd_are_nobodys_by_class_and_named_before_shorter_operands():
    known = [freedoms_of(hardware, Precision.FP32) for hardware in (Hardware.CPU, Hardware.GPU, Hardware.NPU)]
    assert not any(LARGE_WINOGRAD in freedoms for freedoms in known)
    anyone = freedoms_of(Hardware.ANY, Precision.FP32)
    assert anyone.index(WINOGRAD) < anyone.index(LARGE_WINOGRAD) < anyone.index(TF32)


@pytest.mark.parametrize(
    ("spec", "hardware"),
    [
        ("tensorrt:precision=fp16", Hardware.GPU), ("onnxruntime", Hardware.CPU),
        ("openvino:precision=bf16", Hardware.CPU), ("openvino:device=NPU", Hardware.NPU),
        ("onnxruntime:providers=cuda", Hardware.GPU), ("script:mine.py:Engine", Hardware.ANY),
        ("emulate:precision=fp16", Hardware.CPU),
    ],
)  # fmt: skip
def test_engines_have_a_class(spec, hardware):
    assert Hardware.of(EngineSpec.parse(spec)) is hardware


def test_every_freedom_has_a_source():
    assert all(freedom.source and freedom.words for freedom in FREEDOMS)
    assert len({freedom.name for freedom in FREEDOMS}) == len(FREEDOMS)


def test_a_value_whose_shape_depends_on_the_arithmetic_has_no_prediction(monkeypatch, tmp_path):
    """NonZero finds other places where a number on the edge of a whole one falls to its other side."""
    text = "g (float[4] x) => (int64[1,n] y) { f = Floor(x)\n y = NonZero(f) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path / "m.onnx")
    right, other = measure(np.ones(4), np.ones(4)), measure(np.ones(4), np.full(4, 1.5))
    answers = {"taken 0": {"f": right, "y": right}, "taken 0 fused": {"f": other}}
    monkeypatch.setattr(allowances_module, "spread", lambda *args, **words: {name: answers[name] for name in args[4]})
    model = Model.load(tmp_path / "m.onnx")
    found = whole_model(None, model, None, ["f", "y"], freedoms=[FP16_SUMS], precision=Precision.FP16)
    assert found == {"f": pytest.approx(0.5)}
