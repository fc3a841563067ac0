"""The only comparisons of an error with a limit, when the user gives no tolerance of his own.

Each function is a question with one answer for every command. Limits are made in `tensortriage.envelope.limits`, by the
numbers of `thresholds`; errors are relative (see `relative_error`): of a whole output against the noise floor of its
model and format, of one op against its local floor, of a measurement against its prediction.
"""

import math
from collections.abc import Iterable

import numpy as np

from tensortriage.compare.judgement.relative_error import decibels, ratio_of
from tensortriage.compare.judgement.thresholds import (
    CARRIED_ON,
    CERTAIN,
    CUT_ALWAYS,
    CUT_OFF,
    CUT_SLACK,
    DECISIVE,
    EACH_OP,
    FAR_NEARER,
    FEWEST_CUT,
    FREEDOM_SHARE,
    FREEDOM_SHOWS,
    LOST,
    MATCH_FACTOR,
    NEGLIGIBLE,
    PREDICTION_GAP_DB,
    SUSPECT_RATIO,
    TOO_COARSE,
)
from tensortriage.compare.metrics.tensor_metrics import Metrics

# -- a floor -----------------------------------------------------------------------------------------------------------


def within_fp32(error: float, floor: float) -> bool:
    """Return whether a healthy fp32 engine may be as far off."""
    return error <= MATCH_FACTOR * floor


def beyond_fp32(ratio: float | None) -> bool:
    """Return whether an error over its floor is more than a healthy fp32 engine's; never where it was not measured."""
    return ratio is not None and ratio > MATCH_FACTOR


def certainly_fails(error: float) -> bool:
    """Return whether an error at an output is a failure of an fp32 engine whatever its floor."""
    return error >= CERTAIN


def carries_nothing_on(error: float) -> bool:
    """Return whether an error inside a model is too small to become a failure at its outputs."""
    return error <= CARRIED_ON


# -- a prediction ------------------------------------------------------------------------------------------------------


def gap_allowance_db(count: int) -> float:
    """Return how far a measured error may exceed its prediction: 3 dB, and more when there are few elements.

    The logarithm of the ratio of two independent RMS estimates over n elements has a standard deviation of about
    ``1 / sqrt(n)`` nepers (the variance of a log chi-square with n degrees of freedom is 2/n); three of them are added.
    """
    return PREDICTION_GAP_DB + 3.0 * decibels(math.e) / math.sqrt(max(count, 1))


def prediction_gap_db(figure: Metrics, error: float, predicted: float) -> float:
    """Return by how many dB an error exceeds its prediction.

    For exact types it is inf or 0: mismatches within three standard deviations of their expected number are explained.
    """
    if not figure.exact:
        return decibels(ratio_of(error, predicted) or 0.0)
    expected = predicted * figure.count
    return 0.0 if figure.mismatches <= expected + 3.0 * math.sqrt(max(expected, 1.0)) else math.inf


def beyond_any_share(figure: Metrics, allowed: float) -> bool:
    """Return whether whole numbers are far off, half of them in RMS, where the share that may be others is all.

    Neighbours are not far off: a Cast of values on either side of a whole number gives one or the other.
    """
    return figure.exact and allowed >= 1.0 and figure.max_abs_error > 1.0 and is_lost(figure.relative_rms_error)


def within_prediction(gap_db: float, count: int) -> bool:
    """Return whether an error that exceeds its prediction by so many dB is explained by it."""
    return gap_db <= gap_allowance_db(count)


def near_prediction(gap_db: float) -> bool:
    """Return whether an error is its prediction, for numbers of so many elements that chance moves neither."""
    return gap_db <= PREDICTION_GAP_DB


def explained_by_format(figure: Metrics, error: float, predicted: float) -> bool:
    """Return whether the predicted cost of rounding to a format explains an error; never NaN or Inf."""
    return math.isfinite(error) and within_prediction(prediction_gap_db(figure, error, predicted), figure.count)


def cuts_off(steps: np.ndarray) -> bool:
    """Return whether integers are off as truncation in place of rounding makes them: by one step, half at most."""
    away = np.abs(steps.astype(np.int64))
    return bool(away.max(initial=0) <= 1) and float(np.mean(away)) <= CUT_OFF


def always_cuts_off(found: np.ndarray, rounded: np.ndarray, exact: np.ndarray, other: np.ndarray) -> bool:
    """Return whether integers are truncated, downwards or towards zero, where the right ones round to nearest.

    No kernel computes so, since some results would fall on the other side: it moves the mean by half a step.

    Args:
        found: Integers.
        rounded: The right ones.
        exact: The exact values of these before rounding; they may lie beyond the range of the integers.
        other: Values that a healthy kernel may round instead of the exact ones; where they agree as well, the answer is
            False.
    """
    near = np.abs(exact - rounded) <= 0.5 + CUT_SLACK
    for cut in (np.floor(exact + CUT_SLACK), np.trunc(exact + np.copysign(CUT_SLACK, exact))):
        moved = near & (cut != rounded)
        enough = int(moved.sum()) >= FEWEST_CUT
        if enough and all(float(np.mean((found == cut)[mask])) >= CUT_ALWAYS for mask in (moved, near)):
            return float(np.mean((found == cut)[near])) > float(np.mean((found == np.rint(other))[near]))
    return False


