"""Precision with known answers: readings made of numbers, and a small model with two nodes that fp16 cannot hold."""

import math

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensortriage.precision.goal import GoalReading
from tensortriage_testing import residual_dag


class Additive:
    """Readings of an engine made of numbers; counts what was asked."""

    def __init__(self, ratios, *, pairs=(), worse=1.0, floor=0.0):
        self.ratios = ratios
        self.pairs = pairs
        self.worse = worse
        self.floor = floor
        self.asked = []

    @property
    def items(self):
        return tuple(self.ratios)

    def read(self, kept):
        self.asked.append(frozenset(kept))
        low = [name for name in self.ratios if name not in kept]
        power = sum(self.ratios[name] ** 2 for name in low) + self.floor**2
        power += sum(extra**2 for one, other, extra in self.pairs if one in low and other in low)
        ratio = math.sqrt(power) * self.worse
        return GoalReading(ratio <= 1.0, ratio, ratio / 100.0, 10_000, "y", "sample", (ratio,))

    def only(self, low):
        return self.read(frozenset(self.ratios) - set(low))


def write_loud(folder):
    """Write ``m.onnx``, with two Sums whose constants fp16 turns into infinities, and ``m.npz``; return their names."""
    model = residual_dag(24, seed=5)
    places = [name for node in model.graph.node for name in node.output][:-1]
    made = []
    for number, place in enumerate((places[4], places[15])):
        name = f"/loud_{number}"
        constants = [f"{name}.{sign}" for sign in ("plus", "minus")]
        for constant, sign in zip(constants, (1, -1), strict=True):
            model.graph.initializer.append(numpy_helper.from_array(np.float32([1e5 * sign]), constant))
        for node in model.graph.node:
            for index, value in enumerate(node.input):
                if value == place:
                    node.input[index] = f"{name}_output"
        node = helper.make_node("Sum", [constants[0], constants[1], place], [f"{name}_output"], name=name)
        position = next(i for i, other in enumerate(model.graph.node) if place in other.output)
        model.graph.node.insert(position + 1, node)
        made.append(name)
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "m.npz", x=np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32))
    return made


FUSING = """
import onnx, onnxruntime as ort

REGION = {region!r}

class Fusing:
    def compile(self, model, options):
        return Session(onnx.load(model), 1.5 if options.get("precision") is None else float("inf"))

class Session:
    '''Runs REGION as one kernel, wrong when typed otherwise in part, infinite when the engine is to type it.'''
    def __init__(self, model, harm):
        graph = onnx.shape_inference.infer_shapes(model).graph
        types = {{v.name: v.type.tensor_type.elem_type for v in graph.value_info}}
        found = {{types[n.output[0]] for n in graph.node if n.name in REGION}}
        torn = len(found) > 1 or harm != 1.5
        self.factor = harm if torn else 1.0
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = ort.InferenceSession(model.SerializeToString(), options)

    def run(self, feed):
        names = [o.name for o in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, feed)))
        return {{name: array * self.factor for name, array in found.items()}}

    def plan(self):
        return [{{"name": "fused", "nodes": REGION}}]
"""


def write_fusing(folder, region):
    """Write an engine that runs some nodes as one, and is wrong when their types differ; return its spec."""
    (folder / "fusing.py").write_text(FUSING.format(region=region))
    return f"script:{folder / 'fusing.py'}:Fusing"
