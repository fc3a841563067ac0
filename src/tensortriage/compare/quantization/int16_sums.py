"""Sums of products of 8-bit numbers where each pair of products is first added in saturating int16.

So does the x86 instruction VPMADDUBSW, which takes unsigned data and signed weights: 255 * 127 * 2 = 64770 does not fit
in int16, which ends at 32767. Signed data are moved up by 128 first, as kernels do. Weights of at most 64 in magnitude
(7 bits) always fit: 255 * 64 * 2 = 32640.
"""

import dataclasses

import numpy as np

_END = float(np.iinfo(np.int16).max)
_MOST_ROWS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Int16Sums:
    """Sums of two products in int16, and their error.

    Attributes:
        largest: Largest magnitude of a sum of two products; int16 ends at 32767.
        saturated: Share of the pairs that do not fit, 0 to 1.
        error: Relative RMS error of the whole sums, against the same in int32 and without zero points.
    """

    largest: float
    saturated: float
    error: float


def int16_sums(data: np.ndarray, zero: int, weights: np.ndarray) -> Int16Sums:
    """Return the sums of a matrix product in int16; of many rows, some evenly spaced ones count.

    Args:
        data: uint8 or int8, rows of numbers to be summed over.
        zero: Zero point of the data.
        weights: int8, one column per sum; zero point 0.
    """
    rows = data[:: max(1, len(data) // _MOST_ROWS)].astype(np.float64)
    shift = 128.0 if data.dtype == np.int8 else 0.0
    columns = weights.astype(np.float64)
    if len(columns) % 2:
        rows, columns = np.pad(rows + shift, ((0, 0), (0, 1))) - shift, np.pad(columns, ((0, 1), (0, 0)))
    largest = beyond = lost = power = 0.0
    exact = (rows - zero) @ columns
    for row, sums in zip(rows + shift, exact, strict=True):
        products = row[:, None] * columns
        pairs = products[0::2] + products[1::2]
        excess = pairs - np.clip(pairs, -_END - 1.0, _END)
        largest = max(largest, float(np.abs(pairs).max(initial=0.0)))
        beyond += float(np.count_nonzero(excess))
        lost += float(np.square(excess.sum(axis=0)).sum())
        power += float(np.square(sums).sum())
    count = len(rows) * (len(columns) // 2) * columns.shape[1]
    return Int16Sums(largest, beyond / count if count else 0.0, float(np.sqrt(lost / power)) if power else 0.0)


def windows(data: np.ndarray, kernel: tuple[int, ...], zero: int) -> np.ndarray:
    """Return the numbers under a kernel as rows, channels innermost, at places without padding.

    Args:
        data: Batch, channels, and as many axes as the kernel has.
        kernel: Its lengths along those.
        zero: Zero point of the data, for axes shorter than the kernel.
    """
    short = [(0, max(0, size - have)) for size, have in zip(kernel, data.shape[2:], strict=True)]
    padded = np.pad(data, [(0, 0), (0, 0), *short], constant_values=zero)
    axes = tuple(range(2, 2 + len(kernel)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=axes)
    channels_last = np.moveaxis(seen, 1, -1)  # batch, places, kernel, channels
    rows = channels_last.reshape(-1, int(np.prod(kernel)) * data.shape[1])
    return np.asarray(rows)