def beyond_a_step(steps: np.ndarray) -> float:
    """Return the share of rows whose median error is over a step: rounding moves by half of one, and cuts off few."""
    return float(np.mean(np.median(steps, axis=-1) > 1.0)) if steps.size else 0.0


def is_lost(error: float) -> bool:
    """Return whether half of the signal or more is gone."""
    return error >= LOST


def is_gone(figure: Metrics, error: float) -> bool:
    """Return whether half of the signal of an output, or more, is gone.

    That of whole numbers is their size: a sum of 300 that is rounded to 301 is there, though each number is unequal.
    Where a decision is wrong, the error is inf.
    """
    return is_lost(error) and not (figure.exact and math.isfinite(error) and figure.relative_rms_error < LOST)


def is_too_coarse(error: float) -> bool:
    """Return whether so much of the signal is gone that a format which explains it is too coarse for the model."""
    return error >= TOO_COARSE


def over_coarse(error: float) -> float:
    """Return by how many times an error exceeds the least that is too coarse."""
    return error / TOO_COARSE


def is_noise(floor: float) -> bool:
    """Return whether a floor is no limit: so much of the signal, or no number, that anything would be within it.

    On made-up data the floors of 34 healthy networks (bench/RESULTS.md) are at most 0.7 %, of quantized ones 1.1 %; a
    text detector that sees noise and finds no text has 40 %.
    """
    return not floor < TOO_COARSE


def clearly_best(error: float, others: Iterable[float]) -> bool:
    """Return whether one way of reading a file is near to the truth and all others are far from it."""
    return not is_lost(error) and all(error * FAR_NEARER <= other for other in others)


# -- one op ------------------------------------------------------------------------------------------------------------


def is_innocent(over: float) -> bool:
    """Return whether an op is within 3 dB of the cost of its format, by its error over its limit.

    Between that and a suspect no finding is reported.
    """
    return over <= 1.0 / math.sqrt(2.0)


def is_suspect_ratio(ratio: float | None) -> bool:
    """Return whether a local error over its floor makes a suspect."""
    return ratio is not None and ratio > SUSPECT_RATIO


def beyond_inner_roundings(ratio: float | None) -> bool:
    """Return whether an error, over the cost of 16-bit results, exceeds a kernel that also rounds inside.

    An op of many steps, or ops that are fused into one kernel, round and approximate where no result is seen. As in
    fp32 (`beyond_fp32`) that is `MATCH_FACTOR` times at most: a dozen roundings inside, also where they add up.
    """
    return ratio is not None and ratio > MATCH_FACTOR


def within_limit(error: float, limit: float) -> bool:
    """Return whether an error is within a limit that was measured or added up elsewhere."""
    return error <= limit


def is_minor(error: float, other: float) -> bool:
    """Return whether an error is too small to be the cause of another: it is a `MATCH_FACTOR`-th of that, or less."""
    return math.isfinite(error) and error * MATCH_FACTOR <= other


def is_decisive(explained: float) -> bool:
    """Return whether a share of the output error is enough to blame those for it that make it when injected."""
    return explained >= DECISIVE


def counts(influence: float, largest: float) -> bool:
    """Return whether an influence is large enough to name next to the largest."""
    return influence >= NEGLIGIBLE * largest


def freedom_shows(allowed: float, floor: float) -> bool:
    """Return whether a freedom of an engine allows so much more than the floor that taking it can be seen."""
    return allowed > FREEDOM_SHOWS * floor


def excuses_much(limit: float) -> bool:
    """Return whether freedoms allow so much of an output that each op has to be within its own limit as well."""
    return limit > EACH_OP


def is_habit(taken: int, shows: int) -> bool:
    """Return whether an engine takes a freedom at enough of the ops where it would show."""
    return taken >= FREEDOM_SHARE * shows


def is_nearer(error: float, chosen: float, plain: float) -> bool:
    """Return whether an error is nearer to its prediction with a freedom than to that without, by their ratios."""
    return error * error > chosen * plain


# -- a whole output ----------------------------------------------------------------------------------------------------


def within_healthy(error: float, limit: float) -> bool:
    """Return whether an error at an output is within its healthy limit; NaN and Inf never are."""
    return math.isfinite(error) and error <= limit
