"""The op at which a file departs from its network is found by numbers: names, nodes and layouts are all others."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_static

from tensortriage.diagnose.rungs.other_model.changed_ops import changed_ops
from tensortriage.diagnose.rungs.other_model.departure import departures
from tensortriage.diagnose.rungs.other_model.departure_words import departed_culprit
from tensortriage.envelope.explanations import SIGNED, UNROUNDED
from tensortriage.envelope.unrounded_match import other_biases
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.lab import FLOAT64
from tensortriage_testing import save_model

RNG = np.random.default_rng(0)
FEED = {"x": RNG.standard_normal((4, 8, 16)).astype(np.float32)}
FIRST = RNG.standard_normal((16, 24)).astype(np.float32)
SECOND = RNG.standard_normal((24, 12)).astype(np.float32)
GAIN, SHIFT = (RNG.standard_normal(16).astype(np.float32) for _ in range(2))
GAIN_AFTER = np.ones(24, np.float32)


def network(epsilon=1e-5, first=FIRST, activation="Relu", prefix=""):
    """Return a normalization, two products with an activation between them, and a Softmax."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "gain", "shift"], ["n"], name=f"{prefix}norm", epsilon=epsilon),
        helper.make_node("MatMul", ["n", "first"], ["a"], name=f"{prefix}first"),
        *([helper.make_node(activation, ["a"], ["b"], name=f"{prefix}activation")] if activation else []),
        helper.make_node("MatMul", ["b" if activation else "a", "second"], ["c"], name=f"{prefix}second"),
        helper.make_node("Softmax", ["c"], ["y"], name=f"{prefix}softmax"),
    ]
    weights = {"gain": GAIN, "shift": SHIFT, "first": first, "second": SECOND}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8, 12])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def normalized(*, stored=False, exchanged=False, epsilon=1e-5):
    """Return two products with a normalization between; the first's weight may be stored in 4 bits, with scales.

    Args:
        stored: Whether it is.
        exchanged: Whether each row has another's integers.
        epsilon: The normalization's.
    """
    message = network(epsilon)
    del message.graph.node[:], message.graph.initializer[:]
    steps = np.float32(np.abs(FIRST).max(axis=1) / 7) * np.float32(np.linspace(1.0, 3.0, 16))
    held = {"integers": np.clip(np.rint(FIRST / steps[:, None]), -7, 7).astype(np.int8)}
    held = {"integers": np.roll(held["integers"], 5, axis=0) if exchanged else held["integers"], "steps": steps}
    weights = {"gain": GAIN_AFTER, "shift": GAIN_AFTER, "second": SECOND, **(held if stored else {"first": FIRST})}
    message.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    message.graph.node.extend(
        [
            *([helper.make_node("DequantizeLinear", ["integers", "steps"], ["first"], axis=0)] if stored else []),
            helper.make_node("MatMul", ["x", "first"], ["a"], name="first"),
            helper.make_node("LayerNormalization", ["a", "gain", "shift"], ["n"], name="norm", epsilon=epsilon),
            helper.make_node("MatMul", ["n", "second"], ["y"], name="second"),
        ]
    )
    return message


@pytest.fixture
def departed(investigate, tmp_path):
    """Return a function that gives the culprits of a file beside the network."""

    def ask(message, unrounded=FLOAT64, beside=None):
        inv = investigate(beside or network(), FEED)
        matched = Correspondence.of(inv.model, Model.load(save_model(message, tmp_path / "other.onnx")))
        found = departures(inv, matched.paired, inv.question.feeds[0], unrounded)
        return [departed_culprit(matched, each) for each in found]

    return ask


def test_the_network_under_other_names_departs_nowhere(departed):
    assert departed(network(prefix="other/")) == []


def test_another_epsilon_is_named_with_both(departed):
    (culprit,) = departed(network(epsilon=0.1, prefix="other/"))
    assert culprit.node == "other/norm"
    assert "0.1" in culprit.reason
    assert "1e-05" in culprit.reason


