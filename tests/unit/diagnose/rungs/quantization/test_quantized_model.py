"""The verdict about a quantized model: sound, or one pair that does not fit, whatever the mistake."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from diagnosing import ask, named, step
from engine_scripts import engine_file
from machine import NEWER, OLDER, be_processor
from quantization_aware import SATURATING
from tensortriage.compare.quantization.quantizer_fit import calibrate
from tensortriage.diagnose.rungs.quantization.misfits import QuantizerMisfit
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.values.dtype import DType
from tensortriage_testing import conv_net, encoder, feed_for, mlp, quantized, save_model

pytestmark = pytest.mark.slow

MODELS = {
    "mlp": lambda: mlp(),
    "encoder": lambda: encoder(layers=1, width=32, heads=2, tokens=8, batch=2),
    "conv_net": lambda: conv_net(blocks=2),
}


def changed(model, name, change):
    """Change one initializer in place."""
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))
            return
    raise AssertionError(name)


def middle(model, op_type="QuantizeLinear"):
    """Return the node of this type in the middle of a model."""
    nodes = [node for node in model.graph.node if node.op_type == op_type]
    return nodes[len(nodes) // 2]


def verdict_of(tmp_path, name, plant=None, target="onnxruntime:optimization=none"):
    model = MODELS[name]()
    feed = feed_for(model)
    small = quantized(model, feed)
    if plant:
        plant(small)
    path = save_model(small, tmp_path / "quantized.onnx")
    return ask(tmp_path, save_model(model, tmp_path / "float.onnx"), feed, target, target_model=path)[0]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", MODELS)
def test_a_sound_quantization_is_rounding(tmp_path, name):
    verdict = verdict_of(tmp_path, name)
    assert verdict.verdict == "rounding", verdict.summary
    assert step(verdict, "is the target's model a sound").answer.startswith("yes")
    assert "quantization explains the error" in verdict.summary


@pytest.mark.lengthy
def test_a_quantization_of_other_weights(tmp_path):
    """Two rows are exchanged: every scale fits, and the difference is no larger than what int8 may cost elsewhere."""
    model, other = (MODELS["encoder"]() for _ in range(2))
    weights = {name for node in model.graph.node if node.op_type == "MatMul" for name in node.input}
    weight = next(t for t in other.graph.initializer if t.name in weights and len(t.dims) == 2)
    changed(other, weight.name, lambda array: array[[1, 0, *range(2, len(array))]])
    feed = feed_for(model)
    path = save_model(quantized(other, feed), tmp_path / "quantized.onnx")
    float_path = save_model(model, tmp_path / "float.onnx")
    verdict, _ = ask(tmp_path, float_path, feed, "onnxruntime:optimization=none", target_model=path)
    assert verdict.verdict == "model-changed", verdict.summary
    user = next(node.name for node in model.graph.node if weight.name in node.input)
    assert (verdict.culprits[0].node, verdict.culprits[0].change) == (user, "weight")
    assert "6 % of its rows or columns" in verdict.culprits[0].reason


@pytest.mark.parametrize("shared", [False, True], ids=["own weight", "copy of a shared one"])
def test_a_quantization_in_which_one_number_of_a_weight_is_another(tmp_path, shared):
    """All else is the original's rounded, the weight of the other reader included."""
    weight = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32) / 4
    other = weight if shared else weight.T.copy()

    def model_of(second, name="w2"):
        model = named(
            """<ir_version: 8, opset_import: ["": 17]> g (float[4,16] x, float[16,16] w1, float[16,16] w2)
              => (float[4,16] y) { a = MatMul(x, w1) r = Relu(a) s = MatMul(r, w2) y = Tanh(s) }""",
            "first", "relu", "second", "tanh",
        )  # fmt: skip
        del model.graph.input[1:]
        model.graph.node[2].input[1] = name
        constants = {"w1": weight, name: second}
        model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in constants.items())
        return model

    damaged = other.copy()
    damaged[3, 5] += 1.0
    feed = {"x": np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)}
    path = save_model(quantized(model_of(damaged), feed), tmp_path / "quantized.onnx")
    float_path = save_model(model_of(other, "w1" if shared else "w2"), tmp_path / "float.onnx")
    verdict, _ = ask(tmp_path, float_path, feed, "onnxruntime:optimization=none", target_model=path)
    assert verdict.verdict == "model-changed", verdict.summary
    assert [(culprit.node, culprit.change) for culprit in verdict.culprits] == [("second", "weight")]
    assert "1 of 256 numbers" in verdict.culprits[0].reason


