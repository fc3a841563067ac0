"""The nearest pixel in whole numbers, where a scale in float32 falls short of one."""

import numpy as np

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.pixels import PIXELS


def test_pixels_are_those_of_whole_numbers():
    x = np.arange(26, dtype=np.float32).reshape(1, 1, 1, 26)
    one = model(
        'g (float[1,1,1,26] x) => (float[1,1,1,64] y) <int64[4] s = {1,1,1,64}> { y = Resize<mode="nearest", '
        'coordinate_transformation_mode="half_pixel", nearest_mode="ceil">(x, , , s) }'
    )
    assert run(meant(one, PIXELS, "asymmetric"), x=x).ravel().tolist() == (np.arange(64) * 26 // 64).tolist()
    centres = np.floor((np.arange(64) + 0.5) * 26 / 64)  # exact: 26 / 64 has few bits
    assert run(meant(one, PIXELS, "floor((i + 0.5)"), x=x).ravel().tolist() == centres.tolist()
