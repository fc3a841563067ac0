"""The terms behind sums: how large they get on the way to a result, and how far they cancel.

The sum of magnitudes bounds every partial sum, in whatever order an engine adds. Rounding errors of n independent terms
add up like their root sum of squares (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 2.6).
Divided by the result, that is the cost of rounding the operands, in units of one rounding: the condition of the sum.

Only means over a whole result are wanted, so that products of magnitudes and squares need not be made element by
element: the squares of a matrix product add up to the sum over k of |column k of A|^2 |row k of B|^2. A bound need not
be known where a simple one, by Cauchy and Schwarz or by the largest factor, is small enough already.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.engines.float64.kernels import Call, kernel_for
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node
from tensortriage.runs.analyses.sums.product_terms import LINEAR, applied, mean_of_squares, simple_bound

_SKIPS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})
"""ONNX Runtime's own, which add their first two operands."""
_UNCENTRED = frozenset({"RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"})
_POOLS = ("GlobalAveragePool", "AveragePool")

Arrays = Sequence[np.ndarray | None]


@frozen_dataclass
class Terms:
    """The terms of an operator's sums, over all elements of its result.

    Attributes:
        bound: Largest sum of magnitudes of the terms of one element; None also where it was not requested.
        condition: RMS of the roots of the sums of squares over the RMS of the sums; None when it is one by nature
            (terms of one sign); inf when all sums are zero and their terms are not.
    """

    bound: float | None
    condition: float | None


def adds_up(node: Node) -> bool:
    """Return whether `terms_of` knows the sums of an operator."""
    return (not node.domain or node.op_type in _SKIPS) and node.op_type in _READERS


def terms_of(node: Node, operands: Arrays, result: np.ndarray, *, version: int, beyond: float = 0.0) -> Terms | None:
    """Return the terms of an operator's sums; None for operators that add nothing up.

    Args:
        node: The operator.
        operands: One array per input of the reference run; None for omitted or unknown ones.
        result: Its first result there.
        version: Operator set of the model.
        beyond: Bounds below this are of no interest and may be left out.
    """
    if not adds_up(node) or not operands or operands[0] is None or not result.size:
        return None
    wide = [
        None if x is None or x.dtype.kind in "USO" else np.asarray(x).astype(np.float32, copy=False) for x in operands
    ]
    with np.errstate(all="ignore"):
        try:
            return _READERS[node.op_type](node, wide, result, version, beyond)
        except (ValueError, IndexError, TypeError):  # an operand whose shape is not what the operator takes
            return None


def _mean_square(array: np.ndarray) -> float:
    """Return the mean of the squares; inf or NaN where the array is not finite."""
    if not array.size:
        return 0.0
    if array.dtype == np.float32 and math.isfinite(total := float(np.square(array).sum(dtype=np.float64))):
        return total / array.size
    return float(np.mean(np.square(array, dtype=np.float64)))


def _finite(bound: np.ndarray) -> float | None:
    """Return the largest finite number; None when there is none."""
    found = float(np.max(bound[np.isfinite(bound)], initial=-1.0))
    return found if found >= 0.0 else None


def _condition(squares: np.ndarray, sums: np.ndarray) -> float | None:
    """Return the condition of sums from the sums of squares of their terms, over those that are finite."""
    usable = np.isfinite(squares) & np.isfinite(sums)
    return _of_means(float(np.mean(squares[usable])) if usable.any() else 0.0, _mean_square(sums[usable]))


def _of_means(squares: float, sums: float) -> float | None:
    """Return the condition from the mean sum of squares of terms, and the mean square of sums."""
    if squares == 0.0:
        return None
    return math.sqrt(squares / sums) if sums > 0.0 else math.inf


