"""Why a sum is NaN or infinite: products, reductions, Softmax and normalizations, by the terms of one element.

A sum of finite terms leaves the format only if their magnitudes add up to more than its largest number; it is NaN only
when a term is, or when infinities of both signs meet. So the terms of the one element are gathered and looked at.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.compare.nonfinite.element import Element, RuleMatch, spoken
from tensortriage.engines.float64.kernels import Call, kernel_for


def _of_terms(
    element: Element, terms: np.ndarray, left: np.ndarray | None = None, right: np.ndarray | None = None
) -> RuleMatch | None:
    """Explain the sum of some terms; ``left`` and ``right`` are their factors where they are products."""
    facts = {"terms": float(terms.size), "sum of magnitudes": float(np.abs(terms[np.isfinite(terms)]).sum())}
    bad = np.flatnonzero(np.isnan(terms))
    if bad.size:
        where = int(bad[0])
        if left is not None and right is not None and {0.0, math.inf} <= {abs(left[where]), abs(right[where])}:
            pair = {"x": float(left[where]), "y": float(right[where])}
            return RuleMatch("0 * Inf", pair, f"term {where} of the sum is {spoken(pair['x'])} * {spoken(pair['y'])}")
        return RuleMatch("carried", {"term": math.nan}, f"term {where} of the sum is NaN")
    if np.isposinf(terms).any() and np.isneginf(terms).any():
        return RuleMatch("Inf - Inf", facts, f"the {terms.size} terms of the sum hold both Inf and -Inf")
    if np.isinf(terms).any():
        where = int(np.flatnonzero(np.isinf(terms))[0])
        if left is not None and right is not None and math.isfinite(left[where]) and math.isfinite(right[where]):
            return RuleMatch(
                "overflow", facts, f"term {where} of the sum is {spoken(left[where])} * {spoken(right[where])}"
            )
        return RuleMatch("carried", facts, f"term {where} of the sum is {spoken(float(terms[where]))}")
    if not facts["sum of magnitudes"] > element.largest:
        return None
    total, magnitudes = spoken(float(terms.sum())), spoken(facts["sum of magnitudes"])
    return RuleMatch(
        "overflow", facts, f"{terms.size} terms, whose magnitudes add up to {magnitudes}, have the sum {total}"
    )


def _matmul(element: Element) -> RuleMatch | None:
    left, right = element.array(0), element.array(1)
    if left is None or right is None:
        return None
    return _product(element, left, right)


def _product(element: Element, left: np.ndarray, right: np.ndarray) -> RuleMatch | None:
    """Explain element (..., i, j) of a matrix product by row i and column j."""
    index = list(element.index)
    column = index.pop() if right.ndim > 1 else None
    row = index.pop() if left.ndim > 1 else None
    rows = left if row is None else _batch(left, index)[row]
    columns = right if column is None else _batch(right, index)[:, column]
    return _of_terms(element, rows * columns, rows, columns)


def _batch(array: np.ndarray, index: list[int]) -> np.ndarray:
    """Return the matrix of a stack that broadcasting pairs with a batch index."""
    own = index[len(index) - (array.ndim - 2) :] if array.ndim > 2 else []
    return np.asarray(array[tuple(0 if size == 1 else i for size, i in zip(array.shape, own, strict=False))])


def _gemm(element: Element) -> RuleMatch | None:
    left, right = element.array(0), element.array(1)
    if left is None or right is None:
        return None
    left = left.T if element.integer("transA", 0) else left
    right = right.T if element.integer("transB", 0) else right
    row, column = element.index
    found = _of_terms(element, left[row] * right[:, column], left[row], right[:, column])
    bias = element.at(2)
    if (found is None or found.rule == "overflow") and bias is not None and not math.isfinite(bias):
        return RuleMatch("carried", {"bias": bias}, f"its bias is {spoken(bias)} there")
    return found


def _conv(element: Element) -> RuleMatch | None:
    """Explain an element of a convolution by its sample, its filter, and the same sum over magnitudes."""
    data, weight = element.array(0), element.array(1)
    kernel = kernel_for("Conv")
    if data is None or weight is None or kernel is None:
        return None
    sample, channel = element.index[:2]
    group = element.integer("group", 1)
    inputs = weight.shape[1]
    first = channel // (weight.shape[0] // group) * inputs
    data, weight = data[sample : sample + 1, first : first + inputs], weight[channel : channel + 1]
    for position, array in ((0, data), (1, weight)):
        if not np.isfinite(array).all():
            bad = float(array[~np.isfinite(array)].flat[0])
            name = element.name(position)
            return RuleMatch("carried", {name: bad}, f"its operand '{name}' holds {spoken(bad)}")
    given = {**element.node.attributes, "group": 1}
    call = Call("Conv", 22, (np.abs(data), np.abs(weight), None), given)
    magnitudes = float(kernel(call)[(0, 0, *element.index[2:])])
    if not magnitudes > element.largest:
        return None
    facts = {"terms": float(weight.size), "sum of magnitudes": magnitudes}
    return RuleMatch("overflow", facts, f"{weight.size} terms, whose magnitudes add up to {spoken(magnitudes)}")


def _slice(element: Element) -> np.ndarray | None:
    """Return the elements of the first operand that a reduction sums up for one element of its result."""
    data = element.array(0)
    if data is None:
        return None
    given = element.node.attributes.get("axes")
    if given is None and (axes := element.array(1)) is not None:
        given = tuple(int(axis) for axis in axes.reshape(-1))
    chosen = {int(axis) % data.ndim for axis in given} if isinstance(given, tuple) and given else {*range(data.ndim)}
    keeps = element.integer("keepdims", 1)
    left = iter(element.index)
    place: list[int | slice] = []
    for axis in range(data.ndim):
        if axis not in chosen:
            place.append(next(left))
        else:
            place.append(slice(None))
            if keeps:
                next(left, None)
    return np.asarray(data[tuple(place)]).reshape(-1)


def _reduction(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Element], RuleMatch | None]:
    def read(element: Element) -> RuleMatch | None:
        terms = _slice(element)
        return None if terms is None else _of_terms(element, change(terms))

    return read


def _log_sum(element: Element) -> RuleMatch | None:
    terms = _slice(element)
    if terms is None:
        return None
    total = float(terms.sum())
    if total <= 0.0:
        rule = "log of 0" if total == 0.0 else "log of a negative number"
        return RuleMatch(rule, {"sum": total}, f"log({spoken(total)}) of the sum")
    return _of_terms(element, terms)


def _log_sum_exp(element: Element) -> RuleMatch | None:
    terms = _slice(element)
    if terms is None:
        return None
    return _all_masked(terms) or _of_terms(element, np.exp(terms))


def _all_masked(terms: np.ndarray) -> RuleMatch | None:
    """Explain the NaN of a slice that is -Inf throughout: its largest element is taken off first."""
    low, high = float(terms.min()), float(terms.max())
    if not low == high == -math.inf:
        return None
    words = "every element of its slice is -Inf, so that -Inf - (-Inf) is computed"
    return RuleMatch("Inf - Inf", {"smallest": low, "largest": high}, words)


def _softmax(element: Element) -> RuleMatch | None:
    """Explain an element of a Softmax by its slice: exp(x - max) / sum, where max - max must not be Inf - Inf."""
    data = element.array(0)
    if data is None or not data.ndim:
        return None
    axis = element.integer("axis", -1) % data.ndim
    place = tuple(slice(None) if along == axis else i for along, i in enumerate(element.index))
    terms = data[place]
    low, high = float(terms.min()), float(terms.max())
    facts = {"smallest": low, "largest": high}
    if np.isnan(terms).any():
        return RuleMatch("carried", facts, "its slice holds NaN")
    if masked := _all_masked(terms):
        return masked
    if high == math.inf:
        return RuleMatch("Inf - Inf", facts, "its slice holds Inf, so that Inf - Inf is computed")
    if high > math.log(element.largest):
        return RuleMatch(
            "overflow", facts, f"exp({spoken(high)}), if the largest element of the slice is not subtracted first"
        )
    return None


def _normalization(element: Element) -> RuleMatch | None:
    """Explain an element of a normalization by the slice that is averaged."""
    data = element.array(0)
    if data is None or data.ndim < 2:
        return None
    if element.node.op_type == "LayerNormalization":
        axis = element.integer("axis", -1) % data.ndim
        terms = data[element.index[:axis]].reshape(-1)
    else:  # InstanceNormalization: one channel of one sample
        terms = data[element.index[:2]].reshape(-1)
    if not np.isfinite(terms).all():
        bad = float(terms[~np.isfinite(terms)][0])
        return RuleMatch("carried", {element.name(0): bad}, f"the slice that is normalized holds {spoken(bad)}")
    variance = float(terms.var())
    epsilon = element.node.attributes.get("epsilon", 1e-5)
    facts = {"variance": variance, "epsilon": float(epsilon) if isinstance(epsilon, int | float) else 0.0}
    if variance == 0.0:
        return RuleMatch("0 / 0", facts, f"the slice is constant: (x - mean) / sqrt(0 + {spoken(facts['epsilon'])})")
    squares = float(np.square(terms - terms.mean()).sum())
    return RuleMatch(
        "overflow", facts | {"sum of squares": squares}, f"{terms.size} squares with the sum {spoken(squares)}"
    )


def _pooling(element: Element) -> RuleMatch | None:
    data = element.array(0)
    return None if data is None or data.ndim < 3 else _of_terms(element, data[element.index[:2]].reshape(-1))


SUMS: Mapping[str, Callable[[Element], RuleMatch | None]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ReduceSum": _reduction(lambda x: x),
    "ReduceMean": _reduction(lambda x: x),
    "ReduceL1": _reduction(np.abs),
    "ReduceL2": _reduction(np.square),
    "ReduceSumSquare": _reduction(np.square),
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "LayerNormalization": _normalization,
    "InstanceNormalization": _normalization,
    "GlobalAveragePool": _pooling,
}
"""Operators that add up terms; ``f(element)`` explains one element, or returns None."""
