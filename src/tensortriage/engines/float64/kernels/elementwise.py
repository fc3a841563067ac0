"""Operators that work element by element: arithmetic, comparison, logic, activations."""

from collections.abc import Callable
from functools import reduce

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.special import erf, sigmoid
from tensortriage.engines.spec import Hardware

_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan,
    "Atanh": np.arctanh, "Ceil": np.ceil, "Cos": np.cos, "Cosh": np.cosh, "Erf": erf, "Exp": np.exp, "Floor": np.floor,
    "Log": np.log, "Neg": np.negative, "Round": np.rint, "Sigmoid": sigmoid, "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Sqrt": np.sqrt, "Tan": np.tan, "Tanh": np.tanh, "Reciprocal": lambda x: 1.0 / x,
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)), "Softsign": lambda x: x / (1.0 + np.abs(x)),
    "Softplus": lambda x: np.logaddexp(0.0, x), "HardSwish": lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "Mish": lambda x: x * np.tanh(np.logaddexp(0.0, x)), "Not": np.logical_not, "BitwiseNot": np.invert,
    "IsNaN": lambda x: np.isnan(x.astype(np.float64)), "Identity": lambda x: x,
}  # fmt: skip
_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Equal": np.equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal,
    "Less": np.less, "LessOrEqual": np.less_equal, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor, "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
}  # fmt: skip

_FOLDS: dict[str, np.ufunc] = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}


def _unary(call: Call) -> Output:
    """A function of every element, by the table `_UNARY`; the shape stays."""
    return _UNARY[call.op_type](call[0])


def _binary(call: Call) -> Output:
    """A function of two tensors that broadcast, by the table `_BINARY`."""
    return _BINARY[call.op_type](call[0], call[1])


def _fold(call: Call) -> Output:
    """A function of two folded over any number of tensors that broadcast, by the table `_FOLDS`."""
    return reduce(_FOLDS[call.op_type], call.inputs)


kernel(*_UNARY)(_unary)
kernel(*_BINARY)(_binary)
kernel(*_FOLDS)(_fold)


@kernel("Mean")
def _mean(call: Call) -> Output:
    """Mean(data_0, ...): the elementwise mean of tensors that broadcast to one shape."""
    total: np.ndarray = reduce(np.add, call.inputs)
    return total / len(call.inputs)


@kernel("Div")
def _div(call: Call) -> Output:
    """Div(A, B): A / B, broadcast; the quotient of integers is cut off towards zero.

    In float32 it is the product with the rounded reciprocal, as OpenVINO compiles a division by a constant: exact for
    powers of two, so that whole numbers that exporters divide as floats stay whole.
    """
    dividend, divisor = call[0], call[1]
    if dividend.dtype.kind not in "iu":
        if call.arithmetic.functions.hardware is not Hardware.CPU or dividend.dtype != np.float64:
            return dividend / divisor
        exact = dividend / divisor
        reciprocal = np.float32(1.0) / divisor.astype(np.float32)
        product = dividend.astype(np.float32) * reciprocal
        least = np.finfo(np.float32).tiny
        normal = np.isfinite(product) & (np.abs(product) >= least) & (np.abs(reciprocal) >= least)
        return np.where(normal, product, exact)
    quotient = np.floor_divide(dividend, divisor)  # integers are divided towards zero
    inexact = np.multiply(quotient, divisor) != dividend
    return quotient + (inexact & ((dividend < 0) != (divisor < 0))).astype(quotient.dtype)


@kernel("Mod")
def _mod(call: Call) -> Output:
    """Mod(A, B): the remainder with the sign of B (Python's %), or with that of A (C's fmod) if `fmod` = 1."""
    return np.fmod(call[0], call[1]) if call.get("fmod", 0) else np.mod(call[0], call[1])


@kernel("Pow")
def _pow(call: Call) -> Output:
    """Pow(X, Y): X ** Y, broadcast, in the type of X; non-negative powers of integers are exact modulo 2 ** bits."""
    base, exponent = call[0], call[1]
    if base.dtype.kind in "iu" and exponent.dtype.kind in "iu" and not np.any(exponent < 0):
        return np.power(base, exponent.astype(base.dtype))
    return np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)


@kernel("BitShift")
def _bit_shift(call: Call) -> Output:
    """BitShift(X, Y): X << Y or X >> Y by `direction`, broadcast; unsigned integers."""
    shift = np.left_shift if call.get("direction") == "LEFT" else np.right_shift
    return shift(call[0], call[1])


