"""How far a member of an envelope lies from its centre, tensor by tensor: the few figures that floors are made of.

Members are compared at every layer of a model, and of what `tensortriage.compare.metrics` tells of a pair floors need
the squares of errors and reference, what is not finite, and whether few elements carry all of it. These take three
sweeps over finite float32 or float64 numbers in the place of some sixteen; any other pair takes the full way.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Self

import numpy as np

from tensortriage.compare.metrics.blocks import BLOCK, inner_products
from tensortriage.compare.metrics.dtype_pairs import SAFE
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure, sample_stride


@dataclasses.dataclass(frozen=True, slots=True)
class MemberError:
    """The figures of one tensor; each as in `tensortriage.compare.metrics.tensor_metrics.Metrics`.

    Attributes:
        count: Elements of the tensor.
        compared: Elements that are finite on both sides.
        rms_error: Root of the mean squared error.
        median_abs_error: Median error, of a sample where the tensor is large.
        reference_rms: Root mean square of the centre.
        nonfinite_mismatch: Elements that are not finite on both sides and not the same.
        mismatches: Elements that differ.
        exact: Whether both sides are integers, bools or strings.
    """

    count: int
    compared: int
    rms_error: float
    median_abs_error: float
    reference_rms: float
    nonfinite_mismatch: int
    mismatches: int
    exact: bool

    @classmethod
    def of(cls, metrics: Metrics) -> Self:
        """Return what is kept of a tensor's figures."""
        return cls(**{field.name: getattr(metrics, field.name) for field in dataclasses.fields(cls)})


@dataclasses.dataclass(frozen=True, slots=True)
class MemberErrors:
    """The figures of one member by value name, in topological order."""

    values: Mapping[str, MemberError]


def member_errors(pairs: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> Iterator[tuple[str, MemberError]]:
    """Yield the figures of pairs as they come, holding none.

    Args:
        pairs: (name, centre, member), of one shape each.
    """
    for name, centre, member in pairs:
        yield name, error_between(centre, member)


def error_between(centre: np.ndarray, member: np.ndarray) -> MemberError:
    """Return the figures of a pair of tensors of one shape.

    Args:
        centre: What the member is compared with; any type of ONNX.
        member: What it computed.
    """
    if centre.dtype == member.dtype and centre.dtype in SAFE and centre.size:
        with np.errstate(all="ignore"):
            order: Literal["C", "K"] = "K" if centre.strides == member.strides else "C"  # any order serves
            found = _finite(centre.ravel(order), member.ravel(order))
        if found is not None:
            return found
    return MemberError.of(measure(centre, member))


def _finite(centre: np.ndarray, member: np.ndarray) -> MemberError | None:
    """Return the figures of finite numbers; None where some are not, or so small that squares lose them."""
    least = SAFE[centre.dtype][0] ** 2
    stride, samples, error_squares, squares, differing = sample_stride(centre.size), [], 0.0, 0.0, 0
    scratch = np.empty(min(BLOCK, centre.size), centre.dtype)
    for start in range(0, centre.size, BLOCK):
        reference = centre[start : start + BLOCK]
        errors = np.subtract(member[start : start + BLOCK], reference, out=scratch[: reference.size])
        error_square, square = (float(inner_products(side, side)) for side in (errors, reference))
        unequal = int(np.count_nonzero(errors))
        if not math.isfinite(error_square + square):
            return None
        if (error_square < least and unequal) or (square < least and reference.any()):
            return None
        error_squares, squares, differing = error_squares + error_square, squares + square, differing + unequal
        samples.append(np.abs(errors[-start % stride :: stride]))
    return MemberError(
        count=centre.size,
        compared=centre.size,
        rms_error=math.sqrt(error_squares / centre.size),
        median_abs_error=float(np.median(np.concatenate(samples))) if differing else 0.0,
        reference_rms=math.sqrt(squares / centre.size),
        nonfinite_mismatch=0,
        mismatches=differing,
        exact=False,
    )
