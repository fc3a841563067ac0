"""Random directed acyclic graphs of operators on 4 x 4 matrices, with unused values among them, for hypothesis."""

import dataclasses
import re

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import strategies as st

import models
from tensortriage.model.model import Model

STEPS = {
    **{op: f"[N] V = {op}(L)" for op in ("Neg", "Relu", "Tanh", "Abs", "Transpose", "Sigmoid", "Softmax")},
    **{op: f"[N] V = {op}(L, R)" for op in ("Add", "Sub", "Mul", "Max", "MatMul")},
    "omitted operand": "[Nc] Vc = Constant <value = float {0.5}> () [N] V = Clip(L, , Vc)",
    "two results": "[Ns] Va, Vb = Split <num_outputs = 2> (L) [N] V = Concat <axis = 0> (Vb, Va)",
    "a result nobody uses": "[N] V, Vm = Dropout(L)",
    "gathered": "[Nb] Vb = Concat <axis = 0> (L, R) [N] V = Gather(Vb, rows)",
    "constant": "[Nc] Vc = Constant <value = float[1, 4] {0.1, -0.7, 1.3, 0.9}> () [N] V = Mul(Vc, L)",
    "weight": "[N] V = MatMul(L, weight)",
    "shape": "[Ns] Vs = Shape(R) [Nf] Vf = Reshape(L, flat) [N] V = Reshape(Vf, Vs)",
    "branch": "[Ns] Vs = ReduceSum <keepdims = 0> (L) [Ng] Vg = Greater(Vs, zero) "
    "[N] V = If (Vg) <then_branch = Vt () => (float[4, 4] Vy) { Vy = Add(L, R) }, "
    "else_branch = Ve () => (float[4, 4] Vn) { Vn = Neg(R) }>",
}  # fmt: skip
"""ONNX text of each step: makes V from the earlier values L and R; N is the name of its last node."""


@dataclasses.dataclass(frozen=True)
class RandomGraph:
    """A model and a feed for it."""

    model: Model
    feed: dict[str, np.ndarray]

    @property
    def nodes(self) -> list[str]:
        return [node.name for node in self.model.graph.nodes]


@st.composite
def random_graphs(draw: st.DrawFn, max_steps: int = 8) -> RandomGraph:
    """Draw a graph of one to `max_steps` steps over two inputs, with one to three outputs."""
    values, text = ["x0", "x1"], []
    for step in range(draw(st.integers(1, max_steps))):
        words = {"N": f"n{step}", "V": f"v{step}"}
        words |= {letter: draw(st.sampled_from(values[-4:])) for letter in "LR"}
        template = draw(st.sampled_from(sorted(STEPS)))
        text.append(_fill(STEPS[template], words))
        values.append(f"v{step}")
    outputs = dict.fromkeys([values[-1], *draw(st.lists(st.sampled_from(values[2:]), max_size=2))])
    declared = ", ".join(f"float[4, 4] {name}" for name in outputs)
    message = models.proto(f"random (float[4, 4] x0, float[4, 4] x1) => ({declared}) {{ {' '.join(text)} }}")
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    constants = {
        "rows": np.array([1, 3, 4, 6]), "flat": np.array([16]), "zero": np.float32(0),
        "weight": rng.standard_normal((4, 4)).astype(np.float32),
    }  # fmt: skip
    message.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in constants.items())
    onnx.checker.check_model(message, full_check=True)
    feed = {name: rng.standard_normal((4, 4)).astype(np.float32) for name in ("x0", "x1")}
    return RandomGraph(Model.from_ir(ir.from_proto(message)), feed)


def _fill(template: str, words: dict[str, str]) -> str:
    """Put names for the letters N, V, L and R, which stand alone or before one small letter."""
    return re.sub(r"\b([NVLR])([a-z]?)\b", lambda m: words[m[1]] + (f"_{m[2]}" if m[2] else ""), template)
