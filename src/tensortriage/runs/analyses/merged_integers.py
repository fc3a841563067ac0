"""Whole numbers (token ids, positions) that a floating-point format has too few digits for, and makes equal."""

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision

_SAMPLE = 4096


@frozen_dataclass
class MergedIntegers:
    """Whole numbers that become equal in a format.

    Attributes:
        exact: Up to this the format has every whole number.
        share: Share of them that it changes.
    """

    exact: float
    share: float


def merged_integers(magnitudes: np.ndarray, precision: Precision) -> MergedIntegers | None:
    """Return how a format fares with numbers that are all whole; None unless it makes different ones equal.

    Args:
        magnitudes: Finite, not negative; any shape.
        precision: A floating-point format.
    """
    info = precision.dtype.finfo
    exact, largest = 2.0 ** (int(info.nmant) + 1), float(magnitudes.max(initial=0.0))
    if not exact < largest <= float(info.max) or not _whole(magnitudes.reshape(-1)):
        return None
    rounded = magnitudes.astype(precision.dtype.numpy).astype(np.float64)
    share = float((rounded != magnitudes).mean())
    fewer = share > 0.0 and np.unique(rounded).size < np.unique(magnitudes).size  # else it is rounding like any other
    return MergedIntegers(exact, share) if fewer else None


def _whole(magnitudes: np.ndarray) -> bool:
    """Return whether all numbers are whole."""
    return all(bool((part == np.rint(part)).all()) for part in (magnitudes[:_SAMPLE], magnitudes))