@pytest.mark.parametrize(("second", "kind"), [((-0.15, 0.6), "rounding"), ((-0.6, 0.15), "quantization")])
def test_a_range_is_judged_by_the_numbers_of_all_feeds(tmp_path, second, kind):
    """A range of -1.28 to 1.27 is 3.4 times too wide for -0.6 to 0.15; for 256 numbers up to 0.6, 2.1 may be chance."""
    rng = np.random.default_rng(0)
    feeds = np.stack([rng.uniform(low, high, (8, 16)) for low, high in ((-0.6, 0.15), second)]).astype(np.float32)
    weight = numpy_helper.from_array(rng.standard_normal((16, 16)).astype(np.float32), "w")
    texts = [
        "{ r = Identity(x) y = MatMul(r, w) }",
        """<float step = {0.01}, uint8 zero = {128}>
        { q = QuantizeLinear(x, step, zero) r = DequantizeLinear(q, step, zero) y = MatMul(r, w) }""",
    ]
    paths = []
    for number, text in enumerate(texts):
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 17]> g (float[8,16] x) => (float[8,16] y) {text}'
        )
        model.graph.initializer.append(weight)
        for node in model.graph.node:
            node.name = node.output[0]
        paths.append(save_model(model, tmp_path / f"{number}.onnx"))
    verdict, _ = ask(tmp_path, paths[0], {"x": feeds}, "onnxruntime:optimization=none", target_model=paths[1])
    assert verdict.verdict == kind, verdict.summary


def test_the_axis_of_a_weight_is_named_though_a_quantizer_took_over_a_clip(tmp_path):
    """Without its quantizers the file lacks the Clip, so that it is another model until the weight is put right."""
    rng = np.random.default_rng(1)
    first, second = (rng.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    second *= np.linspace(0.2, 3.0, 16, dtype=np.float32)
    steps = np.abs(second).max(axis=0) / np.float32(127)
    texts = {
        "float": "<float low = {0}, float high = {6}> { a = MatMul(x, w1) r = Clip(a, low, high) y = MatMul(r, w2) }",
        "int8": """<float step = {0.0235}, uint8 zero = {0}>
        { a = MatMul(x, w1) q = QuantizeLinear(a, step, zero) r = DequantizeLinear(q, step, zero)
          w2 = DequantizeLinear<axis = 0>(stored, steps) y = MatMul(r, w2) }""",
    }
    constants = {"w1": first, "w2": second, "stored": np.rint(second / steps).astype(np.int8), "steps": steps}
    paths = {}
    for name, text in texts.items():
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 17]> g (float[8,16] x) => (float[8,16] y) {text}'
        )
        read = {value for node in model.graph.node for value in node.input}
        made = {value for node in model.graph.node for value in node.output}
        kept = [(key, array) for key, array in constants.items() if key in read - made]
        model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in kept)
        for node in model.graph.node:
            node.name = f"make_{node.output[0]}"
        paths[name] = save_model(model, tmp_path / f"{name}.onnx")
    feed = {"x": rng.standard_normal((8, 16)).astype(np.float32) * 2}
    verdict, _ = ask(tmp_path, paths["float"], feed, "onnxruntime:optimization=none", target_model=paths["int8"])
    assert verdict.verdict == "quantization", verdict.summary
    assert verdict.culprits[0].node == "make_w2"
    assert "its 16 scales fit axis 1, but are applied along axis 0" in verdict.culprits[0].reason


