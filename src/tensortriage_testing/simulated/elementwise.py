"""Element-wise operators in float64, so that a chain of them can be rounded once; and QuantizeLinear's ties."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage_testing.simulated.approximations import EXACT, Function

FUNCTIONS: Mapping[str, Function] = {
    "Neg": np.negative, "Abs": np.abs, "Relu": lambda x: np.maximum(x, 0.0), "Floor": np.floor, "Ceil": np.ceil,
    **{word: EXACT[word] for word in ("Tanh", "Exp", "Log", "Sqrt", "Sigmoid", "Erf", "Reciprocal", "Sin", "Cos")},
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
}  # fmt: skip
CHAINED = frozenset(FUNCTIONS)
"""Operators that accelerators fuse into chains."""


def quantize(inputs: Sequence[np.ndarray | None], attributes: Mapping[str, object]) -> np.ndarray:
    """ONNX QuantizeLinear to int8 or uint8 with ties away from zero, as many integer units round."""
    data, scale = (np.asarray(each) for each in inputs[:2])
    zero = inputs[2] if len(inputs) > 2 and inputs[2] is not None else np.zeros((), np.uint8)
    if scale.ndim == 1 and scale.size > 1:
        shape = [1] * data.ndim
        shape[int(str(attributes.get("axis", 1)))] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape) if zero.ndim else zero
    elif scale.ndim == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    steps = (data / scale).astype(np.float64)
    nearest = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    limits = np.iinfo(zero.dtype)
    codes: np.ndarray = np.clip(nearest + zero, limits.min, limits.max).astype(zero.dtype)
    return codes
