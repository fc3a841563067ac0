"""Accuracy of functions on classes of hardware, and results with an error of that size.

Exp, Tanh or a division have no prescribed last bits: every class of hardware has its own approximations, within bounds
that vendors document or that were measured. `ACCURACIES` is the one table of these bounds, each with its source;
`FunctionError` puts an error of that size on exact results, a seeded function of the result's digits, as polynomials
and tables behind a range reduction make it: the same input always gets the same error.
"""

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.engines.spec import Hardware
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

_ULP = 2.0**-23
"""Distance of neighbouring float32 numbers, relative to the smaller, at most."""
_CUDA = "CUDA C++ Programming Guide, Mathematical Functions, table of maximum ulp errors in single precision"
_INTRINSIC = "CUDA C++ Programming Guide, Intrinsic Functions, table of maximum errors under -use_fast_math"
_PTX = "PTX ISA, floating-point instructions with .approx"
_TENSORRT = "largest error of 4,096 arguments from -8 to 8 on TensorRT 8.5.3 (H100, FP32), rounded up; bench/gpu"
_BACKEND = "largest error of the ONNX backend tests on TensorRT 8.5.3, FP32"
_MEASURED = "bench/function_accuracy.py on ONNX Runtime 1.31 and OpenVINO 2026.4, rounded up"
_MNN = "bench/function_accuracy.py on MNN 3.0.0 and 3.6.1, rounded up"
_HALF = "results of table look-ups or polynomials in float16: one unit in its last place (IEEE 754 binary16)"
_GELU = "largest distance between the tanh form of GELU and the exact one; measured on MNN as well"


@frozen_dataclass
class Accuracy:
    """Largest error of one function.

    Attributes:
        relative: Bound relative to the exact result.
        absolute: Bound where that is larger than the relative one.
        source: Source of the figures.
        per_log: Addition to the relative bound per unit of ``|ln(result)|``: an exponential function by way of 2**(x *
            log2(e)) loses digits of large arguments.
        argument: Relative error of the argument: the sine and cosine of instruction sets reduce it to one period by a
            product in float32.
    """

    relative: float
    absolute: float
    source: str
    per_log: float = 0.0
    argument: float = 0.0


def _ulps(source: str, count: float, absolute: float = 0.0, per_log: float = 0.0) -> Accuracy:
    return Accuracy(count * _ULP, absolute, source, per_log * _ULP)


_FAST_LOG = 2.0**-21.41  # absolute error of __logf in [0.5, 2]; outside it is 3 ulp