def test_a_weight_is_named_with_the_rows_that_are_others(departed):
    first = FIRST.copy()
    first[:, 5] *= 1.5
    culprit = departed(network(first=first, prefix="other/"))[0]
    assert culprit.node == "other/first"
    assert "'first'" in culprit.reason


def test_what_is_missing_is_an_op_of_the_network(departed):
    culprit = departed(network(activation="", prefix="other/"))[0]
    assert (culprit.node, culprit.op_type, culprit.change) == ("activation", "Relu", "removed")
    assert "is missing" in culprit.reason


def test_an_op_that_is_another_is_named(departed):
    culprit = departed(network(activation="Tanh", prefix="other/"))[0]
    assert culprit.node in ("other/activation", "activation")


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self):
        self._left = iter([FEED])

    def get_next(self):
        return next(self._left, None)


def test_a_limit_that_was_left_to_a_range_is_told_of_where_that_is_wider(departed, tmp_path):
    onnx.save(network(activation=""), tmp_path / "float.onnx")
    extra = {"ActivationSymmetric": True}
    quantize_static(tmp_path / "float.onnx", tmp_path / "q.onnx", Samples(), extra_options=extra)
    culprit = departed(onnx.load(tmp_path / "q.onnx"), SIGNED)[0]
    assert (culprit.node, culprit.change) == ("activation", "removed")
    assert "a_QuantizeLinear there holds numbers that Relu cuts off" in culprit.reason


@pytest.mark.parametrize("way", ["QDQ", "QOperator"])
def test_quantized_files_depart_where_a_weight_is_wrong_and_nowhere_else(departed, tmp_path, way):
    onnx.save(network(), tmp_path / "float.onnx")
    quantize_static(tmp_path / "float.onnx", tmp_path / "q.onnx", Samples(), quant_format=QuantFormat[way])
    message = onnx.load(tmp_path / "q.onnx")
    assert departed(message, SIGNED) == []
    for tensor in message.graph.initializer:
        if tensor.name == "second_quantized":
            array = np.roll(numpy_helper.to_array(tensor), 1, axis=0)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    culprits = departed(message, SIGNED)
    assert culprits[0].node.startswith("second")


def test_normalized_numbers_that_resemble_those_of_others_sorted_are_not_in_another_order(departed):
    """Sorted, both normalizations are within the noise of 4 bits; no op could have moved numbers."""
    assert departed(normalized(stored=True), UNROUNDED, normalized()) == []
    culprits = departed(normalized(stored=True, exchanged=True), UNROUNDED, normalized())
    assert culprits[0].node == "first"


def test_rounding_of_a_weight_hides_no_small_mistake_behind_it(investigate, tmp_path):
    """An epsilon of 0.2 moves less than other roundings of the weight do: with the weight put right it shows."""
    inv = investigate(normalized(), FEED)
    path = save_model(normalized(stored=True, epsilon=0.2), tmp_path / "other.onnx")
    matched = Correspondence.of(inv.model, Model.load(path))
    assert departures(inv, matched.paired, inv.question.feeds[0], UNROUNDED) == []
    culprits = changed_ops(inv, matched, inv.question.feeds[0], UNROUNDED)
    assert [culprit.node for culprit in culprits] == ["norm"]


def test_gains_of_a_normalization_are_no_biases_that_a_tool_corrected(tmp_path):
    """Gains and shifts of 4-bit files that were exchanged counted as corrected biases: `rounding`, exit 0."""
    file = network()
    for tensor in file.graph.initializer:
        if tensor.name in ("gain", "shift"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor)[::-1].copy(), tensor.name))
    models = [Model.load(save_model(each, tmp_path / f"{n}.onnx")) for n, each in enumerate((network(), file))]
    assert other_biases(Correspondence.of(*models)) == {}
