"""Errors of outputs over samples."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import error_of, measure


def errors_of(
    golden: Sequence[Mapping[str, np.ndarray]], found: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, float]:
    """Return the largest relative RMS error over some samples, by output."""
    errors: dict[str, float] = {}
    for reference, target in zip(golden, found, strict=True):
        for name, array in reference.items():
            same = name in target and target[name].shape == array.shape
            error = error_of(measure(array, target[name])) if same else math.inf
            errors[name] = max(errors.get(name, 0.0), error)
    return errors
