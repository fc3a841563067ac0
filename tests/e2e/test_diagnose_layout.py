"""Right numbers in wrong places: one op's, an output's, two outputs'."""

import numpy as np
import pytest

from running_cli import EXAMPLES, triage, verdict_in
from tensortriage_testing import encoder, feed_for, save_model

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

WRAPPED = """
import numpy as np
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        found = dict(self.session.run(feed))
        {change}
        return found

class Engine:
    def compile(self, model, options):
        return Session(OnnxRuntimeEngine().compile(model, {{"optimization": "none"}}))
"""
TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,6] x) => (float[4,6] up, float[4,6] down, float[4,6] flat) {
  [exp] e = Exp(x)
  [up] up = Add(e, x)
  [down] down = Sub(x, e)
  [flat] flat = Abs(x)
}"""


@pytest.fixture
def three(tmp_path):
    import models

    models.write(tmp_path / "three.onnx", TEXT)
    np.savez(tmp_path / "three.npz", x=np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32))
    return tmp_path


def diagnosed(tmp_path, model, inputs, target, *, change=""):
    (tmp_path / "engine.py").write_text(WRAPPED.format(change=change))
    (tmp_path / "planted.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    words = [model, "--inputs", inputs, "--target", target, "--case", "case", "--no-repro"]
    done = triage("diagnose", *words, cwd=tmp_path)
    return done, verdict_in(tmp_path / "case")


def test_an_op_that_transposes_its_result_is_a_matter_of_layout(tmp_path):
    # FaultKind.PERMUTE reads the last two axes in the wrong order; 8 x 8 pixels, so the shape does not tell.
    node = "/block2/conv1/Conv"
    done, found = diagnosed(
        tmp_path, EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz", f"script:planted.py,kind=permute,node={node}"
    )
    assert (found["verdict"], done.returncode) == ("layout", 1), done.stdout + done.stderr
    assert found["culprits"][0]["node"] == node
    assert "axes 2 and 3 are swapped" in found["summary"]
    assert "perm=[0, 1, 3, 2] restores it" in found["summary"]


def test_two_outputs_exchanged_for_each_other_are_no_comparison(three):
    change = "found.update(up=found['down'], down=found['up']) if 'up' in found and 'down' in found else None"
    done, found = diagnosed(three, "three.onnx", "three.npz", "script:engine.py", change=change)
    assert (found["verdict"], done.returncode) == ("comparison-unsound", 1), done.stdout + done.stderr
    assert "'up' holds 'down', 'down' holds 'up'" in found["summary"]
    step = next(step for step in found["steps"] if step["question"] == "are the outputs in the right order?")
    assert step["evidence"]["holds"] == {"up": "down", "down": "up"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("found['up'] = found['up'][::-1] if 'golden::x' not in feed else found['up']", "axis 0 is in reverse order"),
        (
            "found['up'] = found['up'].T.reshape(4, 6) if 'golden::x' not in feed else found['up']",
            "in the memory order of axes (1, 0)",
        ),
        (
            "found['up'] = found['up'].T if 'golden::x' not in feed else found['up']",
            "the target is the reference transposed",
        ),
        (
            "found['up'] = found['up'].reshape(2, 12) if 'golden::x' not in feed else found['up']",
            "agree in memory order",
        ),
    ],
    ids=["flipped", "other-layout", "other-shape", "reshaped"],
)
def test_an_output_handed_over_in_another_layout_is_told_with_its_order(three, change, words):
    done, found = diagnosed(three, "three.onnx", "three.npz", "script:engine.py", change=change)
    assert (found["verdict"], done.returncode) == ("layout", 1), done.stdout + done.stderr
    assert words in found["summary"]
    assert "'up'" in found["summary"]
    assert found["culprits"] == []


def test_outputs_of_other_shapes_that_were_exchanged_are_recognised_by_value(tmp_path):
    model = encoder(layers=1, width=16, heads=2, tokens=4, batch=2)
    save_model(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "feed.npz", **feed_for(model))
    change = (
        "names = sorted(found); "
        "found = dict(zip(names, (found[n] for n in reversed(names)))) if len(names) == 2 else found"
    )
    done, found = diagnosed(tmp_path, "model.onnx", "feed.npz", "script:engine.py", change=change)
    assert (found["verdict"], done.returncode) == ("comparison-unsound", 1), done.stdout + done.stderr
    assert "'last_hidden_state' holds 'pooler_output'" in found["summary"]