ACCURACIES: Mapping[Hardware, Mapping[str, Accuracy]] = {
    Hardware.CPU: {
        "Acos": _ulps(_MEASURED, 2.5), "Acosh": _ulps(_MEASURED, 1.5), "Asin": _ulps(_MEASURED, 4.5),
        "Asinh": _ulps(_MEASURED, 1), "Atan": _ulps(_MEASURED, 2), "Atanh": _ulps(_MEASURED, 1.5),
        "Celu": _ulps(_MEASURED, 1, 1.2e-7), "Cos": _ulps(_MEASURED, 1.5, 9e-8), "Cosh": _ulps(_MEASURED, 1),
        "Elu": _ulps(_MEASURED, 1, 1.2e-7), "Erf": _ulps(_MEASURED, 1, 6e-7),
        "Exp": _ulps(_MEASURED, 3.5), "Gelu": _ulps(_MEASURED, 2, 1.3e-6), "Log": _ulps(_MEASURED, 2),
        "LogSoftmax": _ulps(_MEASURED, 1), "Mish": _ulps(_MEASURED, 4.5, 1.4e-6),
        "ReduceL2": _ulps(_MEASURED, 1), "ReduceLogSum": _ulps(_MEASURED, 2, 1.2e-7),
        "ReduceLogSumExp": _ulps(_MEASURED, 2, 1.2e-7), "Selu": _ulps(_MEASURED, 1, 2.2e-7),
        "Sigmoid": _ulps(_MEASURED, 2.5, 2e-7), "Sin": _ulps(_MEASURED, 1.5, 9e-8), "Sinh": _ulps(_MEASURED, 1.5),
        "Softmax": _ulps(_MEASURED, 2, per_log=0.5), "Softplus": _ulps(_MEASURED, 2.5, 1.2e-7),
        "Softsign": _ulps(_MEASURED, 1.5), "Swish": _ulps(_MEASURED, 3, 2e-7), "Tan": _ulps(_MEASURED, 1),
        "Tanh": _ulps(_MEASURED, 3),
    },
    Hardware.GPU: {
        "Acos": _ulps(_CUDA, 2), "Acosh": _ulps(_CUDA, 4), "Asin": _ulps(_CUDA, 2), "Asinh": _ulps(_CUDA, 3),
        "Atan": _ulps(_CUDA, 2), "Atanh": _ulps(_CUDA, 3), "Celu": _ulps(_INTRINSIC, 3, 2 * _ULP),
        "Cos": Accuracy(0.0, 2.0**-20.9, f"{_PTX}: cos.approx.f32; argument: {_TENSORRT}", argument=_ULP),
        "Cosh": _ulps(_INTRINSIC, 4, per_log=1.173),
        "Div": _ulps(f"{_PTX}: div.approx.f32", 2), "Elu": _ulps(_INTRINSIC, 3, 2 * _ULP), "Erf": _ulps(_CUDA, 2),
        "Exp": _ulps(f"{_INTRINSIC}: __expf", 2, per_log=1.173), "Gelu": _ulps(_CUDA, 4, 4 * _ULP),
        "Log": _ulps(f"{_INTRINSIC}: __logf", 3, _FAST_LOG), "LogSoftmax": _ulps(_INTRINSIC, 3, _FAST_LOG),
        "LpNormalization": _ulps(f"{_PTX}: div.approx.f32", 2),
        "Mish": Accuracy(1.1e-5, 4 * _ULP, f"as Tanh: {_TENSORRT}"),
        "Pow": _ulps(f"{_INTRINSIC}: __powf as exp2f(y * __log2f(x)); {_BACKEND}: 3.7e-7", 4, per_log=3.173),
        "Reciprocal": _ulps(f"{_PTX}: rcp.approx.f32", 1), "ReduceL2": _ulps(f"{_PTX}: sqrt.approx.f32", 2),
        "ReduceLogSum": _ulps(_INTRINSIC, 3, _FAST_LOG), "ReduceLogSumExp": _ulps(_INTRINSIC, 3, _FAST_LOG),
        "Rsqrt": _ulps(f"{_CUDA}: rsqrtf; {_PTX}: rsqrt.approx.f32 2**-22.9", 2),
        "Selu": _ulps(_INTRINSIC, 3, 4 * _ULP),
        "Sigmoid": Accuracy(4 * _ULP, 3.8e-6, f"{_TENSORRT}: as 0.5 * tanh(0.5 * x) + 0.5"),
        "Sin": Accuracy(0.0, 2.0**-20.9, f"{_PTX}: sin.approx.f32; argument: {_TENSORRT}", argument=_ULP),
        "Sinh": _ulps(_INTRINSIC, 4, 2 * _ULP, 1.173),
        "Softmax": _ulps(f"{_INTRINSIC}: __expf and __fdividef", 4, per_log=1.173),
        "Softplus": _ulps(f"{_INTRINSIC}: __expf and __logf", 5, _FAST_LOG),
        "Softsign": _ulps(f"{_PTX}: div.approx.f32", 2),
        "Sqrt": _ulps(f"{_CUDA}: sqrtf without -prec-sqrt", 3),
        "Swish": Accuracy(4 * _ULP, 9e-6, f"x * Sigmoid(x): {_TENSORRT}"),
        "Tan": Accuracy(4 * _ULP, 2.0**-20.9, f"{_INTRINSIC}: __tanf as __sinf / __cosf"),
        "Tanh": Accuracy(1.1e-5, 2 * _ULP, _TENSORRT),
    },
    Hardware.LIGHT: {
        "Celu": _ulps(_MNN, 30, 2.3e-6), "Elu": _ulps(_MNN, 30, 2.3e-6), "Exp": _ulps(_MNN, 30),
        "Erf": _ulps(f"{_GELU}: what it means for Erf in a GELU of single operators", 1, 3.6e-4),
        "Gelu": _ulps(_GELU, 2, 4.8e-4), "Selu": _ulps(_MNN, 30, 2.2e-5), "Sigmoid": _ulps(_MNN, 30, 8.5e-7),
        "Softmax": Accuracy(5.3e-4, 0.0, f"{_MNN}: 3.0.0; 3.6.1 is within 1e-7"),
        "Softplus": _ulps(_MNN, 30, 3.9e-6), "Tanh": _ulps(_MNN, 3, 1.6e-6),
    },
    Hardware.NPU: {
        **dict.fromkeys(
            (
                "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Div", "Elu", "Exp", "Log",
                "LogSoftmax", "LpNormalization", "Mish", "Pow", "Reciprocal", "ReduceL2", "ReduceLogSum",
                "ReduceLogSumExp", "Rsqrt", "Selu", "Sigmoid", "Sin", "Sinh", "Softmax", "Softplus", "Softsign",
                "Sqrt", "Swish", "Tan", "Tanh",
            ),
            Accuracy(2.0**-10, 2.0**-11, _HALF),
        ),
        "Erf": Accuracy(2.0**-10, 3.6e-4, f"{_GELU}: what it means for Erf in a GELU of single operators"),
        "Gelu": Accuracy(2.0**-10, 4.8e-4, _GELU),
    },
}  # fmt: skip
"""Bounds of float32 results by class and operator; ``Rsqrt`` is the factor of normalizations. Operators that are not
listed are computed exactly before their result is rounded."""

