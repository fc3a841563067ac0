"""3x3 convolutions of stride 1 by Winograd's minimal filtering, in float32, as many engines compute them.

Tiles of input and kernel are transformed, multiplied element by element (summed over channels), and transformed back:
F(2x2, 3x3) needs 16 products for 4 results instead of 36, F(4x4, 3x3) 36 instead of 144, F(6x6, 3x3) 64 instead of 324.
The transforms add numbers of different size, which costs digits. Matrices: Lavin and Gray, "Fast Algorithms for
Convolutional Neural Networks", CVPR 2016, section 4; those of F(6x6, 3x3) by Cook and Toom's construction on the points
0, 1, -1, 2, -2, 3, -3, which are simple and cost most digits.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tensortriage.engines.float64.accumulation import Accumulation
from tensortriage.engines.float64.kernels.sliding_windows.windows import Windows
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType


@frozen_dataclass
class _Transforms:
    """The transforms of one tile size as matrices on flattened tiles, float32: input, kernel, result."""

    data: np.ndarray
    kernel: np.ndarray
    result: np.ndarray

    @classmethod
    def of(cls, data: list[list[float]], kernel: list[list[float]], result: list[list[float]]) -> "_Transforms":
        """Return both passes, over rows and columns, of the one-dimensional transforms as one matrix each."""
        return cls(*(np.kron(matrix, matrix).astype(np.float32) for matrix in (data, kernel, result)))

    @classmethod
    def by_points(cls, *points: int) -> "_Transforms":
        """Return the transforms for kernels of 3 that Cook and Toom's construction makes of points and infinity."""
        tile = len(points) - 1
        data, kernel = [], []
        for point in points:
            others = [other for other in points if other != point]
            divisor = math.prod(point - other for other in others)
            data.append([*_polynomial(others), 0.0])
            kernel.append([float(Fraction(point**power, divisor)) for power in range(3)])
        result = [[*(float(point**power) for point in points), float(power == tile - 1)] for power in range(tile)]
        return cls.of([*data, _polynomial(points)], [*kernel, [0.0, 0.0, 1.0]], result)


def _polynomial(roots: Sequence[int]) -> list[float]:
    """Return the coefficients of the product of (x - root), from the constant to the highest."""
    found = [1]
    for root in roots:
        found = [up - root * same for up, same in zip([0, *found], [*found, 0], strict=True)]
    return [float(coefficient) for coefficient in found]


_TRANSFORMS = {
    2: _Transforms.of(
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: _Transforms.of(
        [
            [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
        ],
        [
            [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
    6: _Transforms.by_points(0, 1, -1, 2, -2, 3, -3),
}  # fmt: skip


def fits(windows: Windows, groups: int) -> bool:
    """Return whether engines compute a convolution by this method."""
    return (
        groups == 1 and windows.kernel == (3, 3) and set(windows.strides) == {1} == set(windows.dilations)
    )  # fmt: skip


def correlate(x: np.ndarray, weight: np.ndarray, windows: Windows, tile: int, sums: Accumulation) -> np.ndarray:
    """Return the convolution of x (N, C, H, W) with weight (M, C, 3, 3), float64.

    Args:
        x: Input, float64.
        weight: Kernels, float64.
        windows: Windows that `fits` accepts.
        tile: Rows and columns of a tile of results: 2, 4 or 6.
        sums: How products over channels add up; float32 in place of exact sums.
    """
    if sums.accumulator is None:
        sums = dataclasses.replace(sums, accumulator=DType.FLOAT)
    transforms = _TRANSFORMS[tile]
    (n, c), m = x.shape[:2], weight.shape[0]
    rows, columns = (-(-count // tile) for count in windows.counts)
    padded = _padded(windows.padded(x.astype(np.float32), 0), rows * tile + 2, columns * tile + 2)
    places = (tile + 2) ** 2
    tiles = _tiles(padded.swapaxes(0, 1), rows, columns, tile).reshape(-1, places)
    right = (transforms.data @ tiles.T).reshape(places, c, n * rows * columns)
    left = (transforms.kernel @ weight.astype(np.float32).reshape(-1, 9).T).reshape(places, m, c)
    found = sums.matmul(left, right).astype(np.float32)  # (places, M, N * tiles)
    y = transforms.result @ found.reshape(places, -1)  # (tile * tile, M * N * tiles)
    grid = y.reshape(tile, tile, m, n, rows, columns).transpose(3, 2, 4, 0, 5, 1)
    whole: np.ndarray = grid.reshape(n, m, rows * tile, columns * tile).astype(np.float64)
    return whole[:, :, : windows.counts[0], : windows.counts[1]]


def _padded(x: np.ndarray, height: int, width: int) -> np.ndarray:
    return np.pad(x, ((0, 0), (0, 0), (0, height - x.shape[2]), (0, width - x.shape[3])))


def _tiles(padded: np.ndarray, rows: int, columns: int, tile: int) -> np.ndarray:
    """Return overlapping tiles (C, N, rows, columns, tile + 2, tile + 2) of a float32 array (C, N, H, W)."""
    c, n, down, right = padded.strides
    shape = (*padded.shape[:2], rows, columns, tile + 2, tile + 2)
    strides = (c, n, down * tile, right * tile, down, right)
    return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
