"""How large an error a healthy engine may have at one element, where a single element decides what follows.

A tensor's radius is an RMS: an element of 1e-20 among elements of size 1 may be anything up to 1e-7, although the
logarithm, the quotient or the root of it is then another number. An element-wise operator can be right at every
element, so there the radius is the rounding of the element itself, and what lies below the normal numbers of the type.
Sums, and what cancels inside, are as accurate as their largest terms: there the largest error that the amplified
evaluation makes anywhere in the tensor counts everywhere.
"""

from collections.abc import Collection

import numpy as np

from tensortriage.compare.judgement.within import fp32_limit
from tensortriage.model.mixed_precision.rounding_nodes import MOVES_DATA
from tensortriage.values.dtype import DType, Precision

OWN_SCALE = MOVES_DATA | frozenset({
    "Add", "Cast", "Ceil", "Clip", "Div", "Erf", "Exp", "Floor", "LeakyRelu", "Mul", "PRelu", "Pow", "Reciprocal",
    "Round", "Sigmoid", "Sign", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tanh", "ThresholdedRelu",
})  # fmt: skip
"""Operators that can be as accurate at a small element as at a large one: nothing has to cancel inside."""


def radii(
    op_type: str,
    centre: np.ndarray,
    *,
    amplified: np.ndarray,
    rounded: np.ndarray | None,
    dtype: DType,
    precision: Precision,
) -> np.ndarray:
    """Return the absolute error that is healthy at each element of an operator's result.

    Args:
        op_type: ONNX operator.
        centre: Its result, correctly rounded, of any shape, in float64.
        amplified: What the amplified evaluation makes of it; counts where elements have no own scale.
        rounded: The result with everything rounded to the engine's format; None where that is the model's own.
        dtype: Type of the result.
        precision: Format that the engine computes in.
    """
    radius = np.maximum(fp32_limit(spacing(dtype, precision)) * np.abs(centre), smallest_normal(dtype, precision))
    with np.errstate(invalid="ignore"):
        if rounded is not None:
            radius = np.maximum(radius, np.nan_to_num(np.abs(rounded - centre), nan=np.inf))
        if op_type not in OWN_SCALE:
            radius = np.maximum(radius, np.nan_to_num(np.abs(amplified - centre), nan=np.inf).max(initial=0.0))
    return np.asarray(radius)


def spacing(dtype: DType, precision: Precision) -> float:
    """Return the relative spacing of the numbers that a value of a type has in a format, the coarser of the two."""
    if precision is Precision.TF32:
        return 2.0**-10
    return max(float(each.finfo.eps) for each in _formats(dtype, precision))


def smallest_normal(dtype: DType, precision: Precision) -> float:
    """Return the smallest number that engines that flush subnormals to zero can hold (IEEE 754-2019, 2.1)."""
    return max(float(each.finfo.smallest_normal) for each in _formats(dtype, precision))


def subnormal(array: np.ndarray, dtype: DType, precision: Precision) -> np.ndarray:
    """Return where an array holds numbers that an engine may flush to zero; same shape, of bool.

    Args:
        array: Floating-point values of any shape.
        dtype: Their type.
        precision: The target's format.
    """
    return np.asarray((array != 0.0) & (np.abs(array) < smallest_normal(dtype, precision)))


def _formats(dtype: DType, precision: Precision) -> Collection[DType]:
    return [each for each in (dtype, precision.dtype) if each.is_float] or [DType.FLOAT]
