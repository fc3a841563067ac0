"""A feed moved by less than float32 resolves: its effect on results is the model's own sensitivity."""

from collections.abc import Mapping

import numpy as np


def jitter(tensors: Mapping[str, np.ndarray], *, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a copy of a feed with every float32 and float64 element moved by -1, 0 or +1 ulp, reproducibly.

    Args:
        tensors: Arrays by name; other types pass through unchanged.
        seed: Of the random directions.
    """
    rng = np.random.default_rng(seed)
    moved: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        if array.dtype not in (np.float32, np.float64):
            moved[name] = array
            continue
        direction = rng.integers(-1, 2, array.shape)
        towards = np.where(direction > 0, np.inf, -np.inf).astype(array.dtype)
        with np.errstate(over="ignore"):
            nearest = np.nextafter(array, towards)
        moved[name] = np.where((direction == 0) | np.isinf(nearest), array, nearest).astype(array.dtype)
    return moved