NARROW_ACCURACIES: Mapping[tuple[Hardware, DType], Mapping[str, Accuracy]] = {
    (Hardware.GPU, DType.FLOAT16): {
        "Exp": Accuracy(2.0**-9.9, 0.0, f"{_PTX}: ex2.approx.ftz.f16"),
        "Gelu": Accuracy(2.0**-11, 2.0**-11, f"{_PTX}: tanh.approx.f32 in the tanh form"),
        "Sigmoid": Accuracy(2.0**-11, 2.0**-12, f"{_PTX}: tanh.approx.f32, as 0.5 * tanh(0.5 * x) + 0.5"),
        "Swish": Accuracy(2.0**-11, 2.0**-11, f"{_PTX}: tanh.approx.f32, as 0.5 * x * (tanh(0.5 * x) + 1)"),
        "Tanh": Accuracy(2.0**-11, 2.0**-10.987, f"{_PTX}: tanh.approx.f32 and tanh.approx.f16"),
    },
    (Hardware.GPU, DType.BFLOAT16): {
        "Exp": Accuracy(2.0**-7, 0.0, f"{_PTX}: ex2.approx.ftz.bf16"),
        "Gelu": Accuracy(2.0**-11, 2.0**-11, f"{_PTX}: tanh.approx.f32 in the tanh form"),
        "Sigmoid": Accuracy(2.0**-11, 2.0**-9, f"{_PTX}: tanh.approx.bf16, as 0.5 * tanh(0.5 * x) + 0.5"),
        "Swish": Accuracy(2.0**-11, 2.0**-9, f"{_PTX}: tanh.approx.bf16, as 0.5 * x * (tanh(0.5 * x) + 1)"),
        "Tanh": Accuracy(2.0**-11, 2.0**-8, f"{_PTX}: tanh.approx.f32 and tanh.approx.bf16"),
    },
}
"""Bounds where the result is stored in a narrower type, for which hardware has instructions of its own."""

CUT_RECIPROCALS: Mapping[Hardware, frozenset[str]] = {
    Hardware.NPU: frozenset({"Softmax", "Reciprocal", "Div"}),
}
"""Operators that multiply by a reciprocal which some hardware cuts off instead of rounding it, so that all of a row, or
all results, are too small: QNN 2.7.0 (HTP emulator, fp16), 32 rows of 2 to 1,024 numbers at three scales: rows of a
Softmax sum to 1 - 2.0e-3 to 1 + 2.4e-4, to 1 - 1.0e-3 on average; Reciprocal and Div are 2.9e-4 below on average, Exp
and Sqrt 1e-5."""

_LIMITS: Mapping[str, tuple[float, float]] = {
    "Cos": (-1.0, 1.0), "Erf": (-1.0, 1.0), "Exp": (0.0, np.inf), "LogSoftmax": (-np.inf, 0.0), "Sigmoid": (0.0, 1.0),
    "Sin": (-1.0, 1.0), "Softmax": (0.0, 1.0), "Softplus": (0.0, np.inf), "Tanh": (-1.0, 1.0),
    "ReduceL2": (0.0, np.inf), "Sqrt": (0.0, np.inf),
}  # fmt: skip
"""Bounds that approximations never exceed, however inaccurate they are."""
_WAVES = (0, 1, 2, 3, 5, 64, 4096)  # none: one sign everywhere; few: a polynomial's error; many: a table's


