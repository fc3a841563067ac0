"""Special functions that numpy lacks, vectorised, accurate to about one unit in the last place of float64."""

import numpy as np

_NEAR = 0.46875
_FAR = 4.0
_BLOCK = 1 << 15

# W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), pages 631-637;
# coefficients as printed in netlib's specfun (erf.f). Ordered from the highest power down; denominators start with 1.
_A = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_C = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_D = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
_P = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
_Q = (
    1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
    2.33520497626869185e-3,
)  # fmt: skip


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function of a float64 array; worked in blocks that fit the cache.

    Args:
        x: Real, of any shape.

    Returns:
        Float64, in the same shape.
    """
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        result[start : start + _BLOCK] = _erf_block(flat[start : start + _BLOCK])
    return np.reshape(result, np.shape(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)); it underflows to 0 and saturates to 1 without overflow errors that matter.

    Args:
        x: Float64, of any shape.
    """
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _erf_block(x: np.ndarray) -> np.ndarray:
    """Both usual branches for every element, each used where it holds: picking elements takes longer than they do."""
    size, sign = np.abs(x), np.copysign(1.0, x)
    argument = np.clip(x, -_NEAR, _NEAR)
    near = argument * _ratio(_A, _B, argument**2)
    y = np.clip(size, _NEAR, _FAR)
    result = np.where(size <= _NEAR, near, sign * (1.0 - _exp_minus_square(y) * _ratio(_C, _D, y)))
    if (beyond := size > _FAR).any():
        result[beyond] = sign[beyond]
        far = beyond & (size < 6.0)  # beyond 6 the complement is below half a unit in the last place of 1
        y = size[far]
        inverse = 1.0 / y**2
        tail = (1.0 / np.sqrt(np.pi) - inverse * _ratio(_P, _Q, inverse)) / y
        result[far] *= 1.0 - _exp_minus_square(y) * tail
    return np.asarray(result)


def _exp_minus_square(y: np.ndarray) -> np.ndarray:
    """Return exp(-y*y) without the rounding error of y*y (Cody splits y at 1/16)."""
    high = np.trunc(y * 16.0) * 0.0625
    return np.asarray(np.exp(-high * high) * np.exp(-(y - high) * (y + high)))


def _ratio(numerator: tuple[float, ...], denominator: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    return np.asarray(_polynomial(numerator, x) / _polynomial(denominator, x))


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Return a polynomial's values by Horner's rule; its coefficients from the highest power down."""
    y: np.ndarray = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        y += coefficient
        y *= x
    y += coefficients[-1]
    return y
