"""The terms of products of two operands that are added up: matrix products and convolutions.

The same operator on magnitudes gives the sum of magnitudes of every element, and on squares that of squares. Means and
bounds over all elements need less than that: ``sum_ij sum_k a_ik^2 b_kj^2 = sum_k (sum_i a_ik^2) (sum_j b_kj^2)``, and
``sum_k |a_ik b_kj| <= |a_i| |b_j|`` (Cauchy and Schwarz).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tensortriage.engines.float64.kernels import Call, kernel_for
from tensortriage.model.ir.graph import Node

LINEAR = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum")
"""Operators that add up products."""

Arrays = Sequence[np.ndarray | None]


def applied(change: Callable[[np.ndarray], np.ndarray], node: Node, operands: Arrays, *, version: int) -> np.ndarray:
    """Return the result of an operator with its operands and factors changed element by element.

    Args:
        change: The change, e.g. ``np.abs``.
        node: The operator, one of `LINEAR`.
        operands: Its operands, float32; None for omitted ones.
        version: Operator set of the model.
    """
    attributes = dict(node.attributes)
    for name in ("alpha", "beta"):
        if isinstance(attributes.get(name), float | int):
            attributes[name] = float(change(np.float64(_factor(node, name))))  # type: ignore[arg-type]  # a scalar will do
    changed = tuple(None if x is None else change(x) for x in operands)
    kernel = kernel_for(node.op_type)
    assert kernel is not None
    return np.asarray(kernel(Call(node.op_type, version, changed, attributes)))


def mean_of_squares(node: Node, operands: Arrays, result: np.ndarray, *, version: int) -> float:
    """Return the mean over a result's elements of the sum of squares of their terms; not finite where a term is not.

    Args:
        node: The operator, one of `LINEAR`.
        operands: Its operands, float32; None for omitted ones.
        result: Its result.
        version: Operator set of the model.

    Raises:
        ValueError: When the operands do not fit each other.
    """
    left, right, bias = (*operands, None, None)[:3]
    if node.op_type == "Conv" and left is not None and right is not None:
        groups = int(_factor(node, "group"))
        kernels = np.square(right).reshape(groups, -1, *right.shape[1:]).sum(axis=1)  # those of a group read the same
        total = float(applied(np.asarray, node, (np.square(left), kernels), version=version).sum(dtype=np.float64))
    elif node.op_type in ("MatMul", "Gemm") and left is not None and right is not None:
        left, right = _as_multiplied(node, left, right)
        columns = np.square(left).sum(axis=-2, dtype=np.float64)
        rows = np.square(right).sum(axis=-1, dtype=np.float64)
        total = _factor(node, "alpha") ** 2 * float((columns * rows).sum())
    else:
        return float(applied(np.square, node, operands, version=version).mean(dtype=np.float64))
    of_bias = 0.0 if bias is None else _factor(node, "beta") ** 2 * float(np.square(bias).mean(dtype=np.float64))
    return total / result.size + of_bias


def simple_bound(node: Node, operands: Arrays) -> float:
    """Return an upper bound of the sums of magnitudes that costs one pass over the operands; inf where none is known.

    Args:
        node: The operator, one of `LINEAR`.
        operands: Its operands, float32; None for omitted ones.
    """
    left, right, bias = (*operands, None, None)[:3]
    if left is None or right is None or not left.size or not right.size:
        return math.inf
    if node.op_type == "Conv":
        found = float(np.abs(left).max()) * float(np.abs(right).sum(axis=tuple(range(1, right.ndim))).max())
    elif node.op_type in ("MatMul", "Gemm"):
        left, right = _as_multiplied(node, left, right)
        rows = np.square(left).sum(axis=-1, dtype=np.float64).max()
        columns = np.square(right).sum(axis=-2, dtype=np.float64).max()
        found = abs(_factor(node, "alpha")) * math.sqrt(float(rows * columns))
    else:
        return math.inf
    found += 0.0 if bias is None else abs(_factor(node, "beta")) * float(np.abs(bias).max(initial=0.0))
    return found if math.isfinite(found) else math.inf


def _factor(node: Node, name: str) -> float:
    """Return alpha, beta or the number of groups; 1 where it is not given."""
    given = node.attributes.get(name)
    return given if isinstance(given, float | int) else 1.0


def _as_multiplied(node: Node, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (..., M, K) and (..., K, N) as they are multiplied."""
    if node.op_type == "Gemm":
        left = left.T if node.attributes.get("transA") else left
        right = right.T if node.attributes.get("transB") else right
    left = left[None] if left.ndim == 1 else left
    right = right[:, None] if right.ndim == 1 else right
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(f"{left.shape} does not fit {right.shape}")
    return left, right
