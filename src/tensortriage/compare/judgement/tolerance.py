"""The user's own tolerances; the limits without one are in `tensortriage.compare.judgement.within`.

Two families: limits per element or on a statistic of the errors, with the meaning they have in Polygraphy's
``--check-error-stat``; and thresholds on one number of the whole tensor (L2, cosine, PSNR, SNR). A NaN is outside of
every limit, and an empty tensor within. Every judgement is made with both tensors at hand, so that one tolerance gives
one answer in every command.

Relative errors, signal and peak are always taken from the reference. (Polygraphy takes the second runner in ``simple``
and the first one in PSNR and SNR.)
"""

import enum
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.metrics import limit_counts
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.grouping import grouped

_logger = logging.getLogger(__name__)
Setting = float | Mapping[str, float]
"""One number for all tensors, or one per name with ``""`` for the names that are not listed."""


class Tolerance(Protocol):
    """Decides "within" for one tensor at a time."""

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """Judge one tensor.

        Args:
            name: Its name, for limits that differ by name.
            metrics: Its metrics.
            reference: The tensor assumed to be right.
            target: The tensor under suspicion, of the same shape.
        """
        ...


class ErrorStat(enum.Enum):
    """The statistic that a pair of limits applies to; the words of Polygraphy's ``--check-error-stat``."""

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


@frozen_dataclass
class PolygraphyTolerance:
    """Within when the absolute *or* the relative error is; every setting may differ by tensor name.

    Attributes:
        atol: Absolute limit.
        rtol: Limit relative to the magnitude of the reference.
        check_error_stat: The error that must be within: of every element, or one statistic.
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
                    "nan cannot be a tolerance: no error is within it, and none beyond it",
                    slug="tolerance-nan",
                    cure="give a number, or inf to allow everything",
                )

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`."""
        atol, rtol = setting_for(self.atol, name, 1e-5), setting_for(self.rtol, name, 1e-5)
        stat = self.check_error_stat
        if isinstance(stat, Mapping):
            stat = stat.get(name, stat.get("", ErrorStat.ELEMWISE))
        share = 0.5 if stat is ErrorStat.MEDIAN else setting_for(self.error_quantile, name, 0.99)
        label = f"{stat.value} {share:g}" if stat is ErrorStat.QUANTILE else stat.value
        limit = limit_words(atol, rtol, label)
        if metrics.count == 0:
            return Judgement(True, limit, 0.0, Basis.USER)
        if stat is ErrorStat.ELEMWISE and self._surely_within(metrics, atol):
            return Judgement(True, limit, _over(metrics.max_abs_error, atol), Basis.USER)
        if stat in (ErrorStat.MEDIAN, ErrorStat.QUANTILE):
            errors = limit_counts.quantiles_of(
                reference,
                target,
                share=None if stat is ErrorStat.MEDIAN else share,
                infinities_equal=self.infinities_compare_equal,
            )
            return by_statistic(errors[0], errors[1], atol, rtol, label)
        found = limit_counts.errors_against(
            reference, target, atol=atol, rtol=rtol, infinities_equal=self.infinities_compare_equal
        )
        if stat is ErrorStat.MAX:
            return by_statistic(found.max_abs, found.max_rel, atol, rtol, label)
        if stat is ErrorStat.MEAN:
            return by_statistic(found.mean_abs, found.mean_rel, atol, rtol, label)
        return Judgement(found.outside == 0, limit, found.ratio, Basis.USER)

    def _surely_within(self, metrics: Metrics, atol: float) -> bool:
        # The margin is for the rounding of both errors and limit to float32 in the element-wise comparison.
        return metrics.max_abs_error <= atol * (1 - 1e-6) and not self._has_bad_nonfinite(metrics)

    def _has_bad_nonfinite(self, metrics: Metrics) -> bool:
        if metrics.has_nan or metrics.nonfinite_mismatch:
            return True
        return metrics.inf_reference + metrics.inf_target > 0 and not self.infinities_compare_equal


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


