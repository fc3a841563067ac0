"""Engines that run whatever model they are given, and compute one operator otherwise in each: the op is seen alone.

The edit is written by hand in the engine, and not by what is measured.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from meanings_cases import T, X, picture, tokens
from meanings_kinds import CHANNELS, LAYER, NORMED, QUANTIZED, U, _layer, _one
from reports import normal

RUNS = """
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


class Other:
    def compile(self, model_path, options):
        made, self.after = onnx.load(model_path), []
        for node in list(made.graph.node):
            if node.op_type == {op!r}:
                at = list(made.graph.node).index(node)

                def constant(array):
                    name = f"{{node.output[0]}}/constant{{len(made.graph.initializer)}}"
                    made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
                    return name

                def before(kind, *inputs, **attributes):
                    name = f"{{node.output[0]}}/before{{len(made.graph.node)}}"
                    made.graph.node.insert(at, helper.make_node(kind, inputs, [name], **attributes))
                    return name

                def after(kind, *others, **attributes):
                    result, name = node.output[0], node.output[0] + "/own"
                    node.output[0] = name
                    index = list(made.graph.node).index(node)
                    made.graph.node.insert(index + 1, helper.make_node(kind, [name, *others], [result], **attributes))

                def without(*names):
                    kept = [a for a in node.attribute if a.name not in names]
                    del node.attribute[:]
                    node.attribute.extend(kept)

                arrays = {{t.name: numpy_helper.to_array(t) for t in made.graph.initializer}}
                {edit}
        del made.graph.value_info[:]
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.network = onnxruntime.InferenceSession(made.SerializeToString(), options)
        self.names = [o.name for o in self.network.get_outputs()]
        return self

    def run(self, feed):
        return dict(zip(self.names, self.network.run(self.names, feed)))
"""


@dataclasses.dataclass(frozen=True)
class EngineCase:
    """One network and an engine.

    Attributes:
        name: What it is.
        model: The model.
        feed: The inputs.
        op: The operator.
        edit: Python that changes each ``node`` of that operator.
        said: Regular expressions that the sentence has to hold; empty where nothing may be said.
    """

    name: str
    model: onnx.ModelProto
    feed: dict[str, np.ndarray]
    op: str
    edit: str
    said: Sequence[str] = ()

    def write(self, folder: Path) -> dict[str, str]:
        """Write the case's files; return what `DiagnoseRequest` takes of engines."""
        onnx.save(self.model, folder / "model.onnx")
        np.savez(folder / "inputs.npz", **self.feed)
        lines = "\n                ".join(self.edit.splitlines())
        (folder / "app.py").write_text(RUNS.format(op=self.op, edit=lines))
        return {"target": f"script:{folder / 'app.py'}:Other"}


BLOCK = """k = Conv<kernel_shape=[3,3], pads=[2,2,2,2], dilations=[2,2]>(c, u, b2)
        n = InstanceNormalization(k, g, s)
        l = PRelu(n, slope)
        m = Mul(l, row)
        a = MaxPool<kernel_shape=[2,2]>(m)
        d = Pad(a, pads, three)"""
WEIGHTS = U | {
    "g": 1 + normal(3, 8, scale=0.3), "s": normal(4, 8), "slope": normal(6, 8, 1, 1), "row": normal(5, 12),
    "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "three": _one(3),
}  # fmt: skip
ROWS = """n = LayerNormalization(c, g, s)
        k = Clip(n, lo, hi)
        e = Celu<alpha=0.4>(k)
        t = Transpose<perm=[0,2,1]>(e)
        q = MatMul(n, t)
        p = Softmax(q)
        v2 = MatMul(p, e)
        x2 = Exp(v2)
        y2 = Sub(x2, c)
        r = ReduceMax<axes=[2]>(y2)
        d = Div(y2, r)"""
FACTORS = NORMED | {"lo": _one(-0.9), "hi": _one(1.1)}
FIRST = "after('Mul', constant(np.array([1, 0], np.float32).reshape(2, 1, 1)))"


