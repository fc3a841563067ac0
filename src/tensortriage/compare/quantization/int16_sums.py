"""Products of 8-bit numbers, added in pairs in saturating int16, as by kernels without VNNI.

So does the x86 instruction VPMADDUBSW (Intel 64 manual), which takes unsigned data and signed weights: 255 * 127 * 2 =
64770 does not fit in int16, which ends at 32767. Pairs follow each other along the summed axis, from its first number
on; of convolutions channels are innermost. ONNX Runtime 1.31.1 on AVX2 gives these numbers bit for bit in MatMulInteger
and QLinearConv; so does OpenVINO 2026.4.1, but that without groups the last of an odd number of channels has no partner
(tests/engines/test_without_vnni.py). Signed data are moved up by 128 first where a kernel does so. Weights of at most
64 in magnitude (7 bits) always fit: 255 * 64 * 2 = 32640. With VNNI, or unsigned weights, sums are in int32.
"""

from collections.abc import Iterator

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass

_END = float(np.iinfo(np.int16).max)
_MOST_ROWS = 64
_AT_ONCE = 1 << 22
"""Sums of two products that are held at once."""


@frozen_dataclass
class Int16Sums:
    """Sums of two products in int16, and their error.

    Attributes:
        largest: Largest magnitude of a sum of two products; int16 ends at 32767. Where none is beyond, a bound on all
            of them.
        saturated: Share of the pairs that do not fit, 0 to 1.
        error: Relative RMS error of the whole sums, against the same in int32 and without zero points.
    """

    largest: float
    saturated: float
    error: float


def own_range(data: np.ndarray) -> tuple[np.ndarray, int]:
    """Return real numbers in uint8 by their own range widened to hold 0, and the zero point (DynamicQuantizeLinear)."""
    low, high = min(0.0, float(data.min(initial=0.0))), max(0.0, float(data.max(initial=0.0)))
    step = (high - low) / 255.0 or 1.0
    zero = int(np.clip(np.rint(-low / step), 0, 255))
    return np.clip(np.rint(data / step) + zero, 0, 255).astype(np.uint8), zero


def saturated_product(data: np.ndarray, weights: np.ndarray, *, moved: bool = False) -> np.ndarray:
    """Return a product of matrices as such kernels compute it, without zero points.

    Args:
        data: uint8 or int8, rows of numbers to be summed over.
        weights: int8, one column per sum.
        moved: Whether int8 data are moved up by 128, and the effect of that is subtracted again.
    """
    exact = data.astype(np.float64) @ weights.astype(np.float64)
    for columns, pairs in _pairs_beyond(data, weights, moved=moved):
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        exact[:, columns[first]] -= np.add.reduceat(_excess(pairs), first, axis=1)
    return exact


def int16_sums(data: np.ndarray, zero: int, weights: np.ndarray) -> Int16Sums:
    """Return the sums of a matrix product in int16; of many rows, some evenly spaced ones count.

    Args:
        data: uint8 or int8, rows of numbers to be summed over; int8 are moved up.
        zero: Zero point of the data.
        weights: int8, one column per sum; zero point 0.
    """
    rows = data[:: max(1, len(data) // _MOST_ROWS)]
    largest = float(_most(rows, weights, moved=True).max(initial=0.0))
    seen = [(np.abs(pairs).max(), np.count_nonzero(_excess(pairs))) for _, pairs in _pairs_beyond(rows, weights)]
    if beyond := sum(count for _, count in seen):
        largest = float(max(top for top, _ in seen))
    exact = (rows.astype(np.float64) - zero) @ weights.astype(np.float64)
    lost = exact + zero * weights.astype(np.float64).sum(axis=0) - saturated_product(rows, weights, moved=True)
    power, count = float(np.square(exact).sum()), len(rows) * ((len(weights) + 1) // 2) * weights.shape[1]
    error = float(np.sqrt(np.square(lost).sum() / power)) if power else 0.0
    return Int16Sums(largest, beyond / count if count else 0.0, error)


def _excess(pairs: np.ndarray) -> np.ndarray:
    return np.asarray(pairs - np.clip(pairs, -_END - 1.0, _END))


def _unsigned(data: np.ndarray, *, moved: bool) -> np.ndarray:
    return data.astype(np.float64) + (128.0 if moved and data.dtype == np.int8 else 0.0)


def _most(data: np.ndarray, weights: np.ndarray, *, moved: bool) -> np.ndarray:
    """Return the largest magnitude that the sum of each pair can have: pairs by columns."""
    if data.dtype == np.int8 and not moved:  # then nothing is beyond
        return np.zeros((0, weights.shape[1]))
    tops = _unsigned(data, moved=moved).max(axis=0, initial=0.0)[:, None]
    above, below = (np.maximum(sign * weights.astype(np.float64), 0.0) * tops for sign in (1.0, -1.0))
    above, below = (np.pad(each, ((0, len(each) % 2), (0, 0))) for each in (above, below))
    return np.asarray(np.maximum(above[0::2] + above[1::2], below[0::2] + below[1::2]))


def _pairs_beyond(
    data: np.ndarray, weights: np.ndarray, *, moved: bool = True
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the sums of pairs that may not fit, rows by pairs, with the column of each pair, ascending."""
    columns, pairs = np.nonzero(_most(data, weights, moved=moved).T > _END)
    if not len(pairs):
        return
    odd = len(weights) % 2
    numbers = np.pad(_unsigned(data, moved=moved), ((0, 0), (0, odd)))
    factors = np.pad(weights.astype(np.float64), ((0, odd), (0, 0)))
    step = max(1, _AT_ONCE // max(1, len(data)))
    for start in range(0, len(pairs), step):
        first, column = 2 * pairs[start : start + step], columns[start : start + step]
        sums = numbers[:, first] * factors[first, column] + numbers[:, first + 1] * factors[first + 1, column]
        yield column, sums


def windows(data: np.ndarray, kernel: tuple[int, ...], zero: int) -> np.ndarray:
    """Return the numbers under a kernel as rows, channels innermost, at places without padding.

    Args:
        data: Batch, channels, and as many axes as the kernel has.
        kernel: Sizes along the kernel's axes.
        zero: Zero point of the data, for axes shorter than the kernel.
    """
    short = [(0, max(0, size - have)) for size, have in zip(kernel, data.shape[2:], strict=True)]
    padded = np.pad(data, [(0, 0), (0, 0), *short], constant_values=zero)
    axes = tuple(range(2, 2 + len(kernel)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=axes)
    channels_last = np.moveaxis(seen, 1, -1)  # batch, places, kernel, channels
    rows = channels_last.reshape(-1, int(np.prod(kernel)) * data.shape[1])
    return np.asarray(rows)
