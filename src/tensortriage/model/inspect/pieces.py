"""Large arrays in pieces."""

from collections.abc import Iterator

import numpy as np

_BLOCK = 1 << 20


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array, flat, in pieces of a million elements, so that statistics of a large one need little memory."""
    flat = array.reshape(-1)
    return (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
