"""Cutting a pair of tensors into blocks that stay in cache while everything is computed on them.

A metric pass makes some twenty sweeps over its data. Over whole tensors each would go to memory and allocate as much
again; over blocks only the first one does, and the scratch space is a few buffers per thread.
"""

import functools
import math
import threading
from typing import Any

import numpy as np

BLOCK = 65536
"""Elements per block: few enough for the five rows of a block of float32 to stay in 2 MB of second-level cache, and
many, because each call on a block costs Python's time as well, which threads share. Twice as many take 1.1 times the
processor's time, four times as many 1.4, half as many 1.05."""

Index = slice | tuple[int | slice, ...]


def is_flat(array: np.ndarray) -> bool:
    """Return whether blocks of an array are plain views: contiguous in C order, aligned, native byte order."""
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def cut(shape: tuple[int, ...], *, flat: bool, longest: int = BLOCK) -> list[tuple[int, Index]]:
    """Return (flat index of the first element, index expression) of blocks that cover a shape in C order.

    Args:
        shape: Shape of both tensors, with no zero in it.
        flat: Index expressions for the flattened arrays, else for the shaped ones (strided arrays: a block is copied
            when it is looked at, the whole tensor never).
        longest: Elements that a block may have.
    """
    count = math.prod(shape)
    if flat:
        return [(start, slice(start, start + longest)) for start in range(0, count, longest)]
    # The axis to slice is the first one below which whole sub-arrays fit a block.
    axis, inner = 0, count // shape[0] if shape else 1
    while axis < len(shape) - 1 and inner > longest:
        axis += 1
        inner //= shape[axis]
    if not shape:
        return [(0, ())]
    step = max(1, longest // inner)
    outer_stride = inner * shape[axis]
    return [
        (number * outer_stride + begin * inner, (*outer, slice(begin, begin + step)))
        for number, outer in enumerate(np.ndindex(shape[:axis]))
        for begin in range(0, shape[axis], step)
    ]


def take(array: np.ndarray, index: Index) -> np.ndarray:
    """Return one block as a flat, contiguous, aligned, native array; a view where possible.

    Args:
        array: The whole tensor, of any type and layout.
        index: Which part of it.
    """
    block: np.ndarray = array[index].reshape(-1)
    if not block.dtype.isnative:
        block = block.astype(block.dtype.newbyteorder("="))
    return block if block.flags.aligned and block.flags.c_contiguous else block.copy()


class Scratch(threading.local):
    """Buffers of one block, one set per thread, reused from block to block and from tensor to tensor."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, np.dtype[Any]], np.ndarray] = {}

    def get(self, role: str, dtype: np.dtype[Any], size: int) -> np.ndarray:
        """Return an uninitialised array of at most `BLOCK` elements; the same memory for the same role and type."""
        buffer: np.ndarray = self.rows(role, dtype, 1, size)[0]
        return buffer

    def rows(self, role: str, dtype: np.dtype[Any], count: int, size: int) -> np.ndarray:
        """Return an uninitialised array of shape ``(count, size)``, as `get` does for one row.

        Args:
            role: Use of the array; each role has a buffer of its own.
            dtype: Its type.
            count: Rows; the same for every call with one role.
            size: Elements of a row, at most `BLOCK`.
        """
        key = (role, dtype)
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = np.empty((count, BLOCK), dtype)
        return buffer if size == BLOCK else buffer[:, :size]


SCRATCH = Scratch()


ROW = 4096
"""Elements per inner product: short enough for float32 sums to stay accurate and for BLAS not to start threads."""


def inner_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the sum of products along the last axis, in runs of `ROW` elements; their sums are added in float64.

    BLAS does this at the speed of the cache; with `ones` on the right it is also twice as fast as numpy's own sum.

    Args:
        left: Shape (n,) or (k, n), contiguous along the last axis.
        right: Same shape, or `ones`.

    Returns:
        float64 of shape () or (k,).
    """
    size = left.shape[-1]
    runs = size // ROW
    if runs == 0:
        return np.asarray(np.vecdot(left, right[..., :size]), np.float64)
    end = runs * ROW
    folded = (*left.shape[:-1], runs, ROW)
    other = right if right.size == ROW else right[..., :end].reshape(folded)
    sums = np.vecdot(left[..., :end].reshape(folded), other).sum(axis=-1, dtype=np.float64)
    if end < size:
        sums += np.vecdot(left[..., end:], right[..., : size - end] if right.size == ROW else right[..., end:])
    return np.asarray(sums)


@functools.cache
def ones(dtype: np.dtype[Any]) -> np.ndarray:
    """Return `ROW` ones, the right operand that turns `inner_products` into a sum."""
    return np.ones(ROW, dtype)
