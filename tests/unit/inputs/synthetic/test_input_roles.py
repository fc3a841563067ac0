"""What made-up inputs must be: read off the operators' definitions at https://onnx.ai/onnx/operators."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from models import parse
from tensortriage.errors import UsageError
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.model import Model

OLD = '<ir_version: 8, opset_import: ["": 13]>'


def draw(text, name, **options):
    return next(random_feeds(parse(text), **options)).tensors[name]


def test_indices_stay_in_the_table_also_through_casts_and_reshapes():
    text = """
        g (int32[2, 50] ids, float[7, 3] table) => (float[100, 3] y) <int64[1] flat = {-1}> {
            wide = Cast <to = 7> (ids)
            row = Reshape(wide, flat)
            y = Gather(table, row)
        }"""
    ids = draw(text, "ids")
    assert ids.dtype == np.int32
    assert (ids.min(), ids.max()) == (0, 6)


def test_the_smallest_of_several_tables_counts():
    text = """
        g (int64[200] i, float[9] big, float[4] small) => (float[200] y, float[200] z) {
            y = Gather(big, i)
            z = Gather(small, i)
        }"""
    assert draw(text, "i").max() == 3


def test_an_offset_added_to_an_index_is_subtracted_from_its_range():
    # OPT looks up position + 2.
    text = """
        g (int64[300] i, float[6, 2] table) => (float[300, 2] y) <int64 two = {2}> {
            j = Add(i, two)
            y = Gather(table, j)
        }"""
    assert set(draw(text, "i").tolist()) == {0, 1, 2, 3}


def test_a_computed_table_is_known_by_shape_inference():
    text = """
        g (int64[100] i, float[5, 2] x) => (float[100, 2] y) {
            table = Relu(x)
            y = Gather(table, i)
        }"""
    assert set(draw(text, "i").tolist()) == {0, 1, 2, 3, 4}


def test_a_table_of_unknown_size_is_indexed_at_0():
    text = "g (int64[100] i, float[n, 2] x) => (float[100, 2] y) { y = Gather(x, i) }"
    assert set(draw(text, "i").tolist()) == {0}


def test_positions_count_up_within_their_table():
    text = "g (int64[2, 6] position_ids, float[4, 2] t) => (float[2, 6, 2] y) { y = Gather(t, position_ids) }"
    assert draw(text, "position_ids").tolist() == [[0, 1, 2, 3, 0, 1]] * 2


LOWEST = "float low = {-3.4e38}, float zero = {0}, float one = {1}, float ten = {-10000}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b = Cast <to = 9> (m)  a = Where(b, zero, low)", 1),
        ("b = Cast <to = 9> (m)  a = Where(b, low, zero)", 0),
        ("b = Cast <to = 9> (m)  n = Not(b)  a = Where(n, low, zero)", 1),
        ("f = Cast <to = 1> (m)  r = Sub(one, f)  a = Mul(r, ten)", 1),
        ("f = Cast <to = 1> (m)  r = Sub(one, f)  b = Cast <to = 9> (r)  a = Where(b, low, r)", 1),
    ],
)
def test_a_mask_lets_everything_through_whatever_its_name(body, expected):
    text = f"g (int64[2, 5] m, float[2, 5] s) => (float[2, 5] y) <{LOWEST}> {{ {body} z = Add(s, a) y = Softmax(z) }}"
    assert np.all(draw(text, "m") == expected)


def test_a_mask_known_by_name_only():
    assert np.all(
        draw("g (int64[4] attention_mask) => (int64[4] y) { y = Neg(attention_mask) }", "attention_mask") == 1
    )
    added = "g (float[4] attn_mask, float[4] s) => (float[4] y) { y = Add(s, attn_mask) }"
    assert np.all(draw(added, "attn_mask") == 0)
    assert len(set(draw("g (int64[40] unmasked) => (int64[40] y) { y = Neg(unmasked) }", "unmasked").tolist())) > 1


@pytest.mark.parametrize(
    ("node", "is_valid"),
    [
        ("y = Log(x)", lambda x: x > 0),
        ("z = Add(x, small)  y = Sqrt(z)", lambda x: x > 0),
        ("y = Pow(x, half)", lambda x: x > 0),
        ("y = Div(small, x)", lambda x: x > 0),
        ("y = Acos(x)", lambda x: np.abs(x) < 1),
        ("y = Acosh(x)", lambda x: x >= 1),
        ("y = Bernoulli(x)", lambda x: (x >= 0) & (x <= 1)),
    ],
)
def test_numbers_stay_in_the_domain_of_the_function(node, is_valid):
    text = f"g (float[500] x) => (float[500] y) <float small = {{0.00001}}, float half = {{0.5}}> {{ {node} }}"
    assert np.all(is_valid(draw(text, "x")))


def test_a_whole_exponent_leaves_the_base_free():
    x = draw("g (float[500] x) => (float[500] y) <float two = {2}> { y = Pow(x, two) }", "x")
    assert x.min() < -1


def test_floats_are_standard_normal():
    x = draw("g (float[100000] x) => (float[100000] y) { y = Relu(x) }", "x")
    # Bounds at 5 standard errors of the mean and the deviation of N(0, 1), n = 100000.
    assert abs(x.mean()) < 5 / 316
    assert abs(x.std() - 1) < 5 / 447


def test_types_are_used_to_their_range():
    text = """
        g (uint8[999] u, int8[999] i, int64[999] n, bool[999] b, string[9] s)
          => (uint8[999] v, int8[999] j, int64[999] m, bool[999] c, string[9] t) {
            v = Identity(u)  j = Identity(i)  m = Identity(n)  c = Identity(b)  t = Identity(s)
        }"""
    feed = next(random_feeds(parse(text))).tensors
    assert (feed["u"].min() < 10, feed["u"].max() > 245, feed["i"].min() < -118) == (True, True, True)
    assert set(feed["n"].tolist()) == set(range(10))
    assert 300 < feed["b"].sum() < 700
    assert all(isinstance(word, str) for word in feed["s"])


def test_open_dimensions_agree_between_inputs_and_follow_the_user():
    text = """
        g (int64[batch, seq] ids, int64[batch, past + seq] mask, float[batch, 4, past, 8] kv, float[n] v)
          => (int64[batch, seq] y) { y = Identity(ids) }"""
    text = text.replace("past + seq", "total_seq").replace("past,", "past_seq,")
    model = parse(text)
    shapes = {name: array.shape for name, array in next(random_feeds(model)).tensors.items()}
    assert shapes == {"ids": (1, 8), "mask": (1, 16), "kv": (1, 4, 8, 8), "v": (8,)}
    feed = next(random_feeds(model, shapes={"ids": (2, 3), "v": (5,)})).tensors
    assert {name: array.shape for name, array in feed.items()} == {
        "ids": (2, 3),
        "mask": (2, 11),
        "kv": (2, 4, 8, 8),
        "v": (5,),
    }


def test_images_and_signals_are_large_enough_for_convolutions():
    text = """
        g (float[n, 3, h, w] x, float[k, 3, 3, 3] f) => (float[a, b, c, d] y) <float two = {2}> {
            s = Div(x, two)
            y = Conv(s, f)
        }"""
    assert draw(text, "x").shape == (1, 3, 64, 64)


def test_values_of_shape_inputs_make_a_runnable_model():
    text = (
        OLD
        + """
        g (float[2, 3] x, int64[2] shape, int64[2] reps, int64[1] starts, int64[1] ends, int64[1] k)
          => (float[a, b] y, float[c, d] t, float[e, f] s, float[h, i] v, int64[l, m] w) {
            y = Reshape(x, shape)
            t = Tile(x, reps)
            s = Slice(x, starts, ends)
            v, w = TopK(x, k)
        }"""
    )
    model = parse(text)
    session = onnxruntime.InferenceSession(
        ir.to_proto(model.ir).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, dict(next(random_feeds(model)).tensors))
    assert [o.shape for o in outputs] == [(6, 1), (2, 3), (2, 3), (2, 1), (2, 1)]


TWO = "g (float[4] x, float[4] z) => (float[4] y) { y = Add(x, z) }"


def test_a_seed_means_the_same_numbers_and_inputs_do_not_disturb_each_other():
    one = "g (float[4] x) => (float[4] y) { y = Relu(x) }"
    first = [feed.tensors["x"].tolist() for feed in random_feeds(parse(TWO), seed=3, iterations=2)]
    assert first == [feed.tensors["x"].tolist() for feed in random_feeds(parse(one), seed=3, iterations=2)]
    assert first[0] != first[1]
    assert first[0] != draw(one, "x", seed=4).tolist()
    # MT19937 seeded with SHA-256("0/0/x"), drawn once: numpy never changes this generator (NEP 19), nor may we.
    np.testing.assert_array_equal(draw(one, "x"), np.float32(FROZEN))


FROZEN = [1.471759557723999, -0.08206398785114288, 0.11227206885814667, -0.48620885610580444]


def test_a_given_range_wins_and_is_uniform():
    feed = next(random_feeds(parse(TWO), value_ranges={"": (5, 6), "z": (-2, -1)})).tensors
    assert np.all((feed["x"] >= 5) & (feed["x"] < 6))
    assert np.all((feed["z"] >= -2) & (feed["z"] < -1))


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"shapes": {"q": (4,)}}, "input-unknown"),
        ({"value_ranges": {"q": (0, 1)}}, "input-unknown"),
        ({"shapes": {"x": (5,)}}, "shape-contradicts-model"),
        ({"shapes": {"x": (4, 1)}}, "shape-contradicts-model"),
    ],
)
def test_wrong_options_are_refused(options, slug):
    with pytest.raises(UsageError) as caught:
        next(random_feeds(parse(TWO), **options))
    assert caught.value.slug == slug
    assert "'x'" in caught.value.message + caught.value.cure


def test_what_is_no_tensor_is_refused():
    model = ir.from_onnx_text(OLD + "g (seq(float[4]) s) => (int64 n) { n = SequenceLength(s) }")
    with pytest.raises(UsageError, match="'s' is not a tensor"):
        next(random_feeds(Model.from_ir(model)))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("g (uint8[N, H, W, 3] x) => (float[N, H, W, 3] y) { f = Cast <to = 1> (x)"
         " t = Transpose <perm = [0,3,1,2]> (f) y = MaxPool <kernel_shape = [2,2]> (t) }", (1, 64, 64, 3)),
        ("g (float[T, B, 3] x, float[1, 8, 3] w, float[1, 8, 2] r) => (float[T, 1, B, 2] y)"
         " { y = LSTM <hidden_size = 2> (x, w, r) }", (8, 8, 3)),
        ("g (float[n_frames, 3] x) => (float[n_frames, 3] y) { y = Neg(x) }", (8, 3)),
        ("g (float[frame_batch, 3] x) => (float[frame_batch, 3] y) { y = Neg(x) }", (1, 3)),
        ("g (float[1, samples] x) => (float[1, samples] y) { y = Neg(x) }", (1, 1024)),
    ],
    ids=["channels last", "recurrent", "frames", "a batch", "sound"],
)  # fmt: skip
def test_usual_sizes_of_axes_that_operators_or_names_tell(text, shape):
    assert draw(text, "x").shape == shape


def test_where_a_part_begins_and_ends_count_up():
    """Both of one input, of which a Slice takes what lies between."""
    text = """
        g (float[9, 9] x, int64[4] box) => (float[h, w] y) <int64[4] one = {1, 1, 1, 1}> {
            top, left, bottom, right = Split(box, one)
            begin = Concat <axis = 0> (top, left)
            end = Concat <axis = 0> (bottom, right)
            y = Slice(x, begin, end)
        }"""
    assert draw(text, "box").tolist() == [0, 1, 2, 3]
