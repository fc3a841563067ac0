"""How far a change goes: layers of networks whose weights were changed here, and rows of a batch."""

import numpy as np
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
