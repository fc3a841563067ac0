"""What is mutated: small models of every kind of structure, and data of every format."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

import decision_models
import models
from tensortriage.inputs.files.data_file import DataFormat, Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage_engines.conformance.models import examples
from tensortriage_testing.models import conv_net, encoder, feed_for
from tensortriage_testing.models import mlp as plain_mlp
from tensortriage_testing.quantized_models import quantized

GOLDEN = Path(__file__).resolve().parents[1] / "golden/polygraphy"
FUNCTION = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
g (float[2, 3] x) => (float[2, 3] y) { a = own.Twice(x) y = own.Shifted <by = 2.0> (a) }
<domain: "own", opset_import: ["": 18]> Twice (v) => (w) { w = Add(v, v) }
<domain: "own", opset_import: ["": 18]> Shifted <by> (v) => (w) {
    c = Constant <value_float: float = @by> () w = Add(v, c)
}
"""
SHAPES = """g (float[N, 4] x) => (float[N, 4] y) <int64[2] flat = {-1, 4}, int64[1] one = {1}> {
    s = Shape(x) big = ConstantOfShape <value = float {0.5}> (s) r = Range(zero, three, step)
    e = Expand(x, s) a = Add(e, big) t = Tile(a, reps) u = Reshape(t, flat)
    starts = Constant <value_ints = [0]> () ends = Constant <value_ints = [4]> () y0 = Slice(u, starts, ends, one)
    p = Pad(y0, pads) y = Relu(p) }"""


@functools.cache
def model_files():
    """Return the bytes of the models by name."""
    found = {"function": models.proto(FUNCTION), "shapes": _shapes()}
    found |= {
        name: ir.to_proto(make().ir)
        for name, make in (("if", models.with_if), ("loop", models.with_loop), ("mlp", models.mlp))
    }
    small = plain_mlp(layers=2, width=8, features=4)
    found |= {"quantized": quantized(small, feed_for(small)), "detector": decision_models.detector(anchors=20)}
    found |= {
        "encoder": encoder(layers=1, width=16, heads=2, tokens=8, vocabulary=50),
        "conv": conv_net(blocks=1, channels=4, size=8),
    }
    found |= {example.name: example.proto for example in examples() if not example.external}
    return {name: message.SerializeToString() for name, message in found.items()}


def _shapes():
    message = models.proto(SHAPES)
    numbers = {
        "zero": np.int64(0),
        "three": np.int64(3),
        "step": np.int64(1),
        "reps": np.array([1, 1]),
        "pads": [0] * 4,
    }
    for name, value in numbers.items():
        message.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value, np.int64), name))
    return message


TENSORS = {"x": np.arange(8, dtype=np.float32).reshape(2, 4), "n": np.array(3), "h": np.ones(3, np.float16)}


@functools.cache
def data_files():
    """Return the bytes of a data file of every format, by name; ``folder/name`` where the format is a folder."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("f.npz", "f.safetensors", "f.json", "f.store", "test_data_set_0", "npys"):
            wanted = DataFormat.NPY if name == "npys" else None
            save(folder / name, [("", [Iteration(TENSORS)])], kind=Kind.INPUTS, wanted=wanted)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    for name in ("outputs.json", "legacy_inputs.json", "legacy_outputs.json", "accuracy.json", "inputs.json"):
        found[f"golden_{name}"] = (GOLDEN / name).read_bytes()
    return found
