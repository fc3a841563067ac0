"""Sliding windows: where they lie, and how to walk them tap by tap.

A window operator is a sum (or maximum) over the positions inside its window, the taps; all windows together see one
tap as a strided slice of the padded input. Walking taps needs no copy of the input per window, in any dimension.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensortriage.engines.float64.kernels.call import Call
from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Windows:
    """The windows of one operator over the spatial axes, which follow the batch and channel axes.

    Attributes:
        kernel: Taps per axis.
        strides: Steps between windows.
        dilations: Steps between taps.
        pads: Elements added before and after each axis; those after include the ones that ceil mode needs.
        given_pads: Elements that the model itself adds before and after.
        counts: Windows per axis.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    given_pads: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, call: Call, spatial: Sequence[int], kernel: Sequence[int]) -> "Windows":
        """Return the windows that an operator's attributes describe over an input of some spatial shape."""
        rank = len(spatial)
        strides = tuple(call.get("strides") or (1,) * rank)
        dilations = tuple(call.get("dilations") or (1,) * rank)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        auto = call.get("auto_pad", "NOTSET")
        if auto.startswith("SAME"):
            counts = tuple(-(-n // s) for n, s in zip(spatial, strides, strict=True))
            total = [max((c - 1) * s + r - n, 0) for c, s, r, n in zip(counts, strides, reach, spatial, strict=True)]
            halves = [(t // 2, t - t // 2) if auto == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
            return cls(tuple(kernel), strides, dilations, tuple(halves), tuple(halves), counts)
        flat = [0] * (2 * rank) if auto == "VALID" else list(call.get("pads") or [0] * (2 * rank))
        pads = tuple((flat[i], flat[i + rank]) for i in range(rank))
        counts = tuple(
            _count(n + sum(p), r, s, p[0] + n, ceil=bool(call.get("ceil_mode", 0)))
            for n, p, r, s in zip(spatial, pads, reach, strides, strict=True)
        )
        needed = [(c - 1) * s + r for c, s, r in zip(counts, strides, reach, strict=True)]
        grown = tuple((p[0], max(p[1], need - n - p[0])) for p, n, need in zip(pads, spatial, needed, strict=True))
        return cls(tuple(kernel), strides, dilations, grown, pads, counts)

    def padded(self, x: np.ndarray, fill: float) -> np.ndarray:
        """Return the input with its pads.

        Args:
            x: ``[batch, channels, *sizes]``.
            fill: Value of the pads.
        """
        if not any(itertools.chain(*self.pads)):
            return x
        return np.pad(x, ((0, 0), (0, 0), *self.pads), constant_values=np.asarray(fill, x.dtype))

    def taps(self, padded: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield each tap's place in the kernel with its view: one element per window, shape (..., *counts).

        Args:
            padded: The result of the method `padded`.
        """
        for place in np.ndindex(*self.kernel):
            yield place, last_axes(padded, self.cut(place))

    def cut(self, place: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the slices of the padded spatial axes that one tap sees."""
        starts = [o * d for o, d in zip(place, self.dilations, strict=True)]
        ends = [b + (c - 1) * s + 1 if c else b for b, c, s in zip(starts, self.counts, self.strides, strict=True)]
        return tuple(slice(b, e, s) for b, e, s in zip(starts, ends, self.strides, strict=True))


def last_axes(array: np.ndarray, places: Sequence[int | slice]) -> np.ndarray:
    """Return a view of an array at places on its last axes, all of the ones before.

    Args:
        array: Array of at least as many axes as there are places.
        places: An index or a slice for each of the last axes, in their order; an index removes its axis.
    """
    index: tuple[Any, ...] = (..., *places)
    return np.asarray(array[index])


def _count(padded: int, reach: int, stride: int, end: int, *, ceil: bool) -> int:
    """Return how many windows fit; in ceil mode the last one may hang over, but must not start in the end padding."""
    if not ceil:
        return max(0, (padded - reach) // stride + 1)
    count = -(-(padded - reach) // stride) + 1
    return max(0, count - 1 if (count - 1) * stride >= end else count)
