"""Which file TensorRT builds, and by which typing a format is reached, for releases that offer different ways."""

import json
import tempfile
from pathlib import Path

import pytest

from models import parse, write
from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage_engines.tensorrt.build_inputs import (
    Prepared,
    converting,
    is_quantized,
    is_typed,
    open_inputs,
    shape_inputs,
)
from tensortriage_engines.tensorrt.options import OPTIONS, read_settings

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[N, 4] x) => (float[N, 4] y) <float[4, 4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}> {
   [mm] a = MatMul (x, w)
   [act] b = Relu (a)
   [exp] c = Exp (b)
   [add] d = Add (c, x)
   [soft] y = Softmax (d)
}
"""


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "model.onnx", MODEL)


def test_a_typed_model_is_recognised(path):
    assert not is_typed(Model.load(path))
    text = MODEL.replace(
        "[exp] c = Exp (b)", "[h] b2 = Cast<to = 10> (b)\n   [exp] b3 = Exp (b2)\n   [f] c = Cast<to = 1> (b3)"
    )
    assert is_typed(Model.load(write(path.parent / "typed.onnx", text)))


QUANTIZED = """
    g (float[4] x) => (float[4] y) <float s = {0.5}, int8 z = {0}> {
        [q] a = QuantizeLinear(x, s, z)
        [d] y = DequantizeLinear(a, s, z)
    }"""


@pytest.mark.parametrize(
    ("text", "typed", "quantized"),
    [
        (QUANTIZED, True, True),
        ("g (float16[4] x) => (float16[4] y) { y = Relu(x) }", True, False),
        ("g (float[4] x) => (float[4] y) { a = Cast<to = 10>(x)  y = Cast<to = 1>(a) }", True, False),
        ("g (float[4] x) => (float[4] y) { a = Cast<to = 7>(x)  y = Cast<to = 1>(a) }", False, False),
    ],
)
def test_what_says_that_a_model_is_typed(text, typed, quantized):
    model = parse(text)
    assert (is_typed(model), is_quantized(model)) == (typed, quantized)


OLD, NEW = ("fp16", "int8"), ()


def prepared(path, weak, ranges=None, **options):
    """Return name and weight types of the file that is built, and the words, in a release with weak formats."""
    settings = read_settings(read_options(options, OPTIONS))
    with Prepared(Model.load(path), path, settings, ranges or {}, lambda _: {"weak": list(weak)}) as (file, words):
        assert file.is_file()
        types = {spec.dtype.label for spec in Model.load(file).graph.initializers.values()}
    assert (file == path) is file.exists()
    return file.name, types, words


@pytest.mark.parametrize(
    ("options", "weak", "typing", "precision", "types"),
    [
        ({}, OLD, "weak", "tf32", "float32"),
        ({}, NEW, "strong", "tf32", "float32"),
        ({"precision": "fp32"}, OLD, "weak", "fp32", "float32"),
        ({"precision": "fp16"}, OLD, "weak", "fp16", "float32"),
        ({"precision": "fp16"}, NEW, "strong", "fp16", "float16"),
        ({"precision": "fp16", "typing": "strong"}, OLD, "strong", "fp16", "float16"),
        ({"precision": "bf16"}, OLD, "strong", "bf16", "bfloat16"),
        ({"precision": "int8"}, OLD, "weak", "int8", "float32"),
        ({"precision": "mixed"}, OLD, "strong", "mixed", "float32"),
    ],
)
def test_the_way_to_a_format(path, options, weak, typing, precision, types):
    name, found, words = prepared(path, weak, **options)
    assert (words["typing"], words["precision"]) == (typing, precision)
    assert name == path.name
    assert found == {types}
    assert words["model_name"] == (str(path) if types == "float32" else f"model.{precision}.onnx")


def test_a_typed_model_is_built_as_it_is(tmp_path):
    path = write(tmp_path / "model.onnx", QUANTIZED)
    for options, precision in (({}, "mixed"), ({"precision": "int8"}, "int8"), ({"precision": "tf32"}, "tf32")):
        _, _, words = prepared(path, ("fp16",), **options)
        assert (words["precision"], words["typing"]) == (precision, "strong")


def test_kept_nodes_are_told_or_left_out_of_the_conversion(path):
    _, _, words = prepared(path, OLD, precision="fp16", kept="mm")
    told = json.loads(words["kept"])
    assert (told["nodes"], told["values"]["a"], told["values"]["y"]) == (["mm"], "mm", "soft")
    _, types, words = prepared(path, NEW, precision="fp16", kept="mm")
    assert (types, "kept" in words) == ({"float32"}, False)


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"precision": "fp16", "typing": "weak"}, "typing-unavailable"),
        ({"precision": "fp16", "fallback": "bf16"}, "typing-unavailable"),
        ({"precision": "mixed", "kept": "mm"}, "typing-unavailable"),
        ({"precision": "int8"}, "quantizers-missing"),
        ({"precision": "fp16", "kept": "stranger"}, "node-unknown"),
    ],
)
def test_what_a_release_cannot_do_is_refused_and_leaves_no_files(path, tmp_path, monkeypatch, options, slug):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with pytest.raises(UsageError) as caught:
        prepared(path, NEW, **options)
    assert caught.value.slug == slug
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_engine_that_is_loaded_needs_no_preparation(path):
    name, _, words = prepared(path, OLD, {"x": ((2, 4),) * 3}, load_engine=str(path), **{"profile.z": "1"})
    assert name == path.name
    assert words == {"load_engine": str(path), "profile.x": "2x4:2x4:2x4", "profile.z": "1:1:1"}


def test_every_value_is_listed_for_the_debug_listener_of_old_releases(path):
    assert json.loads(prepared(path, OLD, observe="debug")[2]["observe"]) == ["a", "b", "c", "d", "y"]
    assert prepared(path, OLD, observe="unfused")[2]["observe"] == "unfused"


def test_the_command_that_converts_is_told():
    found = read_settings(read_options({"kept": "a b"}, OPTIONS))
    path, words = Path("/m y/m.onnx"), {"model_name": "m.fp16.onnx", "precision": "fp16"}
    assert converting(path, found, {"model_name": str(path)}) == converting(path, found, {}) == ""
    assert converting(path, found, words) == (
        "triage convert '/m y/m.onnx' --precision fp16 --keep-nodes 'a b' -o m.fp16.onnx && "
    )


def test_which_inputs_have_to_be_fed_before_a_build(tmp_path):
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    net (float[N, 4] x, int64[2] s, float[3] f) => (float[A, B] y, float[3] z) { y = Reshape (x, s)  z = Relu (f) }
    """
    model = Model.load(write(tmp_path / "m.onnx", text))
    assert open_inputs(model, read_settings(read_options({}, OPTIONS))) == ("x",)
    assert shape_inputs(model, read_settings(read_options({}, OPTIONS))) == ("s",)
    assert open_inputs(model, read_settings(read_options({"profile.x": "1x4:2x4"}, OPTIONS))) == ()
    assert shape_inputs(model, read_settings(read_options({"load_engine": str(tmp_path / "m.onnx")}, OPTIONS))) == ()
