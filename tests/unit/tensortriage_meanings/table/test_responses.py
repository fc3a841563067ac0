"""What an LRN with another window becomes; expected values are numpy's sums of squares."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.pools import NEIGHBOURS

X = np.random.default_rng(5).standard_normal((2, 6, 4, 4)).astype(np.float32)
ALPHA, BETA, BIAS = 0.9, 0.75, 1.5


def layer(size):
    attributes = f"size={size}, alpha={ALPHA}, beta={BETA}, bias={BIAS}"
    return model(f"g (float[2,6,4,4] x) => (float[2,6,4,4] y) {{ y = LRN<{attributes}>(x) }}")


def normed(size, axes, before):
    """Return numbers normed by the squares in a window of each of these axes."""
    behind, squares = size - 1 - before, X.astype(np.float64) ** 2
    for axis in axes:
        pads = [(before, behind) if each == axis else (0, 0) for each in range(4)]
        padded, length = np.pad(squares, pads), X.shape[axis]
        squares = sum(np.take(padded, range(i, i + length), axis) for i in range(size))
    return X / (BIAS + ALPHA / size ** len(axes) * squares) ** BETA


@pytest.mark.parametrize(
    ("words", "size", "axes", "before"),
    [("batch (axis 0)", 3, (0,), 1), ("the last axis (3)", 3, (3,), 1), ("pixels", 3, (2, 3), 1),
     ("pixels", 5, (2, 3), 2)],
)  # fmt: skip
def test_other_windows(words, size, axes, before):
    assert run(meant(layer(size), NEIGHBOURS, words), x=X) == pytest.approx(normed(size, axes, before), rel=1e-5)


def test_a_loop_over_the_batch_leaves_later_channels_without_a_sum():
    expected = normed(3, (1,), 1)
    expected[:, 2:] = X[:, 2:] / BIAS**BETA
    assert run(meant(layer(3), NEIGHBOURS, "as many channels"), x=X) == pytest.approx(expected, rel=1e-5)


def test_each_channel_alone():
    expected = X / (BIAS + ALPHA / 3 * X.astype(np.float64) ** 2) ** BETA
    assert run(meant(layer(3), NEIGHBOURS, "no neighbouring"), x=X) == pytest.approx(expected, rel=1e-5)
