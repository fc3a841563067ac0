"""The place of all limits: the largest error that a healthy engine may have, from evaluations of the model.

Every formula that turns a floor, a prediction or draws into a limit stands here and nowhere else; a test holds that.
None depends on the judged pair but by its number of elements. `tensortriage.envelope.judge` decides which explanation's
limit counts, `tensortriage.compare.judgement.within` compares errors with limits.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import ErrorFigures, amplitude, error_of, least_floor, ratio_of
from tensortriage.compare.judgement.thresholds import (
    CONVERSION_EXACT,
    CONVERSION_FEW,
    FEW_CARRY,
    LOST,
    MATCH_FACTOR,
    PREDICTION_GAP_DB,
    SUSPECT_RATIO,
)
from tensortriage.compare.judgement.within import gap_allowance_db, is_gone, is_noise
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision
from tensortriage.values.text import magnitude, percent

Key = TypeVar("Key")


@frozen_dataclass
class Limit:
    """The largest error that is allowed at a value.

    Attributes:
        error: The error, relative to the RMS of the reference; a share of unequal elements for exact types.
        basis: Source of the limit.
        by: Names of the explanations that allow it.
        noise: An absolute RMS error that is within the noise of healthy engines, where that is larger than the signal.
    """

    error: float
    basis: Basis
    by: tuple[str, ...] = ()
    noise: float = 0.0

    def allows(self, error: float) -> bool:
        """Return whether an error is within it; NaN and Inf never are."""
        return math.isfinite(error) and error <= self.error

    def drowns(self, figure: Metrics) -> bool:
        """Return whether a tensor's error is within noise that is larger than the signal; see `noise`."""
        return not figure.exact and not figure.nonfinite_mismatch and 0.0 < figure.rms_error <= self.noise


ORDERS, FORMAT = "order-of-sums", "number-format"
"""Names of the rows of the registry that floors and predictions are the costs of."""


# -- floors and predictions --------------------------------------------------------------------------------------------


def of_floor(floor: float) -> float:
    """Return the largest error of a healthy fp32 engine where the floor is this."""
    return MATCH_FACTOR * floor


BESIDE_A_TIE = of_floor(float(np.finfo(np.float32).eps))
"""Share of itself that a number of a healthy fp32 engine may be off, and so lie on the other side of a tie."""


def of_prediction(predicted: float, figure: ErrorFigures) -> float:
    """Return the largest error that a predicted one explains, for a tensor of so many elements.

    For exact types it is a share of unequal elements, three standard deviations above the predicted one.
    """
    if not figure.exact:
        return of_rounding(predicted, figure.count)
    expected = predicted * figure.count
    return (expected + 3.0 * math.sqrt(max(expected, 1.0))) / max(figure.count, 1)


def of_rounding(predicted: float, count: int) -> float:
    """Return the largest error that a predicted one explains, for a tensor of so many floating-point elements."""
    return predicted * amplitude(gap_allowance_db(count))


def of_op(floor: float) -> float:
    """Return the largest error of an op on golden operands that makes no suspect where its floor is this."""
    return SUSPECT_RATIO * floor


def of_equal(predicted: float) -> float:
    """Return the largest error that is this prediction, of so many elements that chance moves neither."""
    return predicted * amplitude(PREDICTION_GAP_DB)


def floor_of_amplified(amplified: ErrorFigures) -> float:
    """Return the fp32 floor by an evaluation that errs `MATCH_FACTOR` times as much; inf where that is not finite.

    Noise of all elements varies by chance as `of_prediction` describes. Where some elements carry all of it (roundings
    to int8, or comparisons, that fell on the other side), there are ten times as many of them as in a healthy engine,
    and so chance is allowed for.
    """
    error = error_of(amplified)
    if not math.isfinite(error):  # NaN or Inf at one end of the noise: no finite error is a fault here
        return math.inf
    few = not amplified.exact and amplified.median_abs_error <= FEW_CARRY * amplified.rms_error
    floor = (of_equal(error) if few else of_rounding(error, amplified.count)) / MATCH_FACTOR
    return floor if amplified.exact else max(floor, least_floor(Precision.FP32))


OPS_IN_FP32 = MATCH_FACTOR / SUSPECT_RATIO
"""Largest local error of an op of a healthy fp32 engine, in limits of that op."""

ROUNDED_ONCE = of_floor(least_floor(Precision.FP32))
"""Largest error that is within any fp32 floor: that of a value rounded once."""

AT_SIGHT = Limit(ROUNDED_ONCE, Basis.FLOOR, (ORDERS,))
"""The limit of whatever needs no evaluation."""


# -- outputs, and values inside ----------------------------------------------------------------------------------------


def healthy(
    count: int,
    fp32_floor: float,
    predicted: float | None,
    chosen: float | None = None,
    *,
    freedoms: tuple[str, ...] = (),
) -> Limit:
    """Return the error that a healthy engine may have at a value without a user's tolerance.

    It is half of the signal at most, also where a format overflows, or healthy fp32 engines disagree about Inf.

    Args:
        count: Elements of the value.
        fp32_floor: Its floor in fp32.
        predicted: The predicted cost of rounding to the target's format there; None for fp32 and wider formats.
        chosen: The predicted cost there of all freedoms of the target's hardware; None where it is unknown, and inf,
            which allows nothing, where it is not finite.
        freedoms: Names of these.
    """
    chosen = chosen if chosen is not None and math.isfinite(chosen) else None
    limit = Limit(of_floor(fp32_floor), Basis.NOISE if is_noise(fp32_floor) else Basis.FLOOR, (ORDERS,))
    for prediction, basis, by in ((predicted, Basis.FORMAT, (FORMAT,)), (chosen, Basis.HARDWARE, freedoms)):
        if prediction is not None and (allowed := of_rounding(prediction, count)) > limit.error:
            limit = Limit(allowed, basis, by)
    return half_at_most(limit)