@frozen_dataclass
class FunctionError:
    """An error within the bounds of one function.

    Attributes:
        accuracy: The bounds.
        limits: Smallest and largest value the function has.
        waves: How often the error goes up and down between two powers of two; 0 for one error everywhere.
        phase: Its start, in waves.
    """

    accuracy: Accuracy
    limits: tuple[float, float]
    waves: int
    phase: float

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return exact float64 results with the error; zeros, infinities and NaN stay, so do arrays of other types."""
        if y.dtype != np.float64:
            return y
        finite = (y != 0) & np.isfinite(y)
        exact = np.where(finite, y, 1.0)
        size = np.abs(exact)
        bound = self.accuracy.relative * size
        if self.accuracy.per_log:
            log = np.abs(np.log(size))
            bound += self.accuracy.per_log * size * log
        bound = np.maximum(bound, self.accuracy.absolute)
        if self.waves:
            place = np.frexp(exact)[0] * (2.0 * self.waves) + self.phase
            bound *= 4.0 * np.abs(place - np.floor(place + 0.5)) - 1.0
        elif self.phase < 0.5:
            np.negative(bound, out=bound)
        moved = np.clip(exact + bound, *self.limits)
        return np.where(finite, moved, y)


@functools.cache
def _tanh_form() -> tuple[np.ndarray, np.ndarray]:
    """Return Erf of arguments from 0 on, increasing, and how far off it is there in the tanh form of a GELU."""
    arguments = np.linspace(0.0, 5.0, 5001)
    exact = np.array([math.erf(each) for each in arguments])
    gelus = np.sqrt(2.0) * arguments
    return exact, np.tanh(np.sqrt(2.0 / np.pi) * (gelus + 0.044715 * gelus**3)) - exact


def erf_of_tanh_form(y: np.ndarray) -> np.ndarray:
    """Return exact float64 results of Erf as they are where a GELU of single operators is computed by its tanh form.

    The form is the same everywhere that it is used: an error that is only as large would be beyond it here and there.
    """
    return y + np.sign(y) * np.interp(np.abs(y), *_tanh_form()) if y.dtype == np.float64 else y


@frozen_dataclass
class Functions:
    """The functions of one class of hardware, one seed for one set of approximations.

    Attributes:
        hardware: The class; None computes exactly.
        seed: Which approximation of each function, all of them within the bounds.
        stored: Type that results are stored in, float32 where none is narrower.
        cut_reciprocals: Whether those of `CUT_RECIPROCALS` err below everywhere, by their relative bounds.
    """

    hardware: Hardware | None = None
    seed: int = 0
    stored: DType = DType.FLOAT
    cut_reciprocals: bool = False

    def error(self, op_type: str) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return the function that adds an operator's error to its exact results; None when it computes exactly."""
        if self.hardware is None:
            return None
        if (self.hardware, op_type) == (Hardware.LIGHT, "Erf"):
            return erf_of_tanh_form
        accuracy = NARROW_ACCURACIES.get((self.hardware, self.stored), {}).get(op_type)
        accuracy = accuracy or ACCURACIES[self.hardware].get(op_type)
        if accuracy is None:
            return None
        limits = _LIMITS.get(op_type, (-np.inf, np.inf))
        if self.cut_reciprocals and op_type in CUT_RECIPROCALS.get(self.hardware, ()):
            return FunctionError(dataclasses.replace(accuracy, absolute=0.0), limits, waves=0, phase=0.0)
        rng = np.random.default_rng([self.seed, zlib.crc32(op_type.encode())])
        return FunctionError(accuracy, limits, int(rng.choice(_WAVES)), float(rng.random()))

    def argument_error(self, op_type: str) -> float:
        """Return the relative error with which an operator reads its argument; 0 where it is read exactly."""
        accuracy = ACCURACIES[self.hardware].get(op_type) if self.hardware is not None else None
        return accuracy.argument if accuracy is not None else 0.0

    def approximated(self, op_type: str, y: np.ndarray) -> np.ndarray:
        """Return exact results of an operator as this hardware computes them.

        Args:
            op_type: ONNX operator.
            y: Its exact results, float64.
        """
        error = self.error(op_type)
        return y if error is None else error(y)


EXACT_FUNCTIONS = Functions()
"""Every function exact."""