def _linear(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
    """Products of two operands, added up."""
    squares, sums = mean_of_squares(node, operands, result, version=version), _mean_square(result)
    if math.isfinite(squares) and math.isfinite(sums):
        condition = _of_means(squares, sums)
    else:
        condition = _condition(applied(np.square, node, operands, version=version), result.astype(np.float64))
    if simple_bound(node, operands) < beyond:
        return Terms(None, condition)
    return Terms(_finite(applied(np.abs, node, operands, version=version)), condition)


def _sum(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
    """Element-wise addition or subtraction; every element of an operand that broadcasts counts equally often."""
    known = [x for x in operands if x is not None]
    squares, sums = sum(map(_mean_square, known)), _mean_square(result)
    if math.isfinite(squares) and math.isfinite(sums):
        return Terms(None, _of_means(squares, sums))
    each = sum((np.square(x, dtype=np.float64) for x in known), np.zeros((), np.float64))
    return Terms(None, _condition(np.broadcast_to(each, result.shape), result.astype(np.float64)))


def _axes(node: Node, operands: Arrays, rank: int) -> tuple[int, ...]:
    given = node.attributes.get("axes")
    if given is None and len(operands) > 1 and operands[1] is not None:
        given = tuple(operands[1].reshape(-1))
    if not isinstance(given, tuple) or not given:
        return () if node.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(int(axis) % rank for axis in given)


def _reduced(change: Callable[[np.ndarray], np.ndarray], *, signed: bool) -> Callable[..., Terms]:
    """Sums along axes of a function of the operand; those of one sign do not cancel."""

    def read(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
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


def _pool(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
    data = operands[0]
    assert data is not None
    window = node.attributes.get("kernel_shape")
    terms = math.prod(window) if isinstance(window, tuple) else math.prod(data.shape[2:])
    attributes = {**node.attributes, "count_include_pad": 1}
    kernel = kernel_for(node.op_type)
    assert kernel is not None
    mean = np.asarray(kernel(Call(node.op_type, version, (np.abs(data),), attributes)))
    return Terms(_finite(mean * terms), None)


def _softmax(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
    """The sum of exponentials below the largest one, which engines subtract first."""
    data = operands[0]
    assert data is not None
    axis = node.attributes.get("axis", -1 if version >= 13 else 1)
    assert isinstance(axis, int)
    axes = (axis,) if version >= 13 else tuple(range(axis % data.ndim, data.ndim))
    if math.prod(data.shape[a] for a in axes) < beyond:  # no exponential is above 1
        return Terms(None, None)
    rest = np.exp(data.astype(np.float64) - data.max(axis=axes, keepdims=True))
    return Terms(_finite(rest.sum(axis=axes)), None)


def _normalized(node: Node, operands: Arrays, result: np.ndarray, version: int, beyond: float) -> Terms:
    """Sums, and sums of squares, over the slices that are normalized; subtracting the mean may cancel."""
    data = operands[0]
    assert data is not None
    if node.op_type in _SKIPS and len(operands) > 1 and operands[1] is not None:
        data = data + operands[1]
    if node.op_type.endswith("LayerNormalization") or node.op_type == "RMSNormalization":
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
    mean = exact.mean(axis=axes, keepdims=True) if node.op_type not in _UNCENTRED else np.zeros_like(exact[:1])
    rest = exact - mean
    sums = [np.abs(exact).sum(axis=axes), np.square(rest).sum(axis=axes)]
    bounds = [bound for each in sums if (bound := _finite(each)) is not None]
    squares = np.square(exact) + np.square(mean)
    return Terms(max(bounds, default=None), _condition(squares, rest))


_READERS: Mapping[str, Callable[[Node, Arrays, np.ndarray, int, float], Terms]] = {
    **dict.fromkeys(LINEAR, _linear),
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "InstanceNormalization", "GroupNormalization"), _normalized),
    **dict.fromkeys((*_SKIPS, *_UNCENTRED), _normalized),
    "ReduceSum": _reduced(lambda x: x, signed=True),
    "ReduceMean": _reduced(lambda x: x, signed=True),
    "ReduceL1": _reduced(np.abs, signed=False),
    "ReduceL2": _reduced(np.square, signed=False),
    "ReduceSumSquare": _reduced(np.square, signed=False),
    "ReduceLogSum": _reduced(lambda x: x, signed=True),
    "ReduceLogSumExp": _reduced(np.exp, signed=False),
}
"""Rules of each operator that adds up."""
