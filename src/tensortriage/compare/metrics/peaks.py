"""Finding the few largest elements of a block from the maxima of its runs: most of the block is read only once."""

import numpy as np

RUN = 1024
"""Elements per run: long enough for their maxima to cost hardly more than one maximum, short enough to sort out."""

SMALL = 16 * RUN
"""Up to so many elements an array is one run: taking it apart would cost more than it saves."""

_MANY = 4


def peaks(values: np.ndarray) -> np.ndarray:
    """Return the maximum of every run, NaN where it holds one; the last run may be shorter.

    The bits of non-negative floats, read as integers, are in the order of the floats, and those of any NaN are above
    them: numpy finds their maximum in half the time, having no NaN to look for.

    Args:
        values: Non-negative float32 or float64 or NaN, never -0.0; flat, contiguous and not empty.
    """
    bits = values.view(f"u{values.itemsize}")
    if values.size <= SMALL:
        return np.asarray(np.maximum.reduce(bits, keepdims=True)).view(values.dtype)
    whole, rest = divmod(values.size, RUN)
    maxima = np.empty(whole + (rest > 0), bits.dtype)
    np.maximum.reduce(bits[: whole * RUN].reshape(-1, RUN), axis=1, out=maxima[:whole])
    if rest:
        maxima[whole] = np.maximum.reduce(bits[whole * RUN :])
    return maxima.view(values.dtype)


def few_reaching(maxima: np.ndarray, limit: float) -> np.ndarray | None:
    """Return the runs with a peak (see `peaks`) of at least ``limit``, ascending; None when they are many.

    Args:
        maxima: Largest value of each run of `RUN` elements.
        limit: In the unit of the values.
    """
    if maxima.size == 1:
        return None
    runs = np.flatnonzero(maxima >= limit)
    return None if _MANY * runs.size > maxima.size else runs


def gathered(values: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return the elements of some runs, given in ascending order, as a flat copy.

    Args:
        values: A flat array.
        runs: Numbers of runs of `RUN` elements; the last run of the array may be shorter.
    """
    whole = values.size // RUN
    rows = values[: whole * RUN].reshape(-1, RUN)
    if runs.size and runs[-1] == whole:
        return np.concatenate([rows[runs[:-1]].reshape(-1), values[whole * RUN :]])
    return np.asarray(rows[runs].reshape(-1))


def places_reaching(values: np.ndarray, maxima: np.ndarray, limit: float) -> np.ndarray:
    """Return the places of all elements that are at least ``limit``, ascending; ``maxima`` are the `peaks`.

    Args:
        values: A flat array.
        maxima: Its `peaks`.
        limit: In the unit of the values.
    """
    runs = few_reaching(maxima, limit)
    if runs is None:
        return np.asarray(np.flatnonzero(values >= limit))
    found = np.flatnonzero(gathered(values, runs) >= limit)
    return np.asarray(runs[found // RUN] * RUN + found % RUN)