def half_at_most(limit: Limit) -> Limit:
    """Return a limit that lets no more than half of the signal go."""
    if not limit.error > LOST:  # a NaN, which allows nothing, stays so
        return limit
    kept = limit.basis in (Basis.NOISE, Basis.HARDWARE)
    return Limit(LOST, limit.basis if kept else Basis.LOST, limit.by, limit.noise)


def judged_by(limit: Limit, figure: Metrics, *, format_name: str = "") -> Judgement:
    """Judge a tensor by a limit; integers, booleans and strings may differ where they do among healthy evaluations.

    Infinities that both sides share are no error; a NaN always is.

    Args:
        limit: The largest error that is allowed.
        figure: The tensor's figures.
        format_name: The number format, for the words.
    """
    by = "+".join(limit.by)
    if figure.exact and (limit.error == 0.0 or figure.mismatches == 0):
        equal = figure.mismatches == 0
        return Judgement(equal, "equal", 0.0 if equal else math.inf, Basis.EQUALITY)
    if figure.exact:
        error = error_of(figure)
        within = limit.allows(error) or (limit.basis is Basis.LOST and not is_gone(figure, error))
        words = f"at most {percent(limit.error)} unequal"
        return Judgement(within, words, error / limit.error, limit.basis, by if within else "")
    signal = figure.reference_rms if figure.compared else 0.0
    words = f"rms <= 1 x floor {magnitude(limit.error * signal)}"
    if limit.basis is Basis.LOST:
        words = f"rms <= {percent(LOST)} of the signal, though rounding to {format_name} may cost more"
    if limit.basis is Basis.NOISE:
        words = f"rms <= {percent(LOST)} of the signal, of which healthy engines differ by a tenth or more"
    if figure.has_nan or figure.nonfinite_mismatch:
        return Judgement(False, words, math.inf, limit.basis)
    error = error_of(figure)
    ratio = ratio_of(error, limit.error) or 0.0
    within = error <= limit.error or limit.drowns(figure)
    return Judgement(within, words, min(ratio, 1.0) if within else ratio, limit.basis, by if within else "")


# -- files that stand for a network, conversions, draws ----------------------------------------------------------------


def of_file(noise: float, floor: float, count: int) -> float:
    """Return the largest error against a network of an unrounded file that represents it.

    Args:
        noise: How far another rounding of the file's constants moves it.
        floor: The network's fp32 floor there.
        count: Elements of the value.
    """
    return of_rounding(noise, count) + of_floor(max(floor, least_floor(Precision.FP32)))


def of_engine_on_file(cost: float, noise: float, limit: float) -> Limit:
    """Return the error, against a network, of a healthy engine that runs a file which rounds it.

    Args:
        cost: Distance of the file, computed as it is, from its unrounded form.
        noise: How far another rounding of its constants moves that.
        limit: How far the unrounded form may be from the network.
    """
    return half_at_most(Limit(of_equal(math.hypot(cost, noise)) + limit, Basis.FORMAT, ("stored-integers",)))


def beside(cost: float, limit: Limit) -> Limit:
    """Return the limit against a file as a limit against the model that the file rounds."""
    return Limit(cost + limit.error, Basis.FORMAT, ("stored-integers", *limit.by))


def of_rounded_rows(error: float, floor: float, count: int) -> float:
    """Return the largest error that rounded rows of a weight can make at an output."""
    return of_rounding(max(error, of_floor(floor)), count)


def of_goal(floor: float, precision: Precision) -> float:
    """Return the error that a mixed model must reach: ten fp32 floors, or ten roundings to the format."""
    return max(of_floor(floor), of_floor(least_floor(precision)))


def of_one_rounding(precision: Precision) -> float:
    """Return the largest error of a large tensor whose elements are rounded once to a format."""
    return of_equal(least_floor(precision))


def of_conversion(figure: Metrics, cost: float, precision: Precision) -> Limit:
    """Return the error that a converted model may have.

    Args:
        figure: Figure of the output; integers and booleans that rounded numbers decide may differ.
        cost: The cost of rounding every result to the format.
        precision: The format.
    """
    if figure.exact:
        return Limit(CONVERSION_EXACT * cost + (CONVERSION_FEW / figure.count if cost else 0.0), Basis.FORMAT)
    return Limit(of_rounding(max(cost, least_floor(precision)), figure.count), Basis.FORMAT)


def of_draws(drawn: Mapping[Key, Sequence[Sequence[float]]], *, half_at_most: bool) -> dict[Key, list[float | None]]:
    """Return the limits of values step by step, from errors by step and draw; None where a draw is not finite.

    At each step a healthy engine may be as far above the median of the draws there as any of them is above the median
    anywhere, and 3 dB.
    """
    medians = {key: [statistics.median(errors) for errors in steps] for key, steps in drawn.items()}
    above = [
        error / median
        for key, steps in drawn.items()
        for errors, median in zip(steps, medians[key], strict=True)
        for error in errors
        if median > 0.0 and math.isfinite(error)
    ]
    farthest, most = max(above, default=1.0), LOST if half_at_most else math.inf
    return {
        key: [
            min(of_equal(farthest * median), most) if all(map(math.isfinite, errors)) else None
            for errors, median in zip(steps, medians[key], strict=True)
        ]
        for key, steps in drawn.items()
    }
