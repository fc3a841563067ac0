"""The terms behind sums: how large they get on the way to a result, and how far they cancel.

The sum of magnitudes bounds every partial sum, in whatever order an engine adds. Rounding errors of n independent terms
add up like their root sum of squares (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 2.6), so
that over the result is what rounding the operands costs, in units of one rounding: the condition of the sum.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.engines.reference.kernels import Call, kernel_for
from tensortriage.model.ir.graph import Node

_LINEAR = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum")
_POOLS = ("GlobalAveragePool", "AveragePool")

Arrays = Sequence[np.ndarray | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an operator's sums, over all elements of its result.

    Attributes:
        bound: Largest sum of magnitudes of the terms of one element.
        condition: RMS of the roots of the sums of squares over the RMS of the sums; None when it is one by nature
            (terms of one sign); inf when all sums are zero and their terms are not.
    """

    bound: float | None
    condition: float | None


def terms_of(node: Node, operands: Arrays, result: np.ndarray, *, version: int) -> Terms | None:
    """Return what is known of an operator's sums; None for operators that add nothing up.

    Args:
        node: The operator.
        operands: One array per input of the reference run; None for omitted or unknown ones.
        result: Its first result there.
        version: Operator set of the model.
    """
    reader = _READERS.get(node.op_type) if not node.domain else None
    if reader is None or not operands or operands[0] is None or not result.size:
        return None
    wide = [
        None if x is None or x.dtype.kind in "USO" else np.asarray(x).astype(np.float32, copy=False) for x in operands
    ]
    with np.errstate(all="ignore"):
        try:
            return reader(node, wide, result, version)
        except (ValueError, IndexError, TypeError):  # an operand whose shape is not what the operator takes
            return None


def _rms(array: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def _finite(bound: np.ndarray) -> float | None:
    """Return the largest finite number; None when there is none."""
    found = float(np.max(bound[np.isfinite(bound)], initial=-1.0))
    return found if found >= 0.0 else None


def _condition(squares: np.ndarray, sums: np.ndarray) -> float | None:
    """Return the condition of sums from the sums of squares of their terms."""
    usable = np.isfinite(squares) & np.isfinite(sums)
    roots, left = _rms(np.sqrt(squares[usable])), _rms(sums[usable])
    if roots == 0.0:
        return None
    return roots / left if left > 0.0 else math.inf


def _linear(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
    """Products of two operands, added up: the same operator on magnitudes, and on squares."""

    def applied(change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        attributes = dict(node.attributes)
        for name in ("alpha", "beta"):
            if isinstance(given := attributes.get(name), float | int):
                attributes[name] = float(change(np.float64(given)))  # type: ignore[arg-type]  # a scalar will do
        changed = tuple(None if x is None else change(x) for x in operands)
        kernel = kernel_for(node.op_type)
        assert kernel is not None
        return np.asarray(kernel(Call(node.op_type, version, changed, attributes)))

    return Terms(_finite(applied(np.abs)), _condition(applied(np.square), result.astype(np.float64)))


def _sum(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
    """Element-wise addition or subtraction."""
    known = [x for x in operands if x is not None]
    squares = sum((np.square(x, dtype=np.float64) for x in known), np.zeros((), np.float64))
    return Terms(None, _condition(np.broadcast_to(squares, result.shape), result.astype(np.float64)))


def _axes(node: Node, operands: Arrays, rank: int) -> tuple[int, ...]:
    given = node.attributes.get("axes")
    if given is None and len(operands) > 1 and operands[1] is not None:
        given = tuple(operands[1].reshape(-1))
    if not isinstance(given, tuple) or not given:
        return () if node.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(int(axis) % rank for axis in given)


def _reduced(change: Callable[[np.ndarray], np.ndarray], *, signed: bool) -> Callable[..., Terms]:
    """Sums along axes of a function of the operand; those of one sign do not cancel."""

    def read(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
        data = operands[0]
        assert data is not None
        axes = _axes(node, operands, data.ndim)
        if not axes:
            return Terms(None, None)
        terms = change(data.astype(np.float64))
        bound = _finite(np.abs(terms).sum(axis=axes))
        if not signed:
            return Terms(bound, None)
        return Terms(bound, _condition(np.square(terms).sum(axis=axes), terms.sum(axis=axes)))

    return read


def _pool(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
    data = operands[0]
    assert data is not None
    window = node.attributes.get("kernel_shape")
    terms = math.prod(window) if isinstance(window, tuple) else math.prod(data.shape[2:])
    attributes = {**node.attributes, "count_include_pad": 1}
    kernel = kernel_for(node.op_type)
    assert kernel is not None
    mean = np.asarray(kernel(Call(node.op_type, version, (np.abs(data),), attributes)))
    return Terms(_finite(mean * terms), None)


def _softmax(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
    """The sum of exponentials below the largest one, which engines subtract first."""
    data = operands[0]
    assert data is not None
    axis = node.attributes.get("axis", -1 if version >= 13 else 1)
    assert isinstance(axis, int)
    axes = axis if version >= 13 else tuple(range(axis % data.ndim, data.ndim))
    rest = np.exp(data.astype(np.float64) - data.max(axis=axes, keepdims=True))
    return Terms(_finite(rest.sum(axis=axes)), None)


def _normalized(node: Node, operands: Arrays, result: np.ndarray, version: int) -> Terms:
    """Sums, and sums of squares, over what is normalized together; the mean is subtracted, which may cancel."""
    data = operands[0]
    assert data is not None
    if node.op_type == "LayerNormalization":
        axis = node.attributes.get("axis", -1)
        assert isinstance(axis, int)
        axes = tuple(range(axis % data.ndim, data.ndim))
    elif node.op_type == "GroupNormalization":
        groups = node.attributes.get("num_groups", 1)
        assert isinstance(groups, int)
        data, axes = data.reshape(data.shape[0], groups, -1), (2,)
    else:
        axes = tuple(range(2, data.ndim))
    exact = data.astype(np.float64)
    mean = exact.mean(axis=axes, keepdims=True)
    rest = exact - mean
    sums = [np.abs(exact).sum(axis=axes), np.square(rest).sum(axis=axes)]
    bounds = [bound for each in sums if (bound := _finite(each)) is not None]
    squares = np.square(exact) + np.square(mean)
    return Terms(max(bounds, default=None), _condition(squares, rest))


_READERS: Mapping[str, Callable[[Node, Arrays, np.ndarray, int], Terms]] = {
    **dict.fromkeys(_LINEAR, _linear),
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "InstanceNormalization", "GroupNormalization"), _normalized),
    "ReduceSum": _reduced(lambda x: x, signed=True),
    "ReduceMean": _reduced(lambda x: x, signed=True),
    "ReduceL1": _reduced(np.abs, signed=False),
    "ReduceL2": _reduced(np.square, signed=False),
    "ReduceSumSquare": _reduced(np.square, signed=False),
    "ReduceLogSum": _reduced(lambda x: x, signed=True),
    "ReduceLogSumExp": _reduced(np.exp, signed=False),
}
"""What is known of each operator that adds up."""
