"""The verdict about files in which an exporter made constants, exchanged operands or outputs, or left an input out."""

import numpy as np
import pytest
from onnx import numpy_helper, parser

from diagnosing import ask
from tensortriage_testing import save_model

NETWORK = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x, float[2,4] gate) => (float[2,4] y, float[2,4] z) <float[4,4] w, float[4,4] v> {
    h = MatMul(x, w)
    s = Sigmoid(gate)
    d = Sub(h, s)
    e = Tanh(d)
    y = MatMul(e, v)
    z = Mul(e, h)
}"""
RANDOM = np.random.default_rng(2)
FEED = {name: RANDOM.standard_normal((2, 4)).astype(np.float32) for name in ("x", "gate")}


def network(*changes, **constants):
    text = NETWORK
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    model = parser.parse_model(text)
    for number, name in enumerate(("w", "v")):
        array = np.random.default_rng(number).standard_normal((4, 4)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    for node in model.graph.node:
        node.name = f"make_{node.output[0]}"
    return model


def summary_of(tmp_path, changed, kind="model-changed"):
    model, other = save_model(network(), tmp_path / "m.onnx"), save_model(changed, tmp_path / "o.onnx")
    verdict = ask(tmp_path, model, FEED, "onnxruntime:optimization=none", target_model=other)[0]
    assert verdict.verdict == kind
    return verdict.summary


def test_a_constant_for_what_is_computed_and_the_input_that_is_lost(tmp_path):
    seen = np.full((2, 4), 0.25, np.float32)  # the gate of one example
    changed = network(("    s = Sigmoid(gate)\n", ""), ("<float[4,4] w", "<float[2,4] s, float[4,4] w"), s=seen)
    words = summary_of(tmp_path, changed)
    assert "Sub 'make_d' reads the constant 's' where the reference's model computes 's' from input 'gate'" in words
    assert "its outputs do not depend on input 'gate' any more" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Sub(h, s)", "Sub(s, h)"), "Sub 'make_d' has its operands 0 and 1 exchanged"),
        (("y = MatMul(e, v)", "y = MatMul(d, v)"), "MatMul 'make_y' reads 'd' instead of 'e' as operand 0"),
    ],
)
def test_what_a_node_reads(tmp_path, change, words):
    assert words in summary_of(tmp_path, network(change))


def test_outputs_under_each_other_s_names(tmp_path):
    changed = network(("    y = MatMul(e, v)\n    z = Mul(e, h)", "    z = MatMul(e, v)\n    y = Mul(e, h)"))
    assert "gives outputs under each other's names: 'y' holds 'z', 'z' holds 'y'" in summary_of(tmp_path, changed)


def test_rows_that_agree_for_their_data_are_no_batch_size(tmp_path):
    """The gate of the first row happens to be what the file has for all."""
    seen = 1 / (1 + np.exp(-FEED["gate"][:1].repeat(2, 0)))
    changed = network(("    s = Sigmoid(gate)\n", ""), ("<float[4,4] w", "<float[2,4] s, float[4,4] w"), s=seen)
    words = summary_of(tmp_path, changed)
    assert "constant 's'" in words
    assert "a batch of" not in words


def test_another_activation_is_told_by_both(tmp_path):
    changed = network(("e = Tanh(d)", "e = Softsign(d)"))
    assert "Softsign 'make_e' is Softsign instead of Tanh" in summary_of(tmp_path, changed)
