"""The only place that decides whether a tensor is within its limit.

Three families: limits per element or on a statistic of the errors, with the meaning they have in Polygraphy's
``--check-error-stat``; thresholds on one number of the whole tensor (L2, cosine, PSNR, SNR); and the noise floor, which
asks whether the error is larger than a healthy engine's would be. A NaN is outside of every limit, and an empty tensor
within.

The reference is the side that relative errors, signal and peak are taken from, always. (Polygraphy takes the second
runner in ``simple`` and the first one in PSNR and SNR.)
"""

import dataclasses
import enum
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from tensortriage.compare.metrics import limit_counts
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.errors import DataError, UsageError

Setting = float | Mapping[str, float]
"""One number for all tensors, or one per name with ``""`` for the names that are not listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a tensor is within its limit.

    Attributes:
        within: The verdict.
        limit: What was asked, for people, e.g. ``abs <= 1e-05 or rel <= 1e-05 (elemwise)``.
        ratio: Error relative to the limit; above 1 is outside, infinite when no number says how far.
    """

    within: bool
    limit: str
    ratio: float


class Tolerance(Protocol):
    """Decides "within" for one tensor at a time."""

    def judge(
        self, name: str, metrics: Metrics, reference: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> Judgement:
        """Judge one tensor.

        Args:
            name: Its name, for limits that differ by name.
            metrics: Its metrics.
            reference: The tensor itself; without it a judgement that needs it is made from the metrics alone, and
                may be stricter but never more lenient.
            target: The tensor itself, likewise.
        """
        ...


class ErrorStat(enum.Enum):
    """What a pair of absolute and relative limits applies to; the words of Polygraphy's ``--check-error-stat``."""

    ELEMWISE = "elemwise"
    MAX = "max"
    MEAN = "mean"
    MEDIAN = "median"
    QUANTILE = "quantile"

    @classmethod
    def parse(cls, word: str) -> "ErrorStat":
        """Return the statistic named by a word.

        Raises:
            UsageError: For an unknown word (``error-stat-unknown``).
        """
        try:
            return cls(word)
        except ValueError:
            words = ", ".join(stat.value for stat in cls)
            raise UsageError(
                f"'{word}' is not an error statistic", slug="error-stat-unknown", cure=f"use one of: {words}"
            ) from None


@dataclasses.dataclass(frozen=True, slots=True)
class PolygraphyTolerance:
    """Within when the absolute *or* the relative error is; every setting may differ by tensor name.

    Attributes:
        atol: Absolute limit.
        rtol: Limit relative to the magnitude of the reference.
        check_error_stat: What must be within: every element, or one statistic of the errors.
        error_quantile: Share for `ErrorStat.QUANTILE`.
        infinities_compare_equal: Whether infinities of one sign are equal rather than a NaN error.
    """

    atol: Setting = 1e-5
    rtol: Setting = 1e-5
    check_error_stat: ErrorStat | Mapping[str, ErrorStat] = ErrorStat.ELEMWISE
    error_quantile: Setting = 0.99
    infinities_compare_equal: bool = False

    def __post_init__(self) -> None:
        for setting in (self.atol, self.rtol, self.error_quantile):
            if any(math.isnan(number) for number in (setting.values() if isinstance(setting, Mapping) else [setting])):
                raise UsageError(
                    "nan is no tolerance: nothing is within it, and nothing beyond it",
                    slug="tolerance-nan",
                    cure="give a number, or inf to allow everything",
                )

    def judge(
        self, name: str, metrics: Metrics, reference: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> Judgement:
        """See `Tolerance`. Without the tensors ``elemwise`` is judged as ``max``, a quantile by absolute error only."""
        atol, rtol = setting_for(self.atol, name, 1e-5), setting_for(self.rtol, name, 1e-5)
        stat = self.check_error_stat
        if isinstance(stat, Mapping):
            stat = stat.get(name, stat.get("", ErrorStat.ELEMWISE))
        share = 0.5 if stat is ErrorStat.MEDIAN else setting_for(self.error_quantile, name, 0.99)
        label = f"{stat.value} {share:g}" if stat is ErrorStat.QUANTILE else stat.value
        limit = f"abs <= {atol:g} or rel <= {rtol:g} ({label})"
        if metrics.count == 0:
            return Judgement(True, limit, 0.0)
        if stat is ErrorStat.ELEMWISE and self._surely_within(metrics, atol):
            return Judgement(True, limit, _over(metrics.max_abs_error, atol))
        if reference is None or target is None:
            return self._judge_blind(metrics, stat, share, atol, rtol, limit)
        if stat in (ErrorStat.MEDIAN, ErrorStat.QUANTILE):
            errors = limit_counts.quantiles_of(
                reference,
                target,
                share=None if stat is ErrorStat.MEDIAN else share,
                infinities_equal=self.infinities_compare_equal,
            )
            return _either(errors[0], errors[1], atol, rtol, limit)
        found = limit_counts.errors_against(
            reference, target, atol=atol, rtol=rtol, infinities_equal=self.infinities_compare_equal
        )
        if stat is ErrorStat.MAX:
            return _either(found.max_abs, found.max_rel, atol, rtol, limit)
        if stat is ErrorStat.MEAN:
            return _either(found.mean_abs, found.mean_rel, atol, rtol, limit)
        return Judgement(found.outside == 0, limit, found.ratio)

    def _surely_within(self, metrics: Metrics, atol: float) -> bool:
        # The margin is for the rounding of both errors and limit to float32 in the element-wise comparison.
        return metrics.max_abs_error <= atol * (1 - 1e-6) and not self._has_bad_nonfinite(metrics)

    def _has_bad_nonfinite(self, metrics: Metrics) -> bool:
        if metrics.has_nan or metrics.nonfinite_mismatch:
            return True
        return metrics.inf_reference + metrics.inf_target > 0 and not self.infinities_compare_equal

    def _judge_blind(
        self, metrics: Metrics, stat: ErrorStat, share: float, atol: float, rtol: float, limit: str
    ) -> Judgement:
        if self._has_bad_nonfinite(metrics):
            return Judgement(False, limit, math.inf)
        if metrics.compared == 0:  # Nothing but equal infinities.
            return Judgement(True, limit, 0.0)
        # An integer reference of zero makes Polygraphy's relative error infinite or NaN; metrics cannot tell.
        max_rel, mean_rel = (math.inf,) * 2 if metrics.exact else (metrics.max_rel_error, metrics.mean_rel_error)
        if stat is ErrorStat.MEAN:
            return _either(metrics.mean_abs_error, mean_rel, atol, rtol, limit)
        known = {0.5: metrics.median_abs_error, 0.9: metrics.p90_abs_error, 0.99: metrics.p99_abs_error}
        if stat in (ErrorStat.MEDIAN, ErrorStat.QUANTILE):
            return _either(known.get(share, metrics.max_abs_error), math.inf, atol, rtol, limit)
        return _either(metrics.max_abs_error, max_rel, atol, rtol, limit)


class ThresholdKind(enum.Enum):
    """One number of the whole tensor that a threshold applies to; the words of Polygraphy's ``--compare``."""

    L2 = "l2"
    COSINE_SIMILARITY = "cosine_similarity"
    PSNR = "psnr"
    SNR = "snr"


_DEFAULT_THRESHOLD = {
    ThresholdKind.L2: 1e-5,
    ThresholdKind.COSINE_SIMILARITY: 0.997,
    ThresholdKind.PSNR: 30.0,
    ThresholdKind.SNR: 20.0,
}


@dataclasses.dataclass(frozen=True, slots=True)
class ThresholdTolerance:
    """Within when one number of the whole tensor is on the right side of a threshold.

    L2: Euclidean norm of the error, at most the threshold. Cosine similarity, PSNR (peak = largest reference value, 1
    when that is not positive) and SNR in dB: at least the threshold.

    Attributes:
        kind: The number.
        threshold: The threshold; None for Polygraphy's default (1e-5, 0.997, 30 dB, 20 dB).
    """

    kind: ThresholdKind
    threshold: Setting | None = None

    def judge(
        self, name: str, metrics: Metrics, reference: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> Judgement:
        """See `Tolerance`.

        Raises:
            DataError: For PSNR without the reference tensor (``tensor-needed``).
        """
        default = _DEFAULT_THRESHOLD[self.kind]
        threshold = default if self.threshold is None else setting_for(self.threshold, name, default)
        sign, unit = ("<=", "") if self.kind is ThresholdKind.L2 else (">=", "")
        if self.kind in (ThresholdKind.PSNR, ThresholdKind.SNR):
            unit = " dB"
        limit = f"{self.kind.value} {sign} {threshold:g}{unit}"
        if metrics.count == 0:
            return Judgement(True, limit, 0.0)
        if metrics.has_nan or metrics.inf_reference or metrics.inf_target:
            return Judgement(False, limit, math.inf)
        if self.kind is ThresholdKind.L2:
            return Judgement(metrics.l2_error <= threshold, limit, _over(metrics.l2_error, threshold))
        if self.kind is ThresholdKind.COSINE_SIMILARITY:
            similarity = metrics.cosine_similarity
            return Judgement(similarity >= threshold, limit, _over(1 - similarity, 1 - threshold))
        decibels = metrics.sqnr_db if self.kind is ThresholdKind.SNR else _psnr(name, metrics, reference)
        ratio = 0.0 if decibels == math.inf else 10 ** ((threshold - decibels) / 20)
        return Judgement(decibels >= threshold, limit, ratio)


@dataclasses.dataclass(frozen=True, slots=True)
class NoiseFloorTolerance:
    """Within when the error is no larger than a healthy engine's rounding noise.

    ``rms_error <= factor * floor + absolute``: PyTorch's rule RMSE(result, fp64) <= m * RMSE(fp32, fp64) + tol / 10
    with m = 2, or 3 for half precision and small tensors (torch/_dynamo/utils.py, ``same``). Integers, bools and
    strings must be equal. Infinities that both sides share are no error; a NaN always is.

    Attributes:
        floors: RMS error that is allowed to noise, by tensor name, in the unit of the tensor.
        factor: How much noisier than its floor a tensor may be.
        absolute: Added to every limit.
    """

    floors: Mapping[str, float]
    factor: float = 3.0
    absolute: float = 0.0

    def judge(
        self, name: str, metrics: Metrics, reference: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> Judgement:
        """See `Tolerance`; the ratio is rms error to floor, not to the limit.

        Raises:
            DataError: When the tensor has no floor (``floor-missing``).
        """
        if metrics.exact:
            equal = metrics.mismatches == 0
            return Judgement(equal, "equal", 0.0 if equal else math.inf)
        if name not in self.floors:
            raise DataError(
                f"no noise floor is known for '{name}'", slug="floor-missing", cure="measure its floor first"
            )
        floor = self.floors[name]
        limit = f"rms <= {self.factor:g} x floor {floor:.3g}" + (f" + {self.absolute:g}" if self.absolute else "")
        if metrics.has_nan or metrics.nonfinite_mismatch:
            return Judgement(False, limit, math.inf)
        error = metrics.rms_error if metrics.compared else 0.0
        return Judgement(error <= self.factor * floor + self.absolute, limit, _over(error, floor))


@dataclasses.dataclass(frozen=True, slots=True)
class EveryTolerance:
    """Within when every one of several tolerances says so; the judgement is that of the strictest."""

    tolerances: Sequence[Tolerance]

    def judge(
        self, name: str, metrics: Metrics, reference: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> Judgement:
        """See `Tolerance`."""
        judgements = [tolerance.judge(name, metrics, reference, target) for tolerance in self.tolerances]
        if not judgements:
            raise UsageError("no tolerance to judge by", slug="tolerance-missing", cure="give at least one")
        return min(judgements, key=lambda judgement: (judgement.within, -judgement.ratio))


_SETTINGS = ("atol", "rtol", "check_error_stat", "error_quantile", "threshold", "index_tolerance")


def names_in(tolerance: Tolerance) -> frozenset[str]:
    """Return the tensor names that a tolerance makes a difference for; a misspelt one must not pass unnoticed."""
    settings = [getattr(tolerance, name, None) for name in _SETTINGS]
    return frozenset(name for setting in settings if isinstance(setting, Mapping) for name in setting if name)


def check_names(tolerances: Sequence[Tolerance], known: Collection[str]) -> None:
    """Refuse tolerances for tensors that are not compared.

    Raises:
        UsageError: With slug ``tolerance-unused``.
    """
    for tolerance in tolerances:
        for name in sorted(names_in(tolerance) - set(known)):
            raise UsageError(
                f"a tolerance names '{name}', which is not compared",
                slug="tolerance-unused",
                cure="compared are: " + ", ".join(list(known)[:12]),
            )


def setting_for(setting: Setting, name: str, default: float) -> float:
    """Return what a setting is for a tensor."""
    return setting.get(name, setting.get("", default)) if isinstance(setting, Mapping) else setting


def _either(absolute: float, relative: float, atol: float, rtol: float, limit: str) -> Judgement:
    """Judge one absolute and one relative error, of which one must be within; NaN is not."""
    ratios = [_over(absolute, atol), _over(relative, rtol)]
    return Judgement(absolute <= atol or relative <= rtol, limit, min(ratios))


def _over(error: float, limit: float) -> float:
    """Return error / limit; infinite for a NaN error, 0 for no error whatever the limit."""
    if error == 0:
        return 0.0
    if math.isnan(error) or limit <= 0:
        return math.inf
    return error / limit


def _psnr(name: str, metrics: Metrics, reference: np.ndarray | None) -> float:
    if metrics.rms_error == 0:
        return math.inf
    if reference is None:
        raise DataError(
            f"PSNR of '{name}' needs the reference tensor", slug="tensor-needed", cure="run the comparison again"
        )
    peak = float(np.max(reference))
    return 20 * math.log10((peak if peak > 0 else 1.0) / metrics.rms_error)
