"""MNN behind its own converter, where its environment was made (``triage engines install mnn``)."""

import subprocess
from contextlib import closing

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from converted_engines import EXAMPLES, IMAGES, MODEL, check_inner_values
from diagnosing import ask, step
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.errors import BuildFailed, UsageError
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments
from tensortriage_engines.mnn.engine import MnnEngine

MADE = [environment for environment in environments() if environment.engine == "mnn"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install mnn")
ENGINE = MnnEngine()
OPTIONS = {"worker": MADE[0].python} if MADE else {}


def test_it_conforms():
    report = check_engine_conformance(ENGINE, OPTIONS)
    assert len(report.passed) + len(report.refused) >= 30


def test_inner_values_are_those_of_the_model(tmp_path):
    nodes, planned = check_inner_values(ENGINE, OPTIONS, tmp_path, fewest=15)
    assert planned == nodes


def test_large_convolutions_are_computed_by_winograd_in_large_tiles(tmp_path):
    text = "g (float[1,64,56,56] x) => (float[1,64,56,56] y) { y = Conv<pads = [1,1,1,1]>(x, w) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    random = np.random.default_rng(0)
    weight = random.standard_normal((64, 64, 3, 3), np.float32) / 24
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    feed = {"x": random.standard_normal((1, 64, 56, 56), np.float32)}

    def made(engine, options):
        with closing(engine.compile(tmp_path / "m.onnx", options)) as session:
            return session.run(feed)["y"]

    exact = made(Float64Engine(), {})
    off = {tile: rms(made(Float64Engine(), {"rounding": "results", "winograd": tile}) - exact) for tile in "46"}
    found = rms(made(ENGINE, OPTIONS) - exact)
    assert 10 * off["4"] < found < 1.4 * off["6"]  # 1.8e-6, 1.6e-4 and 1.8e-4 with MNN 3.6.1


def rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def test_a_model_is_converted_once_per_case(tmp_path):
    engine = MnnEngine()
    engine.keep_in(tmp_path, engines=True)
    with closing(engine.compile(MODEL, OPTIONS)) as session:
        first = session.run({"image": IMAGES[:3]})["logits"]
        assert session.info["conversion_seconds"] > 0
    assert len(list(tmp_path.iterdir())) == 1
    with closing(engine.compile(MODEL, {**OPTIONS, "threads": "2"})) as session:  # the runtime's business
        np.testing.assert_allclose(session.run({"image": IMAGES[:3]})["logits"], first, atol=1e-5)
        assert "conversion_seconds" not in session.info
    with closing(engine.compile(MODEL, {**OPTIONS, "gelu": "exact"})) as session:
        assert session.info["conversion_seconds"] > 0


def test_a_refusal_is_told_in_the_words_of_the_converter(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match=r"mnnconvert failed: .*Unheard"):
        ENGINE.compile(tmp_path / "m.onnx", OPTIONS)


def test_an_approximated_gelu_is_rounding_and_told_so(tmp_path):
    verdict, _ = ask(tmp_path, EXAMPLES / "digits_vit.onnx", {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python}")
    assert verdict.verdict == "rounding"
    assert "Div + Erf + Add + Mul + Mul as one: approximated function" in verdict.summary
    answer = step(verdict, "in which configuration does the target break?").answer
    assert answer == "right with precision=fp32,gelu=exact, wrong with as given"


def test_gelus_one_behind_the_other_in_a_given_file_are_no_fault_of_the_second(tmp_path):
    gelu = """
        {v}d = Div({v}, root)  {v}e = Erf({v}d)  {v}p = Add({v}e, one)  {v}m = Mul({v}, {v}p)  {v}g = Mul({v}m, half)"""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,6,16] x) => (float[1,6,4] y)
        <float root = {{1.4142135}}, float one = {{1}}, float half = {{0.5}}> {{
        [first] u = MatMul(x, a)  h = Add(u, i) {gelu.format(v="h")}
        [second] w = MatMul(hg, b)  k = Add(w, j) {gelu.format(v="k")}
        [last] y = MatMul(kg, c) }}"""
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    for name, shape in (("a", (16, 32)), ("b", (32, 32)), ("c", (32, 4)), ("i", (32,)), ("j", (32,))):
        array = rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[0]))
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "m.onnx")
    engine = MnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    engine.compile(tmp_path / "m.onnx", OPTIONS).close()
    spec = f"mnn:worker={MADE[0].python},file={next((tmp_path / 'kept').iterdir())}"
    feed = {"x": rng.standard_normal((1, 6, 16), np.float32)}
    verdict, _ = ask(tmp_path, tmp_path / "m.onnx", feed, spec)
    assert verdict.verdict == "rounding", verdict.summary
    assert "2 Erf: approximated function, seen on MNN" in verdict.summary


def test_a_weight_edited_in_the_converted_file_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the file itself shows the fault."""
    engine = MnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    engine.compile(MODEL, OPTIONS).close()
    content = next((tmp_path / "kept").iterdir()).read_bytes()
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    assert array.tobytes() in content
    file = tmp_path / "edited.mnn"
    file.write_bytes(content.replace(array.tobytes(), (array * np.float32(1.1)).tobytes()))
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python},file={file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")


CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"
CHANNELS_LAST = """
import sys
import numpy as np, MNN.expr as F
x = F.placeholder([1, 5, 4, 3], F.NHWC, F.float)
x.name = "theirs"
y = F.reduce_sum(x * F.const(np.float32([1, 2, 3]), [1, 1, 1, 3], F.NHWC, F.float), [3], False)
y.name = "sum"
F.save([y], sys.argv[1])
"""


@pytest.mark.parametrize("api", ["module", "session"])
def test_a_file_with_channels_last_and_names_of_its_own_is_fed_so(api, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,5,4] x) => (float[1,5,4] y)
      <float[1,3,1,1] w = {1, 2, 3}, int64[1] axes = {1}> { a = Mul(x, w) y = ReduceSum<keepdims = 0>(a, axes) }"""
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    subprocess.run([MADE[0].python, "-c", CHANNELS_LAST, tmp_path / "m.mnn"], check=True, capture_output=True)
    feed = {"x": np.random.default_rng(0).standard_normal((1, 3, 5, 4), np.float32)}
    target = f"mnn:worker={MADE[0].python},api={api},file={tmp_path / 'm.mnn'}"
    verdict, _ = ask(tmp_path, tmp_path / "m.onnx", feed, target)
    told = step(verdict, "which data layout does the given file expect?").answer
    assert told == "'x' as 'theirs' with axes nhwc, 'y' as 'sum': no other order fits"
    assert verdict.verdict == "match", verdict.summary


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_weights_of_a_sound_file_in_another_format_are_no_fault(precision, tmp_path):
    """They were faults of a Gemm and of a Conv."""
    engine = MnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    engine.compile(MODEL, {**OPTIONS, "precision": precision}).close()
    file = next((tmp_path / "kept").iterdir())
    with closing(ENGINE.compile(MODEL, {**OPTIONS, "file": str(file)})) as session:
        assert session.query("ways", {"image": IMAGES[:4]})[0]["weights"] == precision
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python},file={file}")
    told = step(verdict, "which data layout does the given file expect?").answer
    expected = (
        "rounding" if precision == "int8" else "inconclusive"
    )  # MNN cuts fp16 weights off: 5x what rounding costs
    assert (verdict.verdict, f"its weights are {precision}" in told) == (expected, True), verdict.summary


def test_weights_whose_cost_nothing_predicts_are_not_judged(tmp_path):
    words = ["-f", "ONNX", "--modelFile", str(MODEL), "--MNNModel", "m.mnn", "--bizCode", "t", "--weightQuantBits", "4"]
    subprocess.run([MADE[0].python, "-c", CONVERT, *words], check=True, capture_output=True, cwd=tmp_path)
    with pytest.raises(UsageError, match="are int4, and the cost of that is not predicted"):
        ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python},file={tmp_path / 'm.mnn'}")


def test_a_fault_of_one_of_its_apis_is_told_as_that(tmp_path):
    """Modules of MNN 3.6.1 feed a GlobalAveragePool wrong numbers where inputs are NC4HW4; sessions do not."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,4,1,1] y) {
        a = Conv<pads = [1, 1, 1, 1]>(x, w)  b = Mul(a, a)  [mean] m = GlobalAveragePool(b)  y = Sigmoid(m) }"""
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "m.onnx")
    words = ["-f", "ONNX", "--modelFile", "m.onnx", "--MNNModel", "m.mnn", "--bizCode", "t", "--keepInputFormat=0"]
    subprocess.run([MADE[0].python, "-c", CONVERT, *words], check=True, capture_output=True, cwd=tmp_path)
    feed = {"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)}
    target = f"mnn:worker={MADE[0].python},file={tmp_path / 'm.mnn'}"
    verdict, _ = ask(tmp_path, tmp_path / "m.onnx", feed, f"{target},api=session")
    assert verdict.verdict == "match", verdict.summary
    verdict, _ = ask(tmp_path, tmp_path / "m.onnx", feed, target)
    told = [each.answer for each in verdict.steps if each.question.startswith("in which configuration")]
    assert told == ([] if verdict.verdict == "match" else ["right with api=session, wrong with as given"])


def test_a_weight_of_an_int8_file_that_is_two_per_cent_off_is_named(tmp_path):
    """It passed as rounding: int8 was expected to cost as much."""
    model = onnx.load(MODEL)
    node = next(node for node in model.graph.node if node.op_type == "Conv")
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[1])
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.02), tensor.name))
    onnx.save(model, tmp_path / "other.onnx")
    engine = MnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    engine.compile(tmp_path / "other.onnx", {**OPTIONS, "precision": "int8"}).close()
    file = next((tmp_path / "kept").iterdir())
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python},file={file}")
    assert (verdict.verdict, [each.node for each in verdict.culprits]) == ("model-changed", [node.name])
    assert "1.02 times the original's" in verdict.summary
