"""Does a quantizer fit the values that it quantizes? Its error on them against the least that so many bits allow.

A scale that is too small cuts numbers off, one that is too large wastes steps: the squared error splits into the cost
of clipping and the cost of rounding, and the best scale balances the two. The yardstick is measured on the same
numbers: the same quantizer with scale and zero point chosen for them. So a quantizer is judged by a ratio, in dB, with
the part that is to blame; other axes and zero points are tried, since a right scale may only be misplaced.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tensortriage.compare.judgement.relative_error import decibels
from tensortriage.compare.judgement.within import is_decisive, near_prediction
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude, percent

_RELU6 = 6.0
"""Where a Clip of mobile networks ends, which a quantizer's range takes over (Sandler et al. 2018, "MobileNetV2")."""

_WIDE_ENOUGH = 0.9
"""A quantizer without zero point may be symmetric on purpose. The zero point is missing only if the quantizer's range,
after a shift, would hold this share of the observed range; a narrower range is a matter of the scale."""

KINDS = ("fits", "scale-not-positive", "scale-too-small", "scale-too-large", "zero-point", "axis")

_CALIBRATED, _LESS, _EXCEEDED = 300, 0.7, 1.5
"""Samples that a range is usually calibrated on (the default of NNCF), how far below the largest that is expected of it
one sample may stay, and how far it may exceed all of them."""

