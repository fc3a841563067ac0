"""Point 1: engines and programs under the judge's rules: freedoms of hardware, outputs alone, restless references."""

from pathlib import Path

import numpy as np

from acceptance.case import Case, fine
from acceptance.networks import data, saved


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _f32(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, np.float32)


RESIDUAL = """residual (float[b,3,20,20] x) => (float[b,10] y) {
    a0 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w0)
    r0 = Relu(a0)
    a1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r0, w1)
    r1 = Relu(a1)
    a2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2)
    j = Add(a2, r0)
    r2 = Relu(j)
    a3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r2, w3)
    r3 = Relu(a3)
    pool = GlobalAveragePool(r3)
    flat = Flatten(pool)
    y = MatMul(flat, w)
}"""


def _residual(folder: Path, fault: str) -> list[str]:
    r = _random(15)
    arrays = {"w0": r.normal(0, 0.3, (16, 3, 3, 3)), "w": r.normal(0, 0.3, (16, 10))}
    arrays |= {f"w{i}": r.normal(0, np.sqrt(2 / 144), (16, 16, 3, 3)) for i in (1, 2, 3)}
    script = folder / "gpu.py"
    script.write_text("from tensortriage_testing import SimulatedAccelerator as Engine\n")
    target = f"script:{script},precision=tf32,hardware=gpu{fault}"
    x = _f32(r.uniform(0, 1, (2, 3, 20, 20)))
    return [saved(folder, RESIDUAL, arrays), *data(folder, x=x), "--target", target]


SCRIPT = """import numpy as np
import onnx
import onnxruntime

class Session:
    def __init__(self, model):
        self.session = onnxruntime.InferenceSession(model.SerializeToString())
        self.random = np.random.default_rng()

    def run(self, feed):
        names = [o.name for o in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, feed)))
        return {CHANGE}

class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        EDIT
        return Session(model)
"""


def scripted(folder: Path, *, change: str = "found", edit: str = "pass") -> str:
    """Write a program that computes the model with an edit, or changes what it gave, and return its engine."""
    path = folder / "engine.py"
    path.write_text(SCRIPT.replace("{CHANGE}", change).replace("EDIT", edit))
    return f"script:{path}"


def half_away(folder: Path) -> list[str]:
    text = """steps (float[b,32] x) => (float[b,8] y) {
        t = Mul(x, two)
        q = Round(t)
        z = Mul(q, half)
        y = MatMul(z, w)
    }"""
    r = _random(16)
    arrays = {"two": np.float32(2), "half": np.float32(0.5), "w": r.normal(0, 0.3, (32, 8))}
    program = folder / "away.py"
    program.write_text(
        "import numpy as np\nfrom onnx import numpy_helper, load\n"
        "class Session:\n    def __init__(self, w):\n        self.w = w\n"
        "    def run(self, feed):\n        t = feed['x'] * 2\n"
        "        return {'y': (np.trunc(t + np.copysign(0.5, t)) * 0.5).astype('float32') @ self.w}\n"
        "class Engine:\n    def compile(self, path, options):\n"
        "        return Session({i.name: numpy_helper.to_array(i) for i in load(path).graph.initializer}['w'])\n"
    )
    x = _f32(np.round(r.normal(0, 2, (6, 32)) * 4) / 4)
    return [saved(folder, text, arrays), *data(folder, x=x), "--target", f"script:{program}"]


def restless_reference(folder: Path) -> list[str]:
    text = """mlp (float[b,20] x) => (float[b,6] y) {
        h = MatMul(x, w1)
        a = Tanh(h)
        y = MatMul(a, w2)
    }"""
    r = _random(17)
    model = saved(folder, text, {"w1": r.normal(0, 0.3, (20, 30)), "w2": r.normal(0, 0.3, (30, 6))})
    engine = scripted(
        folder, change="{k: (v + self.random.normal(0, 0.02, v.shape)).astype(v.dtype) for k, v in found.items()}"
    )
    return [model, *data(folder, x=_f32(r.normal(0, 1, (4, 20)))), "--reference", engine, "--target", "onnxruntime"]


CASES = (
    fine("tf32-healthy", 1, lambda f: _residual(f, "")),
    Case(
        "tf32-one-conv",
        1,
        lambda f: _residual(f, ",kind=scale,node=/Conv_a2,amount=1.02"),
        ("local-fault",),
        1,
        (),
        (),
        "a2",
    ),
    Case(
        "half-away",
        1,
        half_away,
        ("comparison-unsound", "model-changed", "inconclusive", "rounding"),
        None,
        ("Round|half|tie",),
        ("wrong at MatMul",),
    ),
    Case(
        "restless-reference", 1, restless_reference, ("comparison-unsound", "nondeterministic-run"), 1, ("reference",)
    ),
)
