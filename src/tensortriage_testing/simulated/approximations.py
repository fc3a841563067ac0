"""Functions as accelerators approximate them, each with the size of its error and where that size is documented.

An approximation is either the algorithm itself (CUDA's ``__expf`` is ``ex2.approx`` of a product rounded to float32) or
the exact function with a relative error that ripples within the documented bound as the error of a minimax polynomial
does: between equal extremes, smoothly, the same for the same argument.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np

Function = Callable[..., np.ndarray]

LOG2_E = np.float32(1.4426950408889634)
RIPPLES = 64.0
"""Periods of the error per unit of the argument's binary exponent."""


@dataclasses.dataclass(frozen=True, slots=True)
class Approximation:
    """One approximated function.

    Attributes:
        functions: By ONNX operator, from float64 operands to the float64 result before it is stored.
        size: Largest error, relative unless `absolute`; None where it depends on the argument.
        source: Document of the size.
        absolute: Whether `size` is an absolute error.
        inside: Whether it only shows while the result is not a model output, being a part of a fused operator.
    """

    functions: Mapping[str, Function]
    size: float | None
    source: str
    absolute: bool = False
    inside: bool = False


_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function of float64."""
    return np.asarray(_erf(x)) if x.size else x


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the softmax of float64."""
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function of float64."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def gelu(x: np.ndarray) -> np.ndarray:
    """Return the exact GELU (Hendrycks and Gimpel 2016) of float64."""
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


EXACT: Mapping[str, Function] = {
    "Tanh": np.tanh, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Sigmoid": sigmoid, "Erf": erf, "Pow": np.power,
    "Reciprocal": np.reciprocal, "Softmax": softmax, "Gelu": gelu, "Sin": np.sin, "Cos": np.cos, "Div": np.divide,
}  # fmt: skip
"""Exact float64 functions by operator, from which approximations differ."""


def _rippled(exact: Function, size: float) -> Function:
    def function(*operands: np.ndarray, **attributes: int) -> np.ndarray:
        right = exact(*operands, **attributes)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            phase = np.log2(np.abs(right)) * RIPPLES
            wave = np.cos(2.0 * np.pi * np.where(np.isfinite(phase), phase, 0.0))
            result: np.ndarray = right * (1.0 + size * wave)
        return result

    return function


def sized(name: str, size: float) -> Approximation:
    """Return a function of an operator with a rippling relative error of a size that the caller answers for.

    Raises:
        KeyError: For a name that is no operator of `EXACT`.
        ValueError: For a size that is not between 0 and 1.
    """
    op_type = {word.lower(): word for word in EXACT}[name.lower()]
    if not 0.0 < size < 1.0:
        raise ValueError(size)
    return Approximation({op_type: _rippled(EXACT[op_type], size)}, size, "given by the caller")


def _fast_exp(x: np.ndarray) -> np.ndarray:
    product = (x.astype(np.float32) * LOG2_E).astype(np.float64)
    return np.exp2(product)


def _fast_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = _fast_exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def _fast_log2(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.log2(x) + 2.0**-22 * np.cos(2.0 * np.pi * RIPPLES * x))


def _fast_pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    exponent = (y * _fast_log2(np.abs(x))).astype(np.float32).astype(np.float64)
    odd = np.where(np.mod(y, 2.0) == 1.0, np.sign(x), 1.0)
    size = np.where(x == 0.0, np.power(np.abs(x), y), np.exp2(exponent))
    whole = np.mod(y, 1.0) == 0.0
    return np.asarray(np.where((x < 0.0) & ~whole, np.nan, odd * size))


def _tanh_erf(z: np.ndarray) -> np.ndarray:
    x = z * np.sqrt(2.0)
    return np.asarray(np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


def _tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + _tanh_erf(x / np.sqrt(2.0)))


_approx_tanh = _rippled(np.tanh, 2.0**-11)
_TABLE = "CUDA C++ Programming Guide, mathematical functions, intrinsic functions"

APPROXIMATIONS: Mapping[str, Approximation] = {
    "tanh:approx": Approximation({"Tanh": _approx_tanh}, 2.0**-11, "PTX ISA, tanh.approx.f32: relative 2^-11"),
    "tanh:tensorrt": Approximation({"Tanh": _rippled(np.tanh, 8.9e-6)}, 8.9e-6, "TensorRT 8.5.3, fp32, measured"),
    "sigmoid:tanh": Approximation(
        {"Sigmoid": lambda x: 0.5 + 0.5 * _approx_tanh(0.5 * x)},
        2.0**-12,
        "half of tanh.approx.f32's 2^-11",
        absolute=True,
    ),
    "sigmoid:tensorrt": Approximation({"Sigmoid": _rippled(sigmoid, 1.8e-6)}, 1.8e-6, "TensorRT 8.5.3, fp32, measured"),
    "exp:fast": Approximation({"Exp": _fast_exp}, None, f"{_TABLE}, __expf: 2 + floor(|1.173 x|) ulp"),
    "softmax:fast": Approximation({"Softmax": _fast_softmax}, None, f"{_TABLE}, __expf: 2 + floor(|1.173 x|) ulp"),
    "pow:fast": Approximation({"Pow": _fast_pow}, None, f"{_TABLE}, __powf: exp2f(y * __log2f(x)), log2 to 2^-22"),
    "log:fast": Approximation(
        {"Log": lambda x: _fast_log2(x) * np.log(2.0)}, 2.0**-21.41, f"{_TABLE}, __logf on [0.5, 2]", absolute=True
    ),
    "sqrt:approx": Approximation({"Sqrt": _rippled(np.sqrt, 2.0**-22)}, 2.0**-22, f"{_TABLE}: x * rsqrtf(x), 2 ulp"),
    "reciprocal:approx": Approximation(
        {"Reciprocal": _rippled(np.reciprocal, 2.0**-23)}, 2.0**-23, "PTX ISA, rcp.approx.f32: 1 ulp"
    ),
    "div:fast": Approximation({"Div": _rippled(np.divide, 2.0**-22)}, 2.0**-22, f"{_TABLE}, __fdividef: 2 ulp"),
    "gelu:tanh": Approximation(
        {"Gelu": _tanh_gelu, "Erf": _tanh_erf},
        4.8e-4,
        "Hendrycks and Gimpel 2016, section 2: at most 4.73e-4 from the exact GELU",
        absolute=True,
        inside=True,
    ),
}
"""Approximations by the word in options. An Erf counts as part of a GELU: marked as an output it is exact."""
