"""Values of one name: expected results are what the nodes compute when they run in the order of the file."""

import numpy as np
import pytest

import models
import running
from running_cli import triage
from tensortriage.errors import ModelError
from tensortriage.model.io.repeated_names import mend_repeated_names
from tensortriage.model.model import Model

TWICE = """
    g (float[2] x) => (float[2] linear) {
        [first] linear = Neg(x)
        [second] a = Exp(linear)
        [third] linear = Add(a, linear)
    }
"""
X = np.array([0.5, -1.0], np.float32)


def named(text):
    message = models.proto(text)
    for place, node in enumerate(message.graph.node):
        node.name = node.name or f"node_{place}"
    return message


def test_each_node_uses_the_latest_value_before_it(tmp_path):
    path = models.write(tmp_path / "twice.onnx", named(TWICE))
    mended = Model.load(path, mend_names=True)
    assert mended.path is None
    assert [spec.name for spec in mended.outputs] == ["linear"]
    np.testing.assert_allclose(running.run(mended, {"x": X})["linear"], np.exp(-X) - X, rtol=1e-6)


def test_the_error_names_both_nodes_and_what_mends_it(tmp_path):
    path = models.write(tmp_path / "twice.onnx", named(TWICE))
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.slug == "value-defined-twice"
    assert "'Neg'" in caught.value.message
    assert "'Add'" in caught.value.message
    assert "surgeon sanitize" in caught.value.cure


def test_bodies_use_what_their_node_does():
    message = named("""
        g (float[2] x, bool c) => (float[2] v) {
            v = Neg(x)
            w = If(c) <
                then_branch = t () => (float[2] t) { t = Exp(v) },
                else_branch = e () => (float[2] e) { e = Identity(v) }
            >
            v = Add(w, v)
        }
    """)
    assert mend_repeated_names(message) == {"v_inner_1": "v"}
    bodies = [attribute.g for attribute in message.graph.node[1].attribute]
    assert [list(body.node[0].input) for body in bodies] == [["v_inner_1"], ["v_inner_1"]]
    assert list(message.graph.node[2].input) == ["w", "v_inner_1"]


def test_nothing_is_done_to_a_sound_model():
    message = named("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    before = message.SerializeToString()
    assert mend_repeated_names(message) == {}
    assert message.SerializeToString() == before


def test_what_cannot_be_mended_is_still_an_error(tmp_path):
    path = models.write(tmp_path / "input.onnx", named("g (float[1] x) => (float[1] y) { x = Neg(x)  y = Exp(x) }"))
    with pytest.raises(ModelError) as caught:
        Model.load(path, mend_names=True)
    assert caught.value.slug == "value-defined-twice"


def test_sanitize_mends_a_file(tmp_path):
    models.write(tmp_path / "twice.onnx", named(TWICE))
    done = triage("surgeon", "sanitize", "twice.onnx", "-o", "mended.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "linear_inner_1" in done.stderr
    mended = Model.load(tmp_path / "mended.onnx")
    np.testing.assert_allclose(running.run(mended, {"x": X})["linear"], np.exp(-X) - X, rtol=1e-6)