def test_a_mean_of_the_extremes_of_samples_cuts_off_one_number_of_each():
    """Of 16 numbers, that is 6 %, beside the 0.5 % of many numbers; 12 of 16 in 64 numbers are no such mean."""
    numbers = np.linspace(-1.0, 1.0, 64)
    pair = SimpleNamespace(of_weight=False)
    fits = {
        n: calibrate(numbers, np.float32(scale), None, axis=0, dtype=DType.INT8)
        for n, scale in ((4, 7.4e-3), (24, 5.4e-3))
    }
    assert {n: round(fit.clipped * 64) for n, fit in fits.items()} == {4: 4, 24: 20}
    assert QuantizerMisfit(pair, fits[4], None, 16).cuts_outliers
    assert not QuantizerMisfit(pair, fits[4], None, 1000).cuts_outliers
    assert not QuantizerMisfit(pair, fits[24], None, 16).cuts_outliers


@pytest.mark.lengthy
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("factor", "word"), [(0.05, "too small"), (60.0, "too large")], ids=["clipping", "coarse"])
def test_the_scale_of_an_activation(tmp_path, name, factor, word):
    node = []

    def plant(model):
        node.append(middle(model))
        changed(model, node[0].input[1], lambda scale: scale * np.float32(factor))

    verdict = verdict_of(tmp_path, name, plant)
    assert (verdict.verdict, verdict.culprits[0].node) == ("quantization", node[0].name), verdict.summary
    assert word in verdict.culprits[0].reason
    assert "calibrate again" in verdict.summary
    assert verdict.culprits[0].influence > 0.01
    assert verdict.kind.exit_code == 1


def test_the_scale_of_a_weight_and_a_zero_point(tmp_path):
    node = []

    def plant(model):
        node.append(middle(model, "DequantizeLinear"))
        node[0] = next(n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.name[0] != "x"
                       and n.input[0] in {t.name for t in model.graph.initializer})  # fmt: skip
        changed(model, node[0].input[1], lambda scale: scale * np.float32(3))

    verdict = verdict_of(tmp_path, "mlp", plant)
    assert (verdict.verdict, verdict.culprits[0].node) == ("quantization", node[0].name), verdict.summary


def test_a_zero_point(tmp_path):
    node = []

    def plant(model):
        node.append(next(n for n in model.graph.node if n.op_type == "QuantizeLinear"))
        changed(model, node[0].input[2], lambda zero: np.asarray(zero * 0 + 5, zero.dtype))

    verdict = verdict_of(tmp_path, "mlp", plant)
    assert (verdict.verdict, verdict.culprits[0].node) == ("quantization", node[0].name), verdict.summary
    assert "zero point 5 is wrong" in verdict.summary