_FRACTIONS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Shares of the observed range tried for the best scale: clipping few outliers may pay."""


@frozen_dataclass
class QuantizerFit:
    """The fit of a quantizer to its numbers.

    Attributes:
        kind: One of `KINDS`: the kind of fault.
        error: Relative RMS error of quantizing and dequantizing the numbers.
        best_error: The same with the best scale and zero point of the same granularity.
        clipped: Share of the numbers that are cut off.
        clipping: Share of the squared error that the cut-off numbers hold.
        observed: Smallest and largest number.
        representable: Smallest and largest number that the quantizer can make (of any channel).
        scale: Best scale, shaped as the given one.
        zero_point: Best zero point, shaped as the given one.
        words: The fault, for a sentence.
        cure: Advice.
    """

    kind: str
    error: float
    best_error: float
    clipped: float
    clipping: float
    observed: tuple[float, float]
    representable: tuple[float, float]
    scale: np.ndarray
    zero_point: np.ndarray
    words: str
    cure: str

    @property
    def gap_db(self) -> float:
        """Excess of the error over the least, in dB."""
        if self.error == 0.0:
            return 0.0
        return decibels(self.error / self.best_error) if self.best_error > 0.0 else math.inf


class Meant(NamedTuple):
    """Properties of a quantizer that are known to be intended.

    Attributes:
        symmetric: Whether its zero point of 0 is.
        seven_bits: Whether only 7 of 8 bits are, see `qdq.uses_seven_bits`.
        sampled: Whether its range was calibrated, on numbers that are not at hand.
    """

    symmetric: bool = False
    seven_bits: bool = False
    sampled: bool = False


NOTHING_MEANT = Meant()


def calibrate(
    numbers: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray | None,
    *,
    axis: int,
    dtype: DType,
    meant: Meant = NOTHING_MEANT,
) -> QuantizerFit:
    """Judge a quantizer by the numbers that it meets.

    Args:
        numbers: Floating-point tensor before quantization; finite.
        scale: One number, or one per index of ``axis``.
        zero_point: Zero point of the same shape, or one number whatever its axes; of the quantized type; None for 0.
        axis: Axis of several scales.
        dtype: An integer type of at most 16 bits.
        meant: The intended range or purpose, whatever the numbers.
    """
    x = numbers.astype(np.float64)
    scales = np.asarray(scale, np.float64)
    zeros = np.zeros(scales.shape)
    if zero_point is not None:  # engines take a vector of one where the scale is a scalar, and the other way round
        zeros += zero_point.reshape(()) if zero_point.size == 1 else zero_point
    axis = axis % x.ndim if x.ndim else 0
    limits = _SEVEN_BITS[dtype] if meant.seven_bits and dtype in _SEVEN_BITS else integer_range(dtype)
    centred = dtype.name.startswith("INT") and not zeros.any()
    best, best_zeros = _best(x, scales.shape, axis, limits, symmetric=centred)
    least = _error(x, best, best_zeros, axis, limits)
    observed = (float(x.min(initial=0.0)), float(x.max(initial=0.0)))
    shaped = best.astype(np.asarray(scale).dtype), best_zeros.astype(dtype.numpy)
    if not (np.isfinite(scales).all() and (scales > 0.0).all()):
        words = f"its scale {magnitude(_first_bad(scales))} is not a positive number"
        return QuantizerFit(
            "scale-not-positive", math.inf, least, 1.0, 1.0, observed, (0.0, 0.0), *shaped, words, _RECALIBRATE
        )
    error = _error(x, scales, zeros, axis, limits)
    low, high = ((limit - zeros) * scales for limit in limits)
    outside = (x < along_axis(low - scales / 2, x, axis)) | (x > along_axis(high + scales / 2, x, axis))
    squared = np.square(_passed(x, scales, zeros, axis, limits) - x)
    clipping = float(squared[outside].sum() / squared.sum()) if error else 0.0
    fit = QuantizerFit(
        "fits", error, least, float(outside.mean()) if x.size else 0.0, clipping, observed,
        (float(low.min()), float(high.max())), *shaped, "", "",
    )  # fmt: skip
    if near_prediction(fit.gap_db) or (meant.sampled and _by_chance(fit, x.size // max(scales.size, 1), centred)):
        return fit
    kind, words, cure = _mistake(fit, x, (scales, zeros), axis, limits, meant=meant.symmetric and centred)
    return dataclasses.replace(fit, kind=kind, words=words, cure=cure)


@frozen_dataclass
class Rectifier:
    """A quantizer of one scale without negative numbers: its numbers, scale, zero point (None for 0) and type."""

    numbers: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None
    dtype: DType


def activations(candidates: Mapping[str, Rectifier]) -> dict[str, float]:
    """Return which quantizers are the ReLU of their numbers, with where that ends: 6 for a ReLU6, else infinity.

    Cutting off below 0 is a ReLU's work when the scale is made for the rest: it fits the rectified numbers. A scale
    that was made for numbers of both signs, and lost its zero point, is about twice too large for that; so is, now and
    then, one that was calibrated on larger numbers. The other quantizers decide between these: where most quantizers of
    a model that may be a ReLU fit as one, the rest are, too.

    Args:
        candidates: Quantizers whose zero point is the lowest integer, behind operators that make both signs
            (`tensortriage.model.quantization.qdq.may_rectify`), by a name; numbers are finite.
    """
    possible = rectifiers(candidates)
    found = {name: top for name, (top, kind) in possible.items() if kind == "fits"}
    large = {name: top for name, (top, kind) in possible.items() if kind == "scale-too-large"}
    return found | (large if len(found) > len(large) else {})


def rectifiers(candidates: Mapping[str, Rectifier]) -> dict[str, tuple[float, str]]:
    """Return which quantizers may be a ReLU: its upper end, and the scale's fit to rectified numbers (of `KINDS`).

    Args:
        candidates: As for `activations`.
    """
    found = {}
    for name, each in candidates.items():
        x, (low, high) = each.numbers, integer_range(each.dtype)
        if each.scale.size != 1 or not ((x < 0).any() and (x > 0).any()):
            continue
        step = float(each.scale.reshape(()))
        top = _RELU6 if abs(step * (high - low) - _RELU6) <= step else math.inf
        fit = calibrate(np.clip(x, 0.0, top), each.scale, each.zero_point, axis=0, dtype=each.dtype)
        found[name] = (top, "fits" if top == _RELU6 and fit.kind == "scale-too-large" else fit.kind)
    return found


_SEVEN_BITS = {DType.INT8: (-64.0, 64.0), DType.UINT8: (0.0, 128.0)}
"""Range of each type that ONNX Runtime's quantizers use with ``reduce_range``."""


