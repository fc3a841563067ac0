"""How far a change goes: layers of networks whose weights were changed here, and rows of a batch."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tensortriage.diagnose.rungs.other_model.extent import extent_of_rows, extent_of_weights, first_row
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage_testing import conv_net, mlp, save_model

RANDOM = np.random.default_rng(0)


def beside(tmp_path, change, *, network=mlp, only=None, but=()):
    """Return a network beside itself with a function applied to weights: those of some layers, or all but some."""
    was, now = network(), network()
    layers = [n for n in now.graph.node if n.op_type in ("Gemm", "MatMul", "Conv")]
    chosen = [layers[i] for i in only] if only is not None else [n for n in layers if n not in [layers[i] for i in but]]
    for tensor in now.graph.initializer:
        if any(tensor.name == node.input[1] for node in chosen):
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(array)), tensor.name))
    before, after = (
        Model.load(save_model(model, tmp_path / f"{word}.onnx")) for word, model in (("was", was), ("now", now))
    )
    return Correspondence.of(before, after), len(layers)


def retrained(array):
    return (array + 0.1 * array.std() * RANDOM.standard_normal(array.shape)).astype(array.dtype)


@pytest.mark.parametrize("network", [mlp, lambda: conv_net(blocks=2)])
def test_all_layers_are_another_checkpoint(tmp_path, network):
    found, layers = beside(tmp_path, retrained, network=network)
    assert f"the weights differ in {layers} of " in extent_of_weights(found)
    every, of = beside(tmp_path, retrained)
    assert extent_of_weights(every) == f"the weights differ in {of} of {of} layers: another checkpoint"


def test_all_but_one_and_the_last_alone(tmp_path):
    most, of = beside(tmp_path, retrained, but=(0,))
    assert extent_of_weights(most).startswith(f"the weights differ in {of - 1} of {of} layers, all but '")
    head, of = beside(tmp_path, retrained, only=(-1,))
    assert f"in 1 of {of} layers, the last: a head" in extent_of_weights(head)
    first, of = beside(tmp_path, retrained, only=(0,))
    assert extent_of_weights(first) == f"the weights differ in 1 of {of} layers"


def test_rounded_weights_are_no_other_checkpoint(tmp_path):
    halves, of = beside(tmp_path, lambda array: array.astype(np.float16).astype(array.dtype))
    assert extent_of_weights(halves) == f"weights are rounded in {of} of {of} layers"
    single, _ = beside(tmp_path, lambda array: array[::-1], only=(0,))
    assert extent_of_weights(single) == ""  # the culprit says it
    equal, _ = beside(tmp_path, lambda array: array)
    assert extent_of_weights(equal) == ""


def two(tmp_path, **texts):
    """Return two networks, written as text, beside each other; their weights are drawn by name and alike."""
    paths = {}
    for word, (opset, body) in texts.items():
        header = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[1,4,8,8] x) => (float[1,4,h,w] y)'
        model = onnx.parser.parse_model(f"{header} {{ {body} }}")
        for name, shape in {"k1": (4, 4, 3, 3), "b1": (4,), "k2": (4, 4, 1, 1), "k2_other": (4, 4, 1, 1)}.items():
            if any(name in node.input for node in model.graph.node):
                array = np.random.default_rng(len(name) + shape[-1]).standard_normal(shape).astype(np.float32)
                model.graph.initializer.append(numpy_helper.from_array(array, name))
        paths[word] = tmp_path / f"{word}.onnx"
        onnx.save(model, paths[word])
    return Correspondence.of(*(Model.load(path) for path in paths.values()))


def test_an_operator_that_reads_a_weight_elsewhere_than_the_original(tmp_path):
    """The scales of a Resize are its second input before opset 11, and its third since (onnx#8480): it was an error."""
    before, since = (
        f"s = Constant<value_floats=[1.0,1.0,2.0,2.0]>() {roi} r = Resize(x, {given}) y = Conv(r, k2)"
        for roi, given in (("", "s"), ("e = Constant<value_floats=[0.0]>()", "e, s"))
    )
    assert "weights differ" not in extent_of_weights(two(tmp_path, was=(10, before), now=(11, since)))


def test_a_weight_for_which_the_original_has_no_place(tmp_path):
    bare, biased = (f"c = Conv<pads=[1,1,1,1]>(x, k1) y = Conv(c, {given})" for given in ("k2", "k2_other, b1"))
    assert extent_of_weights(two(tmp_path, was=(13, bare), now=(13, biased))).startswith("the weights differ in 1 of 2")


GOLDEN = RANDOM.standard_normal((4, 10)).astype(np.float32)
FEED = Feed("f", {"x": np.zeros((4, 3), np.float32), "n": np.array(3)}, Origin.REAL)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (GOLDEN[[0, 0, 0, 0]], "of 4 rows, row 0 agrees and the others, which are copies of it, do not"),
        (GOLDEN[[0, 1, 0, 1]], "rows 0 to 1 agree and the rows from there on, which are copies of these, do not"),
        (GOLDEN * np.float32([[1], [1], [1], [2]]), "rows 0 to 2 agree and the rows from there on do not"),
    ],
)
def test_rows_beyond_the_first(rows, words):
    assert words in extent_of_rows(GOLDEN, rows, FEED, 1e-6)


@pytest.mark.parametrize(
    ("golden", "found"),
    [
        (GOLDEN, GOLDEN),
        (GOLDEN, GOLDEN * 2),
        (GOLDEN, GOLDEN * np.float32([[1], [2], [1], [2]])),
        (GOLDEN[:1], GOLDEN[:1] * 2),
        (GOLDEN[:3], GOLDEN[[0, 0, 0]]),  # no input has three rows
        (np.float32(1), np.float32(2)),
    ],
)
def test_nothing_is_said_of_rows_elsewhere(golden, found):
    assert extent_of_rows(golden, found, FEED, 1e-6) == ""


def test_the_first_row_of_a_batch():
    row = first_row(FEED)
    assert (row.tensors["x"].shape, row.tensors["n"].shape) == ((1, 3), ())
    assert first_row(row) is None
    assert first_row(Feed("f", {"a": np.zeros((2, 1)), "b": np.zeros((3, 1))}, Origin.REAL)) is None