def engines() -> list[EngineCase]:
    """Return engines that differ in one operator."""
    block, rows = picture(BLOCK, **WEIGHTS), tokens(ROWS, **FACTORS)
    spread = picture("d = Conv<kernel_shape=[3,3], dilations=[2,2]>(c, u, b2)", **U)
    layer = tokens(LAYER.format(op="RNN", inputs="", more=", clip=0.4"), **_layer(1))
    quantized = tokens(QUANTIZED.format(s="s"), **CHANNELS)
    swapped = "node.input[0], node.input[1] = node.input[1], node.input[0]"
    return [
        EngineCase("dilations not read", spread, X, "Conv", "without('dilations')", ("Conv_d", "dilations")),
        EngineCase("scale and shift exchanged", block, X, "InstanceNormalization",
                   "node.input[1], node.input[2] = node.input[2], node.input[1]",
                   ("InstanceNormalization", "exchanged")),
        EngineCase("slope of the first channel", block, X, "PRelu",
                   "node.input[1] = constant(np.full_like(arrays['slope'], arrays['slope'].flat[0]))",
                   ("PRelu", "first number")),
        EngineCase("row read as column", block, X, "Mul", "node.input[1] = constant(arrays['row'].reshape(12, 1))",
                   ("Mul", "axis 2")),
        EngineCase("value of a Pad left out", block, X, "Pad", "del node.input[2]",
                   ("Pad", "constant_value.*left out")),
        EngineCase("bias left out", rows, T, "LayerNormalization", "del node.input[2]",
                   ("LayerNormalization", "B were left out")),
        EngineCase("lower bound left out", rows, T, "Clip", "node.input[1] = ''", ("Clip", "min were left out")),
        EngineCase("alpha not read", rows, T, "Celu", "without('alpha')", ("Celu", "alpha")),
        EngineCase("operands exchanged", rows, T, "Sub", swapped, ("Sub", "exchanged")),
        EngineCase("Softmax along another axis", rows, T, "Softmax",
                   "without('axis')\nnode.attribute.append(helper.make_attribute('axis', 1))", ("Softmax", "axis")),
        EngineCase("minimum for maximum", rows, T, "ReduceMax", "node.op_type = 'ReduceMin'",
                   ("ReduceMax", "ReduceMin")),
        EngineCase("axes not read", rows, T, "ReduceMax", "without('axes')", ("ReduceMax", "axes")),
        EngineCase("clip not read", layer, T, "RNN", "without('clip')", ("RNN", "clip")),
        EngineCase("scale of the first channel", quantized, T, "DequantizeLinear",
                   "node.input[1] = constant(np.full_like(arrays['s'], arrays['s'][0]))",
                   ("DequantizeLinear", "first number")),
        EngineCase("activation left out", rows, T, "Exp", "node.op_type = 'Identity'",
                   ("Exp", "left out|did nothing|passes on|equals")),
        EngineCase("first of the batch alone", rows, T, "Softmax", FIRST,
                   ("Softmax", "axis 0|batch|indices? 1|second")),
        EngineCase("first of the batch for all", rows, T, "Exp",
                   "after('Gather', constant(np.array([0, 0])), axis=0)", ("Exp", "axis 0|batch|copies|same")),
        EngineCase("tail of a vector", rows, T, "Celu",
                   "after('Mul', constant((np.arange(16) < 12).astype(np.float32)))", ("Celu", "12|last 4")),
    ]  # fmt: skip


def sound_engines() -> list[EngineCase]:
    """Return engines that are wrong at an op in a way that no meaning is, or right."""
    block, rows = picture(BLOCK, **WEIGHTS), tokens(ROWS, **FACTORS)
    noise = "node.input[1] = constant(arrays['{0}'] + np.random.default_rng(3).standard_normal(arrays['{0}'].shape)"
    noise += ".astype(np.float32) * np.float32(0.1))"
    return [
        EngineCase("nothing", block, X, "Tanh", "pass"),
        EngineCase("nothing at rows", rows, T, "Tanh", "pass"),
        EngineCase("a factor", rows, T, "Celu", "after('Mul', constant(np.float32(1.07)))"),
        EngineCase("noise in slopes", block, X, "PRelu", noise.format("slope")),
        EngineCase("noise in scales", rows, T, "LayerNormalization", noise.format("g")),
        EngineCase("a Sin behind", rows, T, "Sub", "after('Sin')"),
        EngineCase("cut off", block, X, "InstanceNormalization",
                   "after('Min', constant(np.float32(0.8)))"),
        EngineCase("an offset", block, X, "MaxPool", "after('Add', constant(np.float32(0.3)))"),
    ]  # fmt: skip
