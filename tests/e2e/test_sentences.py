"""The cause in words, through the command line: what was done to a file, and whose mistake a declaration is."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from models import proto
from running_cli import triage, verdict_in

pytestmark = pytest.mark.lengthy

NETWORK = """g (float[N, 6] x) => (float[N, 4] y) {
    [first] a = MatMul(x, w)
    [act] b = Relu(a)
    [last] y = MatMul(b, v)
}"""
UNROLLED = """g (float[N, 6] x) => (float[N, 4] y) <int64[1] zero = {0}, int64[1] one = {1}> {
    [first] a = MatMul(x, w)
    [act] b = Relu(a)
    [row] c = Slice(b, zero, one, zero)
    [size] s = Shape(b)
    [rows] d = Expand(c, s)
    [last] y = MatMul(d, v)
}"""
BAKED = """g (float[N, 6] x) => (float[N, 4] y) <int64[2] shape = {1, 8}> {
    [first] a = MatMul(x, w)
    [act] b = Relu(a)
    [baked] c = Reshape(b, shape)
    [last] y = MatMul(c, v)
}"""
RANDOM = np.random.default_rng(0)
W, V = RANDOM.standard_normal((6, 8)).astype(np.float32), RANDOM.standard_normal((8, 4)).astype(np.float32)
SCRIPT = """
import onnxruntime
class Session:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        self.outputs = {outputs}
    def run(self, feed):
        return dict(zip(["y"], self.session.run(["y"], dict(feed))))
class App:
    def compile(self, path, options): return Session(path)
"""


def written(path, text, w=W, v=V):
    message = proto(text)
    message.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    onnx.save(message, path)


@pytest.fixture
def folder(tmp_path):
    written(tmp_path / "model.onnx", NETWORK)
    np.savez(tmp_path / "inputs.npz", x=RANDOM.standard_normal((4, 6)).astype(np.float32))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "weights", "words"),
    [
        (NETWORK, (W * np.float32(1.3) + 1, V[::-1] + np.float32(0.5)), "differ in 2 of 2 layers: another checkpoint"),
        (NETWORK, (W, np.roll(V, 1, axis=0)), "with the slices of axis 0 rolled by 1"),
        (NETWORK, (W.astype("f2").astype("f4"), V), "MatMul 'first' has its constant 'w' rounded to float16"),
        (NETWORK.replace("[act] b = Relu(a)", "").replace("(b, v)", "(a, v)"), (W, V), "Relu 'act' is missing behind"),
        (
            NETWORK.replace("y = MatMul(b, v)", "z = MatMul(b, v)  [extra] y = Tanh(z)"),
            (W, V),
            "Tanh 'extra' is not in the reference's model, which reads 'y' as it is",
        ),
        (UNROLLED, (W, V), "of 4 rows, row 0 agrees and the others, which are copies of it, do not"),
        (BAKED, (W, V), "runs with one row of inputs.npz[0] and not with all: a batch size is baked in"),
    ],
)
def test_what_was_done_to_a_file(folder, text, weights, words):
    written(folder / "changed.onnx", text, *map(np.ascontiguousarray, weights))
    done = triage(
        "diagnose", "model.onnx", "--target-model", "changed.onnx", "--inputs", "inputs.npz", "--target", "onnxruntime",
        "-o", "case", cwd=folder,
    )  # fmt: skip
    verdict = verdict_in(folder / "case")
    assert (done.returncode, verdict["verdict"]) == (1, "model-changed"), done.stdout
    assert words in verdict["summary"]


@pytest.mark.parametrize(("outputs", "code"), [('["y"]', 0), ("[3]", 2), ('"y"', 2)])
def test_what_a_script_declares_is_its_own_matter(folder, outputs, code):
    (folder / "app.py").write_text(SCRIPT.replace("{outputs}", outputs))
    done = triage("run", "model.onnx", "--inputs", "inputs.npz", "--target", "script:app.py:App", cwd=folder)
    assert done.returncode == code, done.stderr
    if code:
        assert "error[script-session]: app.py: session.outputs" in done.stderr
        assert "self.outputs = [('y', 'float32', [None, 3])]" in done.stderr
    done = triage("diagnose", "model.onnx", "--inputs", "inputs.npz", "--target", "script:app.py:App", cwd=folder)
    assert done.returncode == code, done.stderr