_RECALIBRATE = "calibrate again, on data like these"


def _by_chance(fit: QuantizerFit, count: int, centred: bool) -> bool:
    """Return whether a range may be that of other numbers of the same kind, among which other ones are the largest.

    The largest of n numbers with exponential tails is ln n of their unit and lies 0.7 lower once in 7; what one more
    sample exceeds it by is distributed exponentially, and beyond 1.5 units once in 4.5 (Gumbel 1958, "Statistics of
    Extremes"). Of honest ranges of 64 samples of 32 normal numbers and more 7 % are left, and none that is off by 4.
    """
    if count < 2:
        return False
    made, met = ((min(low, 0.0), max(high, 0.0)) for low, high in (fit.representable, fit.observed))
    largest = max(-made[0], made[1])
    used = max(-met[0], met[1]) / largest if centred else (met[1] - met[0]) / (made[1] - made[0])
    beyond = max(met[1] - made[1], made[0] - met[0], 0.0) / largest
    of_all = math.log(count * _CALIBRATED)
    return used * of_all >= math.log(count) - _LESS and beyond * of_all <= _EXCEEDED


def integer_range(dtype: DType) -> tuple[float, float]:
    """Return the smallest and largest number of an integer type."""
    if dtype.name.startswith("INT"):
        return -(2.0 ** (dtype.bits - 1)), 2.0 ** (dtype.bits - 1) - 1.0
    return 0.0, 2.0**dtype.bits - 1.0


def _first_bad(scales: np.ndarray) -> float:
    return float(scales[~(np.isfinite(scales) & (scales > 0.0))].flat[0])


