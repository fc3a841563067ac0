"""Other made-up feeds: sizes that names suggest, constants that scalars are compared with, other scales."""

import itertools

import onnx
import onnx.parser
import pytest

from tensortriage.inputs.synthetic.candidates import MOST_ELEMENTS, are_ours, candidates, other_numbers
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.model import Model

VOICE = """<ir_version: 8, opset_import: ["" : 16]>
g (float[n, m] audio, float[2, k, 16] state, int64 rate) => (float[n, m] y, float[2, k, 16] next)
<int64 high = {16000}, int64 low = {8000}> {
    wide = Equal(rate, high)
    narrow = Equal(rate, low)
    either = Or(wide, narrow)
    scale = Cast <to: int = 1> (either)
    y = Mul(audio, scale)
    next = Identity(state)
}"""


def model_of(tmp_path, text):
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    return Model.load(tmp_path / "m.onnx")


def first(model, count, shapes=()):
    return list(itertools.islice(candidates(model, dict(shapes)), count))


def test_a_scalar_takes_the_constants_that_it_is_compared_with(tmp_path):
    model = model_of(tmp_path, VOICE)
    assert next(random_feeds(model)).tensors["rate"] == 16000
    numbers = {feed.tensors["rate"].item() for feed in candidates(model, {})}
    assert numbers == {16000, 8000}
    held = next(feed for feed in candidates(model, {}) if feed.tensors["rate"] == 8000)
    assert 8000 in {feed.tensors["rate"].item() for feed in other_numbers(model, held)}


def test_sizes_that_a_name_suggests_come_first_and_leave_batches_at_one(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[batch, samples] x, float[2, batch, 4] h) => (float[batch, samples] y) { y = Neg(x) }"""
    feeds = first(model_of(tmp_path, text), 3)
    assert [feed.tensors["x"].shape for feed in feeds] == [(1, 512), (1, 1024), (1, 16000)]
    assert {feed.tensors["h"].shape for feed in feeds} == {(2, 1, 4)}
    assert len({feed.name for feed in feeds}) == 3


def test_height_and_width_get_one_size_and_no_feed_is_large(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[N, 3, height, width] x) => (float[N, 3, height, width] y) { y = Neg(x) }"""
    model = model_of(tmp_path, text)
    assert [feed.tensors["x"].shape[2:] for feed in first(model, 2)] == [(64, 64), (224, 224)]
    assert max(feed.tensors["x"].size for feed in candidates(model, {})) <= MOST_ELEMENTS


def test_given_shapes_stay_and_fixed_sizes_leave_only_numbers(tmp_path):
    model = model_of(tmp_path, VOICE)
    feeds = first(model, 40, {"audio": (1, 77)}.items())
    assert {feed.tensors["audio"].shape for feed in feeds} == {(1, 77)}
    fixed = model_of(
        tmp_path,
        """<ir_version: 8, opset_import: ["" : 16]>
    g (float[4] x) => (float[4] y) { y = Neg(x) }""",
    )
    spans = [float(abs(feed.tensors["x"]).max()) for feed in candidates(fixed, {})]
    assert max(spans) > 50
    assert min(spans) == 0
    assert not are_ours(fixed, {})


@pytest.mark.parametrize("shapes", [{}, {"audio": (1, 8)}])
def test_an_open_size_or_a_number_that_selects_is_ours(tmp_path, shapes):
    assert are_ours(model_of(tmp_path, VOICE), shapes)


@pytest.mark.parametrize("are_named", [True, False])
def test_a_size_that_others_add_up_to_is_found_beside_theirs(tmp_path, are_named):
    """Scores of 8 new tokens over them and 8 of a cache meet a mask of 16; with one of each any mask is spread."""
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[b, new, 4] x, float[b, past, 4] cache, float[b, all] mask) => (float[b, new, all] y)
    <int64[1] one = {1}> {
        both = Concat <axis: int = 1> (cache, x)
        other = Transpose <perm: ints = [0, 2, 1]> (both)
        scores = MatMul(x, other)
        wide = Unsqueeze(mask, one)
        y = Add(scores, wide)
    }"""
    proto = onnx.parser.parse_model(text)
    for spec in () if are_named else proto.graph.input:
        for dim in spec.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.ClearField("dim_param")
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = first(Model.load(tmp_path / "m.onnx"), 3)
    shapes = [tuple(feed.tensors[name].shape[1] for name in ("x", "cache", "mask")) for feed in feeds]
    assert (8, 8, 16) in shapes
    assert (1, 1, 1) not in shapes


def test_a_mask_is_also_tried_the_other_way_round(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[2, 3] x, bool[2, 3] pad_mask) => (float[2, 3] y) {
        kept = Cast <to: int = 1> (pad_mask)
        y = Mul(x, kept)
    }"""
    model = model_of(tmp_path, text)
    assert next(random_feeds(model)).tensors["pad_mask"].all()
    assert any(not feed.tensors["pad_mask"].any() for feed in candidates(model, {}))


def test_an_input_without_a_rank_takes_those_that_are_usual_in_turn(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[n] x) => (float[m] y) <float[6, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { y = MatMul(x, w) }"""
    message = onnx.parser.parse_model(text)
    message.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(message, tmp_path / "m.onnx")
    model = Model.load(tmp_path / "m.onnx")
    shapes = [feed.tensors["x"].shape for feed in first(model, 4)]
    assert [len(shape) for shape in shapes] == [2, 3, 4, 1]
    assert {shape[-1] for shape in shapes} == {6}
    assert are_ours(model, {})
    assert {feed.tensors["x"].ndim for feed in first(model, 4, {"x": (3, 6)}.items())} == {2}
