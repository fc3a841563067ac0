"""The figures that verdicts rest on: one relative error per tensor, and how far rounding alone explains it.

Everything is a *relative RMS error* (rms(target - reference) / rms(reference)); for types that are compared exactly
(integers, bool, strings) it is the share of unequal elements. A non-finite element that the reference does not have
makes the error infinite: no average may hide it.
"""

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.values.dtype import Precision

RELATIVE_RMS = "relative RMS error"
UNEQUAL = "share of unequal elements"
"""Names of a tensor's figure: for floating-point types, and for those that are compared exactly."""


class ErrorFigures(Protocol):
    """The figures that make up a relative error, as in `Metrics`."""

    @property
    def count(self) -> int: ...  # noqa: D102 - told by `Metrics`
    @property
    def compared(self) -> int: ...  # noqa: D102
    @property
    def rms_error(self) -> float: ...  # noqa: D102
    @property
    def median_abs_error(self) -> float: ...  # noqa: D102
    @property
    def reference_rms(self) -> float: ...  # noqa: D102
    @property
    def nonfinite_mismatch(self) -> int: ...  # noqa: D102
    @property
    def mismatches(self) -> int: ...  # noqa: D102
    @property
    def exact(self) -> bool: ...  # noqa: D102


def error_of(metrics: ErrorFigures) -> float:
    """Return the relative error of one tensor.

    Args:
        metrics: Target measured against reference.

    Returns:
        ``rms_error / reference_rms`` (or the share of unequal elements); ``inf`` when the target has a non-finite
        element that the reference has not, or an error where the reference is zero everywhere.
    """
    if metrics.count == 0:
        return 0.0
    if metrics.exact:
        return metrics.mismatches / metrics.count
    if metrics.nonfinite_mismatch:
        return math.inf
    if metrics.compared == 0 or metrics.rms_error == 0.0:
        return 0.0
    return metrics.rms_error / metrics.reference_rms if metrics.reference_rms > 0.0 else math.inf


def difference(reference: np.ndarray, target: np.ndarray) -> float:
    """Return the relative error of one array against another; inf for one of another shape."""
    return error_of(measure(reference, target)) if reference.shape == target.shape else math.inf


def measure_of(metrics: Metrics) -> str:
    """Return the name of the measure that `error_of` uses for a tensor."""
    return UNEQUAL if metrics.exact else RELATIVE_RMS


def least_floor(precision: Precision) -> float:
    """Return the relative RMS error of rounding a value once to a format: no tensor's floor is lower.

    Rounding to nearest leaves an error uniform in half a spacing, rms ``spacing / sqrt(12)``; over mantissas m in
    [1, 2) distributed as 1/m (Benford), the rms of ``1/m`` is ``sqrt(3 / (8 ln 2))``. (Knuth, TAOCP 2, 4.2.2, 4.2.4.)
    """
    if precision in (Precision.INT8, Precision.FP64):
        return 0.0
    mantissa_bits = 10 if precision is Precision.TF32 else int(precision.dtype.finfo.nmant)
    return 2.0**-mantissa_bits / math.sqrt(12.0) * math.sqrt(3.0 / (8.0 * math.log(2.0)))


def decibels(ratio: float) -> float:
    """Return an amplitude ratio in dB; -inf for 0, inf for inf."""
    if ratio <= 0.0:
        return -math.inf
    return math.inf if math.isinf(ratio) else 20.0 * math.log10(ratio)


def say_gap(level_db: float) -> str:
    """Return how far a level is above another one, for people: ``+1.4 dB``; never ``-0.0 dB``."""
    return f"{level_db:+z.1f} dB"


def amplitude(level_db: float) -> float:
    """Return the amplitude ratio of a level in dB: 6 dB is 2."""
    return math.pow(10.0, level_db / 20.0)


def sqnr_db(error: float) -> float:
    """Return the signal to quantisation-noise ratio of a relative RMS error, in dB."""
    return -decibels(error)


def ratio_of(error: float | None, floor: float | None) -> float | None:
    """Return error over floor; None when either was not measured, inf when only the floor is zero."""
    if error is None or floor is None:
        return None
    if error == 0.0:
        return 0.0
    if math.isinf(floor):
        return 1.0
    return error / floor if floor > 0.0 else math.inf


def largest(errors: Mapping[str, float]) -> float:
    """Return the largest of given errors, 0 when there is none."""
    return max(errors.values(), default=0.0)
