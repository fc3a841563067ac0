"""Do elements come as the words say? Expected values come from numpy, or are written out."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.places import PLACES


def test_flattening_with_channels_last():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    one = model("g (float[1,2,3,4] x) => (float[1,24] y) { y = Flatten(x) }")
    assert run(meant(one, PLACES, "channels"), x=x).tolist() == x.transpose(0, 2, 3, 1).reshape(1, 24).tolist()


def test_pixels_of_a_block_within_each_channel():
    """The formula is that of torch.nn.PixelUnshuffle: [n, c, h b, w b] to [n, c b b, h, w]."""
    x = np.arange(96, dtype=np.float32).reshape(1, 3, 4, 8)
    one = model("g (float[1,3,4,8] x) => (float[1,12,2,4] y) { y = SpaceToDepth<blocksize=2>(x) }")
    expected = x.reshape(1, 3, 2, 2, 4, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 12, 2, 4)
    assert run(one, x=x).tolist() != expected.tolist()
    assert run(meant(one, PLACES, "pixel_unshuffle"), x=x).tolist() == expected.tolist()


@pytest.mark.parametrize(("given", "expected"), [("x, r", [[11, 22], [3, 4]]), ("r, x", [[11, 22], [3, 4]])])
def test_an_operand_that_reaches_the_first_row_alone(given, expected):
    one = model(f"g (float[2,2] x) => (float[2,2] y) <float[2] r = {{10, 20}}> {{ y = Add({given}) }}")
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert run(one, x=x).tolist() == [[11, 22], [13, 24]]
    assert run(meant(one, PLACES, "first index of axis 0"), x=x).tolist() == expected


def test_a_square_weight_transposed():
    x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    one = model("g (float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> { y = MatMul(x, w) }")
    made = run(meant(one, PLACES, "its weight were transposed"), x=x)
    assert made == pytest.approx(x @ np.arange(1, 10).reshape(3, 3).T, rel=1e-5)


def test_an_operand_that_is_no_constant_transposed():
    one = model("g (float[2,2] a, float[2,3] b) => (float[2,3] y) { y = MatMul(a, b) }")
    a, b = np.array([[1, 2], [3, 4]], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    assert run(meant(one, PLACES, "input A were transposed"), a=a, b=b).tolist() == (a.T @ b).tolist()


@pytest.mark.parametrize(
    ("shape", "words", "expected"),
    [
        ("[3]", "[3] lay along axis 1, not along axis 2", (1, 3, 1)),
        ("[3,1]", "[3, 1] lay along axis 2, not along axis 1", (1, 1, 3)),
        ("[3,3]", "[3, 3] lay along axes 0 to 1, not along axes 1 to 2", (3, 3, 1)),
    ],
)
def test_an_operand_along_another_axis(shape, words, expected):
    numbers = np.arange(1, 1 + np.prod(expected), dtype=np.float32)
    text = ", ".join(f"{each:g}" for each in numbers)
    one = model(f"g (float[3,3,3] x) => (float[3,3,3] y) <float{shape} r = {{{text}}}> {{ y = PRelu(x, r) }}")
    x = -np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    made = run(meant(one, PLACES, words), x=x)
    assert made.tolist() == (x * numbers.reshape(expected)).tolist()


def test_tiles_next_to_themselves():
    one = model("g (float[2,2] x) => (float[2,4] y) <int64[2] r = {1, 2}> { y = Tile(x, r) }")
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert run(one, x=x).tolist() == np.tile(x, (1, 2)).tolist()
    assert run(meant(one, PLACES, "next to itself"), x=x).tolist() == np.repeat(x, 2, 1).tolist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Gather(t, i)", [5, 5, 7]),
        ("GatherElements(t, i)", [5, 5, 7]),
        ("ScatterElements(t, i, u)", [2, 6, 3]),  # indices 0, 0, 2: the second of two at one place stays
    ],
)
def test_negative_indices_as_0(call, expected):
    one = model("g (int64[3] i) => (float[3] y) <float[3] t = {5, 6, 7}, float[3] u = {1, 2, 3}> { y = " + call + " }")
    assert run(meant(one, PLACES, "taken as 0"), i=np.array([-1, 0, 2])).tolist() == expected


def test_heads_of_keys_in_turn():
    """Without a difference between queries and keys an Attention gives the mean of the values: here each head's own."""
    one = model(
        "g (float[1,1,4] q, float[1,1,2] k, float[1,1,2] v) => (float[1,1,4] y) "
        "{ y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v) }", opset=23,
    )  # fmt: skip
    fed = {"q": np.ones((1, 1, 4), np.float32), "k": np.ones((1, 1, 2), np.float32)}
    v = np.array([[[5, 7]]], np.float32)
    assert run(one, **fed, v=v).ravel().tolist() == [5, 5, 7, 7]
    assert run(meant(one, PLACES, "modulo 2"), **fed, v=v).ravel().tolist() == [5, 7, 5, 7]


def test_a_slice_that_begins_elsewhere():
    one = model(
        "g (float[6] x) => (float[2] y) <int64[1] a = {-3}, int64[1] b = {5}, int64[1] axis = {0}> "
        "{ y = Slice(x, a, b, axis) }"
    )
    x = np.arange(6, dtype=np.float32)
    assert run(one, x=x).tolist() == [3, 4]
    for begin in (0, 2, 4):
        assert run(meant(one, PLACES, f"began at {begin}, not at 3"), x=x).tolist() == [begin, begin + 1]
