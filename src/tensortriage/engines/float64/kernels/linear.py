"""Matrix products."""

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.casting import to_float64
from tensortriage.engines.float64.stored_numbers import AS_STORED, StoredNumbers


@kernel("MatMul")
def _matmul(call: Call) -> Output:
    """MatMul: ``y[..., i, j] = sum over k of A[..., i, k] * B[..., k, j]``, shapes as numpy.matmul."""
    return call.arithmetic.products.matmul(call[0], call[1])


@kernel("Gemm")
def _gemm(call: Call) -> Output:
    """Gemm: ``y = alpha * A' @ B' + beta * C``; A' (M, K), B' (K, N), C broadcast to (M, N) or none."""
    left = call[0].T if call.get("transA", 0) else call[0]
    right = call[1].T if call.get("transB", 0) else call[1]
    product = call.arithmetic.products.matmul(left, right)
    if call.get("alpha", 1.0) != 1.0:
        product = (product * call.get("alpha")).astype(product.dtype)
    if call[2] is not None:
        product = product + (to_float64(call[2]) * call.get("beta", 1.0)).astype(product.dtype)
    return product


@kernel("Einsum")
def _einsum(call: Call) -> Output:
    """Einsum: the sum of products that the equation names; always in float64."""
    return np.einsum(call.get("equation").replace(" ", ""), *call.inputs, optimize=True)


@kernel("MatMulInteger")
def _matmul_integer(call: Call) -> Output:
    """MatMulInteger: ``(A - a_zero_point) @ (B - b_zero_point)`` in int32; zero points scalar, per row, per column."""
    stored = call.arithmetic.stored
    return np.matmul(_centred(call[0], call[2], -2, stored), _centred(call[1], call[3], -1, stored))


def _centred(x: np.ndarray, zero_point: np.ndarray | None, axis: int, stored: StoredNumbers) -> np.ndarray:
    """Return x minus its zero point, which is one number or one per row (axis -2) or column (axis -1).

    It is int32, and float64 where quantizers do not round.
    """
    wide: np.ndarray = x.astype(np.int32) if stored == AS_STORED else stored.dequantized(x)
    if zero_point is None:
        return wide
    zero = zero_point.astype(wide.dtype)
    if zero.ndim == 1 and zero.size > 1 and axis == -2:
        zero = zero[:, None]
    return np.asarray(wide - (zero.reshape(()) if zero.size == 1 else zero))


@kernel("Det")
def _det(call: Call) -> Output:
    """Det: determinants of (..., N, N)."""
    return np.linalg.det(call[0])