@kernel("Where")
def _where(call: Call) -> Output:
    """Where(condition, X, Y): X where the condition holds, else Y; all three broadcast."""
    return np.where(call[0], call[1], call[2])


@kernel("IsInf")
def _is_inf(call: Call) -> Output:
    """IsInf(X): whether an element is Inf of a sign that `detect_positive` or `detect_negative` enables."""
    x = call[0].astype(np.float64)
    found = np.zeros(x.shape, bool)
    if call.get("detect_positive", 1):
        found |= np.isposinf(x)
    if call.get("detect_negative", 1):
        found |= np.isneginf(x)
    return found


@kernel("Clip")
def _clip(call: Call) -> Output:
    """Clip(input, min, max): min(max(input, min), max); the bounds are attributes before operator set 11."""
    x = call[0]
    low = call[1] if call.version >= 11 else call.get("min")
    high = call[2] if call.version >= 11 else call.get("max")
    if low is not None:
        x = np.maximum(x, np.asarray(low, x.dtype))
    if high is not None:
        x = np.minimum(x, np.asarray(high, x.dtype))
    return x


@kernel("LeakyRelu")
def _leaky_relu(call: Call) -> Output:
    """LeakyRelu(X): X where X >= 0, else alpha X."""
    return np.where(call[0] < 0, call[0] * call.get("alpha", 0.01), call[0])


@kernel("ThresholdedRelu")
def _thresholded_relu(call: Call) -> Output:
    """ThresholdedRelu(X): X where X > alpha, else 0."""
    return np.where(call[0] > call.get("alpha", 1.0), call[0], 0.0)


@kernel("Elu")
def _elu(call: Call) -> Output:
    """Elu(X): X where X >= 0, else alpha (exp(X) - 1)."""
    return np.where(call[0] < 0, call.get("alpha", 1.0) * np.expm1(call[0]), call[0])


@kernel("Celu")
def _celu(call: Call) -> Output:
    """Celu(X): max(0, X) + min(0, alpha (exp(X / alpha) - 1))."""
    alpha = call.get("alpha", 1.0)
    return np.maximum(call[0], 0.0) + np.minimum(0.0, alpha * np.expm1(call[0] / alpha))


@kernel("Selu")
def _selu(call: Call) -> Output:
    """Selu(X): gamma X where X > 0, else gamma alpha (exp(X) - 1)."""
    # The defaults are the float32 numbers of the operator specification.
    alpha, gamma = call.get("alpha", 1.67326319217681884765625), call.get("gamma", 1.05070102214813232421875)
    return gamma * np.where(call[0] > 0, call[0], alpha * np.expm1(call[0]))


@kernel("HardSigmoid")
def _hard_sigmoid(call: Call) -> Output:
    """HardSigmoid(X): max(0, min(1, alpha X + beta))."""
    return np.clip(call.get("alpha", 0.2) * call[0] + call.get("beta", 0.5), 0.0, 1.0)


@kernel("Gelu")
def _gelu(call: Call) -> Output:
    """Gelu(X): X Phi(X) with Phi the normal distribution, by erf, or by tanh with that `approximate`."""
    x = call[0]
    if call.get("approximate", "none") == "tanh":
        return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


@kernel("Swish")
def _swish(call: Call) -> Output:
    """Swish(X): X sigmoid(alpha X)."""
    return call[0] * sigmoid(call.get("alpha", 1.0) * call[0])


@kernel("Shrink")
def _shrink(call: Call) -> Output:
    """Shrink(input): input + bias below -lambd, input - bias above lambd, 0 between."""
    x, bias, threshold = call[0], call.get("bias", 0.0), call.get("lambd", 0.5)
    shrunk = np.where(x < -threshold, x + bias, np.where(x > threshold, x - bias, 0))
    return shrunk.astype(x.dtype)


@kernel("Dropout")
def _dropout(call: Call) -> Output:
    """Dropout(data, ratio, training_mode) in inference: the data themselves, and a mask [shape of data] of True."""
    ratio = call.get("ratio", 0.5) if call[1] is None else float(np.reshape(call[1], ()))
    if call[2] is not None and bool(call[2]) and ratio > 0:
        raise ValueError("training mode drops values at random")
    return (call[0], np.ones(call[0].shape, bool))[: call.outputs]
