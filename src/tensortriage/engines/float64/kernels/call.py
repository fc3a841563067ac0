"""The calling convention of kernels, and the table that finds them."""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tensortriage.engines.float64.arithmetic import EXACT, Arithmetic
from tensortriage.frozen_dataclass import frozen_dataclass

Output: TypeAlias = Any
"""An array, a tuple of arrays, or a list of arrays for a sequence; numpy's stubs say Any too often to be closer."""
Kernel = Callable[["Call"], Output]

_MODULES = (
    "elementwise", "casting", "shaping", "indexing", "reductions", "linear", "sliding_windows.convolution",
    "sliding_windows.pooling", "normalization", "resizing", "sampling", "recurrent", "quantization",
)  # fmt: skip
_TABLE: dict[str, Kernel] = {}
ELEMENTWISE = frozenset(
    {
        "Abs", "Add", "BatchNormalization", "Celu", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid",
        "HardSwish", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mish", "Mul", "Neg", "Pow", "PRelu", "Reciprocal",
        "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tanh", "ThresholdedRelu",
        "Where",
    }
)  # fmt: skip
"""Operators that engines compute in the loop that makes their operand, without storing it in between."""


@frozen_dataclass
class Call:
    """One execution of an operator.

    Attributes:
        op_type: Operator name.
        version: Operator set version of the model.
        inputs: Arrays (lists of arrays for sequences); None for omitted optional inputs.
        attributes: Attributes given by the node: numbers, strings, tuples of them, arrays; defaults are not filled in.
        outputs: Number of outputs wanted.
        arithmetic: How sums add up and how accurate functions are.
    """

    op_type: str
    version: int
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1
    arithmetic: Arithmetic = EXACT

    def __getitem__(self, index: int) -> Any:
        """Return an input; None when it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def integers(self, index: int, name: str) -> list[int] | None:
        """Return whole numbers that newer operator sets take as an input and older ones as an attribute, or None."""
        given = self[index] if self[index] is not None else self.get(name)
        return None if given is None else [int(number) for number in np.ravel(given)]


def kernel(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function as the kernel of operators."""

    def register(function: Kernel) -> Kernel:
        _TABLE.update(dict.fromkeys(names, function))
        return function

    return register


def kernel_for(op_type: str) -> Kernel | None:
    """Return the kernel of a standard operator, or None."""
    return _loaded().get(op_type)


def kernel_names() -> frozenset[str]:
    """Return the operators that have a kernel."""
    return frozenset(_loaded())


@functools.cache
def _loaded() -> Mapping[str, Kernel]:
    for module in _MODULES:
        importlib.import_module(f"tensortriage.engines.float64.kernels.{module}")
    return _TABLE
