"""Convolutions of 3x3 by Winograd's minimal filtering: fewer multiplications, and other rounding.

F(m x m, 3 x 3) turns tiles of m + 2 values into m + 2 products per axis (Lavin and Gray, "Fast algorithms for
convolutional neural networks", CVPR 2016, sections 4.1 and 4.3; matrices as there). The transforms of F(4x4) multiply
by up to 8 and subtract, which costs about a decimal digit against the direct sum; F(2x2) costs next to nothing.
"""

from collections.abc import Callable

import numpy as np

_DATA = {
    2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
    4: [
        [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
    ],
}  # fmt: skip
_FILTER = {
    2: [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1],
    ],
}  # fmt: skip
_RESULT = {
    2: [[1, 1, 1, 0], [0, 1, -1, -1]],
    4: [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
}

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def convolved(padded: np.ndarray, weight: np.ndarray, outputs: int, product: Product) -> np.ndarray:
    """Convolve with stride and dilation 1.

    Args:
        padded: ``[batch, channels, h, w]`` float32, padding included.
        weight: ``[filters, channels, 3, 3]`` float32.
        outputs: Outputs per tile and axis: 2 or 4.
        product: Matrix product of ``[..., n, channels]`` and ``[..., channels, filters]``, with the accumulator's
            rounding.

    Returns:
        ``[batch, filters, h - 2, w - 2]`` float32.
    """
    batch, channels, height, width = padded.shape
    rows, columns = -(-(height - 2) // outputs), -(-(width - 2) // outputs)
    whole = (rows * outputs + 2 - height, columns * outputs + 2 - width)
    data = np.pad(padded, ((0, 0), (0, 0), (0, whole[0]), (0, whole[1])))
    tiles = np.lib.stride_tricks.sliding_window_view(data, (outputs + 2, outputs + 2), axis=(2, 3))
    tiles = tiles[:, :, ::outputs, ::outputs]
    to_data, to_filter, to_result = (np.array(m[outputs], np.float32) for m in (_DATA, _FILTER, _RESULT))
    moved = to_data @ tiles.astype(np.float32) @ to_data.T
    filters = to_filter @ weight.astype(np.float32) @ to_filter.T
    left = moved.transpose(4, 5, 0, 2, 3, 1).reshape(outputs + 2, outputs + 2, batch * rows * columns, channels)
    summed = product(left, filters.transpose(2, 3, 1, 0)).astype(np.float32)
    back = summed.transpose(2, 3, 0, 1)
    made = (to_result @ back @ to_result.T).reshape(batch, rows, columns, len(weight), outputs, outputs)
    result = made.transpose(0, 3, 1, 4, 2, 5).reshape(batch, len(weight), rows * outputs, columns * outputs)
    return np.ascontiguousarray(result[:, :, : height - 2, : width - 2])