def along_axis(values: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """Return one number, or one per index of an axis, ready to broadcast over x."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if along == axis else 1 for along in range(x.ndim)])


def _passed(x: np.ndarray, scales: np.ndarray, zeros: np.ndarray, axis: int, limits: tuple[float, float]) -> np.ndarray:
    """Return x quantized and dequantized, as ONNX defines both (rounding to nearest even, saturating)."""
    scale, zero = along_axis(scales, x, axis), along_axis(zeros, x, axis)
    with np.errstate(all="ignore"):
        return np.asarray((np.clip(np.rint(x / scale) + zero, *limits) - zero) * scale)


def _error(x: np.ndarray, scales: np.ndarray, zeros: np.ndarray, axis: int, limits: tuple[float, float]) -> float:
    """Return the relative RMS error of passing x through."""
    size = float(np.square(x).sum())
    return math.sqrt(float(np.square(_passed(x, scales, zeros, axis, limits) - x).sum()) / size) if size else 0.0


def _best(
    x: np.ndarray, shape: tuple[int, ...], axis: int, limits: tuple[float, float], *, symmetric: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales and zero points of a shape with the least error among some shares of the observed range."""
    found: tuple[float, np.ndarray, np.ndarray] | None = None
    for scales, zeros in _candidates(x, shape, axis, limits, symmetric=symmetric):
        error = _error(x, scales, zeros, axis, limits)
        if found is None or error < found[0]:
            found = error, scales, zeros
    assert found is not None
    return found[1], found[2]


def _candidates(
    x: np.ndarray, shape: tuple[int, ...], axis: int, limits: tuple[float, float], *, symmetric: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    several = math.prod(shape) > 1
    others = tuple(along for along in range(x.ndim) if not several or along != axis)
    low = np.minimum(x.min(axis=others, initial=0.0), 0.0).reshape(shape)
    high = np.maximum(x.max(axis=others, initial=0.0), 0.0).reshape(shape)
    for share in _FRACTIONS:
        if symmetric:
            scales = share * np.maximum(-low, high) / limits[1]
            scales = np.where(scales > 0.0, scales, 1.0)
            yield scales, np.zeros(shape)
        else:
            scales = share * (high - low) / (limits[1] - limits[0])
            scales = np.where(scales > 0.0, scales, 1.0)
            yield scales, np.clip(np.rint(limits[0] - share * low / scales), *limits)


def _mistake(
    fit: QuantizerFit,
    x: np.ndarray,
    given: tuple[np.ndarray, np.ndarray],
    axis: int,
    limits: tuple[float, float],
    *,
    meant: bool,
) -> tuple[str, str, str]:
    """Name the one change that removes most of the avoidable error: another axis, zero point if not meant, or scale."""
    scales, zeros = given
    avoidable = fit.error**2 - fit.best_error**2

    def removes(error: float) -> bool:
        return is_decisive((fit.error**2 - error**2) / avoidable)

    fitting = [other for other in range(x.ndim) if scales.size > 1 and other != axis and x.shape[other] == scales.size]
    for other in fitting:
        if removes(_error(x, scales, zeros, other, limits)):
            words = f"its {scales.size} scales fit axis {other}, but are applied along axis {axis}"
            return "axis", words, f"set the attribute axis to {other}"
    met, made = ([magnitude(each, 4) for each in span] for span in (fit.observed, fit.representable))
    spans = f"it meets [{', '.join(met)}], and can represent [{', '.join(made)}]"
    shifted = np.clip(np.rint(limits[0] - np.minimum(x.min(initial=0.0), 0.0) / scales), *limits)
    wide = float(scales.max()) * (limits[1] - limits[0]) >= _WIDE_ENOUGH * (fit.observed[1] - fit.observed[0])
    for zero in (shifted, np.zeros(scales.shape)) if scales.size == 1 and not meant and (wide or zeros.any()) else ():
        if (zero != zeros).any() and removes(_error(x, scales, zero, axis, limits)):
            words = f"its zero point {int(zeros.flat[0])} is wrong, {int(zero.flat[0])} fits: {spans}"
            cure = f"set the zero point to {int(zero.flat[0])}, or calibrate again on data like these"
            return "zero-point", words, cure
    off = np.square(_passed(x, scales, zeros, axis, limits) - x)
    worst = (
        int(np.argmax(off.sum(axis=tuple(along for along in range(x.ndim) if along != axis)))) if scales.size > 1 else 0
    )
    factor = float((scales / fit.scale.astype(np.float64)).reshape(-1)[worst])
    how = f"{percent(fit.clipped)} of the numbers are cut off, which is {percent(fit.clipping)} of its error"
    if fit.clipping >= 0.5 and factor < 1.0:
        words = f"its scale is too small, by a factor of {magnitude(1 / factor)}: {spans}; {how}"
        return "scale-too-small", words, f"calibrate again, on data like these: scale {_shown(fit.scale)}"
    if near_prediction(decibels(max(factor, 1.0))):  # the scale is right: rounding grows as it does
        moved = removes(_error(x, scales, fit.zero_point.astype(np.float64), axis, limits)) or fit.clipping >= 0.5
        # else chance: few numbers lie nearer to steps of the best scale
        return (
            ("zero-point", f"its range is in another place: {spans}; {how}", _RECALIBRATE)
            if moved
            else ("fits", "", "")
        )
    used = min(1.0, max(abs(v) for v in fit.observed) / max(abs(v) for v in fit.representable))
    words = (
        f"its scale is too large, by a factor of {magnitude(factor)}: {spans}, of which {percent(used)} is used; "
        "rounding is all "
    )
    return "scale-too-large", words + "of its error", f"calibrate again, on data like these: scale {_shown(fit.scale)}"


def _shown(scale: np.ndarray) -> str:
    flat = np.asarray(scale, np.float64).reshape(-1)
    ends = f"{magnitude(flat.min(), 4)} to {magnitude(flat.max(), 4)} per channel"
    return magnitude(flat[0], 4) if flat.size == 1 else ends