def test_another_model_is_not_excused_by_its_quantizers(tmp_path):
    def plant(model):
        name = next(t.name for t in model.graph.initializer if t.name.endswith("bias") or t.name.endswith(".b"))
        changed(model, name, lambda bias: bias + np.float32(1.0))

    verdict = verdict_of(tmp_path, "mlp", plant)
    assert verdict.verdict == "model-changed", verdict.summary
    assert "it is another model" in step(verdict, "is the target's model a sound").answer


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("op_type", "kind", "words"),
    [
        ("QuantizeLinear", "zero-point", "it ignores the zero point"),
        ("DequantizeLinear", "zero-point", "it ignores the zero point"),
        ("DequantizeLinear", "channel-scale", "it takes the scale of the first channel for all"),
    ],
)
def test_an_engine_that_misreads_a_quantizer(tmp_path, op_type, kind, words):
    """Reference and target run the same quantized model; the target's op is wrong."""
    model = mlp()
    feed = feed_for(model)
    small = quantized(model, feed)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in small.graph.initializer}
    fitting = [
        node
        for node in small.graph.node
        if node.op_type == op_type
        and (constants[node.input[2]].any() if kind == "zero-point" else constants[node.input[1]].size > 1)
    ]
    target = f"fault:kind={kind},node={fitting[0].name}"
    verdict, _ = ask(tmp_path, save_model(small, tmp_path / "quantized.onnx"), feed, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("quantization", fitting[0].name), verdict.summary
    assert words in verdict.culprits[0].reason


@pytest.mark.lengthy
@pytest.mark.parametrize(("name", "of_weight"), [("mlp", True), ("mlp", False), ("encoder", False)])
def test_a_nan_that_a_later_quantizer_hides_is_no_matter_of_scales(tmp_path, name, of_weight):
    """QuantizeLinear makes a number of a NaN again, so that the outputs are finite, and off by little."""
    model = MODELS[name]()
    feed = feed_for(model)
    small = quantized(model, feed)
    constants = {tensor.name for tensor in small.graph.initializer}
    fitting = [
        n for n in small.graph.node if n.op_type == "DequantizeLinear" and (n.input[0] in constants) == of_weight
    ]
    target = f"fault:kind=nan,node={fitting[1].name}"
    verdict, _ = ask(tmp_path, save_model(small, tmp_path / "quantized.onnx"), feed, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", fitting[1].name), verdict.summary


@pytest.mark.lengthy
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("level", ["basic", "all"])
def test_an_engine_that_computes_in_integers_is_healthy(tmp_path, name, level):
    model = MODELS[name]()
    feed = feed_for(model)
    small = quantized(model, feed)
    for tensor in small.graph.initializer:  # 7 bits: ONNX Runtime's AVX2 kernels add uint8 x int8 in saturating int16
        if numpy_helper.to_array(tensor).dtype == np.int8 and tensor.name.endswith("_quantized"):
            changed(small, tensor.name, lambda integers: (integers // 2).astype(np.int8))
            changed(small, tensor.name.replace("_quantized", "_scale"), lambda scale: scale * np.float32(2))
    path = save_model(small, tmp_path / "q.onnx")
    verdict, _ = ask(tmp_path, path, feed, f"onnxruntime:optimization={level}")
    assert verdict.kind.exit_code == 0, (verdict.verdict, verdict.summary)


def large_mlp():
    """Return a quantized model some of whose sums do not fit, and its feed."""
    model = mlp()
    feed = {name: np.abs(array) + np.float32(0.5) for name, array in feed_for(model).items()}
    return quantized(model, feed), feed


@pytest.mark.lengthy
def test_sums_that_an_engine_cuts_off_in_int16(tmp_path, monkeypatch):
    be_processor(monkeypatch, OLDER)
    file = engine_file(SATURATING)
    small, feed = large_mlp()
    path = save_model(small, tmp_path / "q.onnx")
    target = f"script:{file}:Engine"
    verdict, _ = ask(tmp_path, path, feed, target)
    assert (verdict.verdict, verdict.culprits[0].op_type) == ("quantization", "Gemm"), verdict.summary
    assert "saturating int16" in verdict.summary
    assert "cure: weights in uint8 (QUInt8) or in 7 bits (reduce_range)" in verdict.culprits[0].reason
    be_processor(monkeypatch, NEWER)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    verdict, _ = ask(elsewhere, path, feed, target)
    assert verdict.verdict != "quantization"


@pytest.mark.skipif(not sums_in_int16(), reason="the processor has VNNI, or is none of x86")
def test_onnx_runtime_cuts_sums_off_in_int16(tmp_path):
    small, feed = large_mlp()
    verdict, _ = ask(tmp_path, save_model(small, tmp_path / "q.onnx"), feed, "onnxruntime")
    assert (verdict.verdict, verdict.culprits[0].op_type) == ("quantization", "Gemm"), verdict.summary
    assert "saturating int16" in verdict.summary


@pytest.mark.parametrize("factor", [1.0, 20.0], ids=["fits", "coarse"])
def test_a_quantized_model_by_itself_is_told_where_it_does_not_fit(tmp_path, factor):
    model = mlp()
    feed = feed_for(model)
    small = quantized(model, feed)
    node = middle(small)
    changed(small, node.input[1], lambda scale: scale * np.float32(factor))
    verdict, _ = ask(tmp_path, save_model(small, tmp_path / "q.onnx"), feed, "onnxruntime:optimization=basic")
    answer = step(verdict, "do the quantizers fit").answer
    assert verdict.verdict in ("match", "rounding")  # both engines compute the same, whatever its worth
    assert answer.startswith("yes") if factor == 1.0 else f" of 5 do not: '{node.name}'" in answer, answer
