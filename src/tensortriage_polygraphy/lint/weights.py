"""Weights that a narrow format cannot hold: beyond its range, or so small that they lose their digits.

Rounding to a normal number costs at most half a unit in the last place whatever its size. Below the smallest normal
number the step no longer shrinks: float16 keeps 6.1e-5 to three digits, 1e-6 to one, and nothing below 3e-8. Single
small weights among large ones do not matter, so the measure is the error of the whole tensor against its own size.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.model.sdk import LintSubject, blocks
from tensortriage.sdk import DType, LintFinding, Precision, Severity, magnitude, percent
from tensortriage_polygraphy.lint.constants import is_mask

SLUGS: Mapping[str, str] = {
    "weight-beyond-range": "Weights beyond the range of a format: they become infinite",
    "weight-subnormal": "Weights so small that a format keeps few of their digits",
}

SERIOUS_LOSS = 0.01
"""Relative RMS error of a tensor from rounding its small numbers that is a problem, not a hint."""

_WIDE = (DType.FLOAT, DType.DOUBLE, DType.BFLOAT16)
_FEW = 16  # smaller constants are scalars and masks: the module constants looks at these
_TIMES_NORMAL = 4.0


@dataclasses.dataclass(slots=True)
class _Fit:
    """Numbers of a tensor beyond the range of a format, below its normal numbers, and the error of rounding those."""

    beyond: int = 0
    largest: float = 0.0
    small: int = 0
    loss: float = 0.0


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield the weights that formats cannot hold."""
    for name, spec in subject.graph.constants.items():
        count = math.prod(spec.sizes)
        array = subject.constant(name) if spec.dtype in _WIDE and count > _FEW else None
        if array is None or not subject.graph.consumers(name) or is_mask(subject, name):
            continue
        formats = [precision for precision in subject.aims.looked_at if precision.dtype is not spec.dtype]
        for precision, fit in zip(formats, _fits(array, formats), strict=True):
            yield from _judged(subject, name, precision, fit)


def _judged(subject: LintSubject, name: str, precision: Precision, fit: _Fit) -> Iterator[LintFinding]:
    user = subject.graph.consumers(name)[0]
    word = precision.value
    if fit.beyond:
        yield subject.finding(
            "weight-beyond-range",
            user,
            f"{fit.beyond:,} of the weights, up to {magnitude(fit.largest)}, are Inf in {word}",
            f"keep '{user.name}' in fp32, use bf16, or scale the weight and undo it behind",
            severity=subject.aims.severity_in(precision),
            value=name,
        )
    if fit.loss > _TIMES_NORMAL * float(precision.dtype.finfo.eps):
        serious = fit.loss > SERIOUS_LOSS
        yield subject.finding(
            "weight-subnormal",
            user,
            f"{fit.small:,} of the weights are below the normal numbers of {word}; rounding them is an error of "
            f"{percent(fit.loss)} of the whole tensor",
            f"keep '{user.name}' in fp32, use bf16, or scale the weight up and undo it behind",
            severity=subject.aims.severity_in(precision) if serious else Severity.HINT,
            value=name,
        )


def _fits(array: np.ndarray, formats: Sequence[Precision]) -> list[_Fit]:
    """Measure how a tensor fits formats, in pieces; only numbers too small for one are rounded."""
    fits = [_Fit() for _ in formats]
    norm = 0.0
    for block in blocks(array):
        wide = np.abs(block.astype(np.float32 if block.dtype.itemsize <= 4 else np.float64, copy=False))
        top = float(wide.max())
        if not math.isfinite(top):
            wide = wide[np.isfinite(wide)]
            top = float(wide.max(initial=0.0))
        exact = wide if 1e-12 < top < 1e12 else wide.astype(np.float64)  # else squares leave float32
        norm += float(np.dot(exact, exact))
        for fit, precision in zip(fits, formats, strict=True):
            _add(fit, wide, top, precision)
    for fit in fits:
        fit.loss = (fit.loss / norm) ** 0.5 if norm else 0.0
    return fits


def _add(fit: _Fit, wide: np.ndarray, top: float, precision: Precision) -> None:
    """Count a piece of a tensor's magnitudes in; until the end ``loss`` is the sum of squared errors."""
    info = precision.dtype.finfo
    limit = float(info.max) * (1 + float(info.eps) / 4)  # half a step beyond the largest number
    if top > limit:
        fit.beyond += int((wide > limit).sum())
        fit.largest = max(fit.largest, top)
    tiny = wide[wide < float(info.smallest_normal)]
    tiny = tiny[tiny > 0].astype(np.float32)
    if tiny.size:
        fit.small += tiny.size
        with np.errstate(under="ignore"):
            error = tiny.astype(np.float64) - tiny.astype(precision.dtype.numpy).astype(np.float64)
        fit.loss += float(np.dot(error, error))
