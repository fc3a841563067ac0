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
