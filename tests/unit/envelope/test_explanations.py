"""The registry of explanations: whose each is, in which formats, and what several together are predicted to cost."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.float64.function_accuracy import Functions
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope import costs
from tensortriage.envelope.costs import of_freedoms
from tensortriage.envelope.registry import REGISTRY, freedoms_of, freedoms_of_target
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision

ROOT = Path(__file__).resolve().parents[3]
FP16_SUMS, WINOGRAD, LARGE_WINOGRAD, TF32, MNN_FUNCTIONS = (
    next(each for each in REGISTRY if each.name == name)
    for name in ("fp16-accumulator", "winograd", "winograd-6", "tf32-operands", "light-functions")
)


def test_a_freedom_of_one_engine_is_none_of_others_of_its_class():
    """MNN alone computes a GELU by its tanh form and, in a release of a year ago, a Softmax off by 5.2e-4."""
    of = {spec: freedoms_of_target(EngineSpec.parse(spec)) for spec in ("mnn", "ncnn", "litert", "script:e.py:Any")}
    assert [MNN_FUNCTIONS in of[spec] for spec in of] == [True, False, False, True]
    assert [LARGE_WINOGRAD in of[spec] for spec in of] == [True, True, False, True]
    assert MNN_FUNCTIONS in freedoms_of_target(EngineSpec.parse("script:e.py:Any,hardware=light"))
    assert MNN_FUNCTIONS in freedoms_of_target(EngineSpec.parse("ncnn:hardware=light"))
    assert "Erf" in MNN_FUNCTIONS.operators  # of no operator in particular it would not be tried on a whole model


@pytest.mark.parametrize(
    ("op_type", "exact", "most"),
    [("Tanh", 0.5, 2e-6), ("Sigmoid", 0.5, 2e-6), ("Exp", 1.0, 4e-6), ("Softmax", 0.5, 3e-4), ("Gelu", 0.5, 5e-4)],
)
def test_functions_of_engines_for_phones_are_as_accurate_as_was_measured(op_type, exact, most):
    """`bench/function_accuracy.py` on MNN 3.0.0: 1.6e-6, 8e-7, 3.5e-6, 5.2e-4 of the result, 4.7e-4 (3.6.1: 4.7e-4)."""
    found = [Functions(Hardware.LIGHT, seed).approximated(op_type, np.full(8, exact)) for seed in range(8)]
    assert most / 10 < max(np.abs(each - exact).max() for each in found) <= most


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


@pytest.mark.parametrize("precision", [Precision.TF32, Precision.FP16, Precision.BF16, Precision.INT8])
def test_nobody_convolves_by_winograd_on_operands_of_tensor_cores(precision):
    assert not {WINOGRAD, LARGE_WINOGRAD} & {*freedoms_of(Hardware.ANY, precision)}


@pytest.mark.parametrize(
    ("spec", "hardware"),
    [
        ("tensorrt:precision=fp16", Hardware.GPU), ("onnxruntime", Hardware.CPU),
        ("openvino:precision=bf16", Hardware.CPU), ("openvino:device=NPU", Hardware.NPU),
        ("onnxruntime:providers=cuda", Hardware.GPU), ("script:mine.py:Engine", Hardware.ANY),
        ("emulate:precision=fp16", Hardware.CPU), ("float64", Hardware.CPU), ("rknn", Hardware.NPU),
        ("onnxruntime:providers=cuda+cpu", Hardware.GPU), ("onnxruntime:providers=cpu", Hardware.CPU),
        ("onnxruntime:providers=xnnpack+cpu", Hardware.CPU), ("onnxruntime:providers=dml", Hardware.GPU),
        ("onnxruntime:providers=migraphx", Hardware.GPU), ("onnxruntime:providers=coreml+cpu", Hardware.ANY),
        ("onnxruntime:providers=cann", Hardware.ANY), ("onnxruntime:providers=vitisai", Hardware.ANY),
        ("onnxruntime:providers=nnapi", Hardware.ANY), ("onnxruntime:providers=openvino", Hardware.ANY),
        ("onnxruntime:ep=qnn", Hardware.NPU), ("onnxruntime:ep=nv_tensorrt_rtx", Hardware.GPU),
        ("onnxruntime:ep=/opt/cuda/libmine.so", Hardware.ANY),
        ("onnxruntime:ep=/opt/lib.so,ep_name=QNNExecutionProvider", Hardware.NPU),
        ("openvino", Hardware.CPU), ("openvino:device=GPU.1", Hardware.GPU), ("openvino:device=AUTO", Hardware.ANY),
        ("openvino:device=MULTI:CPU", Hardware.ANY), ("openvino:device=HETERO:GPU", Hardware.ANY),
        ("torch:net.py:net", Hardware.CPU), ("torch:net.py:net,device=cuda:1", Hardware.GPU),
        ("torch:net.py:net,device=mps", Hardware.ANY), ("mnn", Hardware.LIGHT),
    ],
)  # fmt: skip
def test_engines_have_a_class(spec, hardware):
    assert resolve(EngineSpec.parse(spec)).hardware is hardware


def test_every_freedom_has_a_source():
    assert all(freedom.source and freedom.words for freedom in REGISTRY)
    assert len({freedom.name for freedom in REGISTRY}) == len(REGISTRY)


def test_a_value_whose_shape_depends_on_the_arithmetic_has_no_prediction(monkeypatch, tmp_path):
    """NonZero finds other places where a number on the edge of a whole one falls to its other side."""
    text = "g (float[4] x) => (int64[1,n] y) { f = Floor(x)\n y = NonZero(f) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path / "m.onnx")
    right, other = measure(np.ones(4), np.ones(4)), measure(np.ones(4), np.full(4, 1.5))
    answers = {"taken 0": {"f": right, "y": right}, "taken 0 fused": {"f": other}}
    monkeypatch.setattr(costs, "distances", lambda *args, **words: {name: answers[name] for name in args[2]})
    model = Model.load(tmp_path / "m.onnx")
    setting = SimpleNamespace(lab=None, model=model, feed=None, precision=Precision.FP16, parts=())
    found = of_freedoms(setting, None, [FP16_SUMS], ["f", "y"])
    assert found == {"f": pytest.approx(0.5)}


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("fp16-accumulator", Precision.FP16, True),
        ("fp16-accumulator", Precision.TF32, False),  # taken in fp16 alone
        ("fp16-results-cut", Precision.FP16, False),  # in some ops, and in which is not known
        ("winograd-6", Precision.TF32, False),  # seen on single engines; it excused a Conv 1.2 too large in some builds
    ],
)
def test_what_single_engines_were_seen_to_do_is_expected_of_no_class(name, precision, expected):
    (entry,) = [each for each in REGISTRY if each.name == name]
    assert entry.is_expected_of_some(precision) is expected


def test_the_page_shows_the_registry_as_it_is():
    make = runpy.run_path(str(ROOT / "docs/make_explanations.py"))
    text = make["PAGE"].read_text(encoding="utf-8")
    assert text == make["page"](), "run docs/make_explanations.py again"
    ways = text.partition("| cost | how it is found |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [way.split(" | ")[0].removeprefix("| ") for way in ways] == list(dict.fromkeys(map(make["kind"], REGISTRY)))


def test_the_diff_that_shows_how_to_add_an_explanation_is_real():
    page = (ROOT / "docs/development/architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Adding an explanation")[2].partition("\n## ")[0]
    added = [line.removeprefix("   +") for line in section.splitlines() if line.startswith("   +")]
    assert added[1].strip() == 'name="int8-activations",'
    assert "\n".join(added) in (ROOT / "src/tensortriage/envelope/rows/integers.py").read_text(encoding="utf-8")
