"""Does another scale and zero point explain a quantizer's numbers? Those of the other side lie on another grid.

A device may quantize a Softmax from 0 to 1 whatever scale the file has, requantize two operands to one scale, or read
the scale of a neighbour. Integers then are a line of the right ones, and real numbers behind a DequantizeLinear are
whole multiples of another step.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_ON_GRID = 1e-3
"""Share of a step that numbers on a grid are off it at most: rounding of float32 moves 255 steps by 3e-5 of one."""
_FEWEST = 8
"""Different numbers from which on a line or a grid is measured."""
_FREE = 2
"""Steps from an end of the type's range: nearer ones may be cut off."""
_PLAIN = (*(float(2.0**-k) for k in range(1, 17)), *(k / n for n in (127.0, 255.0, 32767.0, 65535.0) for k in (1, 2)))
"""Scales that engines put in: of the ranges [0, 1] and [-1, 1] and powers of two."""

_CURE = "give the file's quantizer that scale and zero point"

Tensors = Mapping[str, np.ndarray]
Grid = tuple[float, int]
"""Scale and zero point."""


def grid_rows(ours: Tensors, theirs: Tensors, given: Tensors) -> tuple[MeaningRow, ...]:
    """Return rows of quantizers, and of pairs, whose numbers in ``theirs`` lie on another grid than in ``ours``.

    Args:
        ours: Right results, by name.
        theirs: The other side's.
        given: Inputs of the model, by name.
    """

    def alone(site: MeantNode) -> Iterator[Meaning]:
        name, own = site.node.outputs[0].name or "", _grid(site)
        if own is None or name not in theirs or name not in ours or ours[name].shape != theirs[name].shape:
            return
        source = site.node.inputs[0]
        real = given.get((source.name if source is not None else None) or "")
        if site.op_type == "DequantizeLinear":
            other = _dequantized(ours[name], theirs[name], own)
        elif real is not None:
            other = line(real.astype(np.float64) / own[0], theirs[name], own, width=0.0)
        else:
            other = line(ours[name].astype(np.float64) - own[1], theirs[name], own, width=0.5)
        if other is not None:
            yield _as(site, own, other)

    def paired(site: MeantNode) -> Iterator[Meaning]:
        """Yield both nodes of a pair of which the other side's real numbers have another step."""
        end = site.node if site.op_type == "DequantizeLinear" else site.feeds("DequantizeLinear")
        name, own = "" if end is None else end.outputs[0].name or "", _grid(site)
        step = grid_step(theirs[name]) if name in theirs and own is not None else None
        if own is not None and step is not None and abs(step / own[0] - 1.0) > _ON_GRID:
            yield _as(site, own, (step, own[1]))

    quantizers = ("QuantizeLinear", "DequantizeLinear")
    return (MeaningRow(quantizers, alone), MeaningRow(quantizers, paired, together=True))


def line(steps: np.ndarray, theirs: np.ndarray, own: Grid, *, width: float) -> Grid | None:
    """Return the scale and zero point that make integers of the other side's; None where they are no line of the right.

    An integer is known to half of a step on the other side, so that every pair of numbers bounds the ratio of the
    scales from both sides, and all of these bounds have to have room for one ratio. Within it, a scale that engines put
    in is preferred, then the shortest number.

    Args:
        steps: The right values, in steps of the file's scale.
        theirs: The other side's integers, of the same shape.
        own: The file's scale and zero point.
        width: How far the right values may be off, in steps: half of one where they are rounded as well.
    """
    if theirs.dtype.kind not in "iu":
        return None
    end = np.iinfo(theirs.dtype)
    x, y = steps.reshape(-1), theirs.astype(np.float64).reshape(-1)
    free = (y > end.min + _FREE) & (y < end.max - _FREE)
    if width:
        free &= (x + own[1] > end.min + _FREE) & (x + own[1] < end.max - _FREE)
    x, y = x[free], y[free]
    if np.unique(x).size < _FEWEST or np.unique(y).size < _FEWEST:
        return None
    slope, offset = np.polyfit(x, y, 1)
    zero, far = round(float(offset)), np.abs(x) > 1.0
    x, y = np.abs(x[far]), (y[far] - zero) * np.sign(x[far])
    least, most = float(np.max((y - 0.5) / (x + width))), float(np.min((y + 0.5) / (x - width)))
    if not 0.0 < least <= most or (least <= 1.0 <= most and zero == own[1]):
        return None
    ends = own[0] / most, own[0] / least
    near = own[0] / float(np.clip(slope, least, most))
    short = (float(f"{near:.{digits}g}") for digits in range(1, 9))
    return next((scale for scale in (*_PLAIN, *short) if ends[0] <= scale <= ends[1]), near), zero


def grid_step(values: np.ndarray) -> float | None:
    """Return the step of which all numbers are whole multiples; None for others.

    The least difference of two different numbers is a multiple of the step, most often once; then a line through 0 over
    all multiples makes it exact.

    Args:
        values: Real numbers.
    """
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return None
    different = np.unique(values.astype(np.float64))
    if different.size < _FEWEST:
        return None
    gaps = np.diff(different)
    step = float(gaps[gaps > _ON_GRID * np.max(gaps)].min())
    for _ in range(2):
        multiples = np.rint(different / step)
        if not (square := float(np.dot(multiples, multiples))):
            return None
        step = float(np.dot(multiples, different)) / square
    return step if np.abs(different / step - np.rint(different / step)).max() <= _ON_GRID else None


def _dequantized(ours: np.ndarray, theirs: np.ndarray, own: Grid) -> Grid | None:
    """Return another grid of the same integers; None where the other side's numbers are no line of ours."""
    if theirs.dtype.kind != "f" or np.unique(ours).size < _FEWEST:
        return None
    steps = ours.astype(np.float64).reshape(-1) / own[0]
    scale, offset = np.polyfit(steps, theirs.astype(np.float64).reshape(-1), 1)
    if not scale > 0.0:
        return None
    return float(scale), round(own[1] - float(offset / scale))


def _grid(site: MeantNode) -> Grid | None:
    """Return a quantizer's scale and zero point, if it has one of each; None for others."""
    scale = site.constant(1)
    zero = site.constant(2) if len(site.node.inputs) > 2 else np.zeros(1, np.int64)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or zero.dtype.kind not in "iu":
        return None
    return float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0])


def _as(site: MeantNode, own: Grid, other: Grid) -> Meaning:
    scale, zero = site.constant(1), site.constant(2)
    assert scale is not None
    operands = {1: np.full_like(scale, other[0])}
    words = f"its scale were {_named(other[0])}, not {own[0]:.6g}" if not np.isclose(other[0], own[0]) else ""
    if zero is not None and other[1] != own[1]:
        ends = np.iinfo(zero.dtype)
        operands[2] = np.full_like(zero, min(max(other[1], ends.min), ends.max))
        words += f"{', and ' if words else ''}its zero point {'' if words else 'were '}{other[1]}, not {own[1]}"
    return Meaning(words or "its scale were a little other", operands=operands, cure=_CURE)


def _named(scale: float) -> str:
    whole = 1.0 / scale
    return f"{scale:.6g}" + (f" (1/{round(whole)})" if abs(whole - round(whole)) < 1e-6 * whole else "")