@frozen_dataclass
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

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`."""
        default = _DEFAULT_THRESHOLD[self.kind]
        threshold = default if self.threshold is None else setting_for(self.threshold, name, default)
        if metrics.count == 0:
            return Judgement(True, self._words(threshold), 0.0, Basis.USER)
        if metrics.has_nan or metrics.inf_reference or metrics.inf_target:
            return Judgement(False, self._words(threshold), math.inf, Basis.USER)
        match self.kind:
            case ThresholdKind.L2:
                number = metrics.l2_error
            case ThresholdKind.COSINE_SIMILARITY:
                number = metrics.cosine_similarity
            case ThresholdKind.PSNR:
                number = _psnr(metrics, reference)
            case ThresholdKind.SNR:
                number = metrics.sqnr_db
        return self.judge_number(name, number)

    def judge_number(self, name: str, number: float) -> Judgement:
        """Judge the number itself, of a tensor that is not empty."""
        default = _DEFAULT_THRESHOLD[self.kind]
        threshold = default if self.threshold is None else setting_for(self.threshold, name, default)
        words = self._words(threshold)
        match self.kind:
            case ThresholdKind.L2:
                return Judgement(number <= threshold, words, _over(number, threshold), Basis.USER)
            case ThresholdKind.COSINE_SIMILARITY:
                return Judgement(number >= threshold, words, _over(1 - number, 1 - threshold), Basis.USER)
        if math.isnan(number):
            return Judgement(False, words, math.inf, Basis.USER)
        ratio = 0.0 if number == math.inf else 10 ** ((threshold - number) / 20)
        return Judgement(number >= threshold, words, ratio, Basis.USER)

    def _words(self, threshold: float) -> str:
        sign, unit = ("<=", "") if self.kind is ThresholdKind.L2 else (">=", "")
        if self.kind in (ThresholdKind.PSNR, ThresholdKind.SNR):
            unit = " dB"
        return f"{self.kind.value} {sign} {threshold:g}{unit}"


@frozen_dataclass
class EveryTolerance:
    """Within if every one of several tolerances is met; the judgement is that of the strictest."""

    tolerances: Sequence[Tolerance]

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`.

        Raises:
            UsageError: When there is no tolerance to judge by.
        """
        judgements = [tolerance.judge(name, metrics, reference, target) for tolerance in self.tolerances]
        if not judgements:
            raise UsageError("no tolerance to judge by", slug="tolerance-missing", cure="give at least one")
        return min(judgements, key=lambda judgement: (judgement.within, -judgement.ratio))


_SETTINGS = ("atol", "rtol", "check_error_stat", "error_quantile", "threshold", "index_tolerance")


def names_in(tolerance: Tolerance) -> frozenset[str]:
    """Return the tensor names that a tolerance makes a difference for; a misspelt one must not pass unnoticed."""
    settings = [getattr(tolerance, name, None) for name in _SETTINGS]
    return frozenset(name for setting in settings if isinstance(setting, Mapping) for name in setting if name)


def check_names(tolerances: Sequence[Tolerance], known: Collection[str], *, strict: bool = True) -> None:
    """Refuse tolerances for tensors that are not compared; warn about them when `strict` is not set.

    Raises:
        UsageError: With slug ``tolerance-unused``.
    """
    for tolerance in tolerances:
        for name in sorted(names_in(tolerance) - set(known)):
            if not strict:
                _logger.warning("a tolerance names '%s', which is not compared", name)
                continue
            raise UsageError(
                f"a tolerance names '{name}', which is not compared",
                slug="tolerance-unused",
                cure="compared are: " + ", ".join(list(known)[:12]),
            )


def setting_for(setting: Any, name: str, default: Any) -> Any:
    """Return the value of a setting for a tensor: one value for all, or one per name with ``""`` for the others."""
    return setting.get(name, setting.get("", default)) if isinstance(setting, Mapping) else setting


def limit_words(atol: float, rtol: float, statistic: str) -> str:
    """Return a pair of limits in words."""
    return f"abs <= {atol:g} or rel <= {rtol:g} ({statistic})"


def by_statistic(absolute: float, relative: float, atol: float, rtol: float, statistic: str) -> Judgement:
    """Judge an absolute and a relative error, one of which must be within; NaN is not.

    Args:
        absolute: A statistic of the absolute errors.
        relative: The relative errors' statistic.
        atol: Limit of the absolute one.
        rtol: Limit of the relative one.
        statistic: Name of the statistic.
    """
    ratios = [_over(absolute, atol), _over(relative, rtol)]
    within = absolute <= atol or relative <= rtol
    return Judgement(within, limit_words(atol, rtol, statistic), min(ratios), Basis.USER)


def _over(error: float, limit: float) -> float:
    """Return error / limit; infinite for a NaN error, 0 for no error whatever the limit."""
    if error == 0:
        return 0.0
    if math.isnan(error) or limit <= 0:
        return math.inf
    return error / limit


def _psnr(metrics: Metrics, reference: np.ndarray) -> float:
    if metrics.rms_error == 0:
        return math.inf
    peak = float(np.max(reference))
    return 20 * math.log10((peak if peak > 0 else 1.0) / metrics.rms_error)


@frozen_dataclass
class IndexTolerance:
    """Within when no value has moved further along its row.

    Attributes:
        index_tolerance: Places a value may have moved.
    """

    index_tolerance: Setting = 0

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`; the ratio is that of the value that moved farthest."""
        allowed = int(setting_for(self.index_tolerance, name, 0))
        limit = f"moved <= {allowed} places"
        if metrics.mismatches == 0:
            return Judgement(True, limit, 0.0, Basis.USER)
        farthest = max(
            (_farthest(ours, theirs, allowed) for ours, theirs in zip(_rows(reference), _rows(target), strict=True)),
            default=0.0,
        )
        ratio = farthest / allowed if allowed else math.inf if farthest else 0.0
        return Judgement(farthest <= allowed, limit, ratio, Basis.USER)


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


def _farthest(reference: np.ndarray, target: np.ndarray, allowed: int) -> float:
    """Return by how many places a value moved at most; inf for one that is missing from before the last places."""
    places = grouped((value, place) for place, value in enumerate(target.tolist()))
    farthest = 0.0
    for place, value in enumerate(reference.tolist()):
        if found := places.get(value):
            farthest = max(farthest, abs(found.pop(0) - place))
        elif place < len(reference) - allowed:
            return math.inf
    return farthest
