import numpy as np
import pytest

from tensortriage.engines.float64.kernels import Call, kernel_for
from unit.engines.float64.kernels.naive_windows import convolution

CASES = [
    {"x": (2, 3, 7), "w": (4, 3, 3)},
    {"x": (1, 4, 6, 5), "w": (6, 2, 3, 2), "group": 2, "pads": [1, 0, 2, 1]},
    {"x": (1, 3, 6, 6), "w": (3, 1, 3, 3), "group": 3, "strides": [2, 1], "pads": [1, 1, 1, 1]},
    {"x": (1, 2, 9, 7), "w": (4, 1, 2, 3), "group": 2, "dilations": [2, 3], "strides": [3, 1]},
    {"x": (1, 2, 4, 5, 3), "w": (2, 2, 2, 2, 2), "pads": [1, 0, 1, 0, 2, 0], "strides": [2, 2, 1]},
]


def integers(shape, seed):
    """Whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "x".join(map(str, case["x"])))
def test_convolution_is_its_definition(case):
    x, w = integers(case["x"], 1), integers(case["w"], 2)
    rank = x.ndim - 2
    attributes = {name: value for name, value in case.items() if name not in "xw"}
    expected = convolution(
        x,
        w,
        case.get("strides", [1] * rank),
        case.get("dilations", [1] * rank),
        case.get("pads", [0] * 2 * rank),
        case.get("group", 1),
    )
    found = kernel_for("Conv")(Call("Conv", 21, (x, w), attributes))
    assert found.shape == expected.shape
    assert (found == expected).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: "x".join(map(str, case["x"])))
def test_transposed_convolution_is_the_adjoint(case):
    """<conv(x), y> equals <x, transposed(y)> for every y, exactly on whole numbers."""
    x, w = integers(case["x"], 1), integers(case["w"], 2)
    attributes = {name: value for name, value in case.items() if name not in "xw"}
    forward = kernel_for("Conv")(Call("Conv", 21, (x, w), attributes))
    y = integers(forward.shape, 3)
    rank = x.ndim - 2
    strides, dilations = case.get("strides", [1] * rank), case.get("dilations", [1] * rank)
    pads = case.get("pads", [0] * 2 * rank)
    short = [
        n + pads[i] + pads[i + rank] - ((f - 1) * s + (k - 1) * d + 1)
        for i, (n, f, s, k, d) in enumerate(
            zip(x.shape[2:], forward.shape[2:], strides, w.shape[2:], dilations, strict=True)
        )
    ]
    back = kernel_for("ConvTranspose")(Call("ConvTranspose", 21, (y, w), {**attributes, "output_padding": short}))
    assert back.shape == x.shape
    assert (forward * y).sum() == (x * back).sum()


@pytest.mark.parametrize(("word", "pads"), [("SAME_UPPER", [0, 1]), ("SAME_LOWER", [1, 0]), ("VALID", [0, 0])])
def test_automatic_padding(word, pads):
    x, w = integers((1, 1, 6), 1), integers((1, 1, 2), 2)
    given = kernel_for("Conv")(Call("Conv", 21, (x, w), {"pads": pads}))
    automatic = kernel_for("Conv")(Call("Conv", 21, (x, w), {"auto_pad": word}))
    assert (given == automatic).all()


def test_bias_is_added_per_channel():
    x, w = np.ones((1, 1, 3)), np.ones((2, 1, 1))
    found = kernel_for("Conv")(Call("Conv", 21, (x, w, np.array([10.0, 20.0])), {}))
    assert found.tolist() == [[[11.0] * 3, [21.0] * 3]]


def test_products_keep_float64():
    x, w = np.full((1, 1, 1), 1 / 3), np.full((1, 1, 1), 1 / 7)
    assert kernel_for("Conv")(Call("Conv", 21, (x, w), {})).item() == (1 / 3) * (1 / 7)
