"""Random projections: a few numbers per tensor (or per slice), as far apart as the tensors themselves.

The projection of x on random signs w is a sum with mean square |x|^2, so the mean squared difference of some
projections of x and y estimates |x - y|^2 without bias (Achlioptas, JCSS 2003, theorem 1.1): n numbers become 24, and
similar tensors stay similar. Signs come from the raw bits of a counter-based generator keyed by length only, so they
are the same on every machine and in every version of numpy.
"""

import functools

import numpy as np

_BLOCK = 4096


@functools.lru_cache(maxsize=256)
def signs(length: int, count: int) -> np.ndarray:
    """Return ``count`` rows of random signs, float32 ``[count, length]``, a function of the arguments only."""
    words = np.random.Philox(key=length).random_raw(-(-length * count // 64))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), count=length * count, bitorder="little")
    found: np.ndarray = (bits.reshape(count, length).astype(np.float32) * 2.0) - 1.0
    found.flags.writeable = False
    return found


def project_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` projections of every row.

    Signs are products of those of a place within its block of 4096 and those of the block, so that no table as long as
    a tensor is needed.

    Args:
        rows: float32 or float64 ``[k, n]``.
        count: Projections.

    Returns:
        float64 ``[k, count]``.
    """
    k, n = rows.shape
    inner = signs(min(n, _BLOCK), count).T.astype(rows.dtype)
    blocks = n // _BLOCK
    if blocks == 0:
        return np.asarray(rows @ inner, np.float64)
    outer = signs(blocks + 1, count).T.astype(np.float64)
    whole = np.matmul(rows[:, : blocks * _BLOCK].reshape(k, blocks, _BLOCK), inner).astype(np.float64)
    found = np.einsum("kbj,bj->kj", whole, outer[:blocks])
    if n > blocks * _BLOCK:
        rest = rows[:, blocks * _BLOCK :]
        found = found + (rest @ inner[: rest.shape[1]]) * outer[blocks]
    return np.asarray(found, np.float64)


def project_symmetric(array: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` projections of a tensor that stay the same when axes are transposed, or added of length 1.

    The sign of an element is the product of one sign per axis, which depends on the length of the axis and the index
    along it, not on which axis it is.

    Args:
        array: float32 or float64.
        count: Projections.

    Returns:
        float64 ``[count]``.
    """
    sizes = [size for size in array.shape if size != 1]
    if not sizes:
        return np.full(count, float(array.reshape(-1)[0]))
    array = array.reshape(sizes)
    longest = int(np.argmax(sizes))
    rows = np.moveaxis(array, longest, -1).reshape(-1, sizes[longest])
    rest = np.asarray(rows @ signs(sizes[longest], count).T.astype(array.dtype), np.float64)
    for size in [size for axis, size in enumerate(sizes) if axis != longest][::-1]:
        rest = np.einsum("aij,ji->aj", rest.reshape(-1, size, count), signs(size, count).astype(np.float64))
    return rest.reshape(count)
