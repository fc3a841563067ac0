"""Kernels of the engine ``float64``, called without a model."""

from typing import Any

import numpy as np

from tensortriage.engines.float64.arithmetic import EXACT, Arithmetic
from tensortriage.engines.float64.kernels import Call, kernel_for


def run(
    op_type: str, *inputs: Any, version: int = 21, outputs: int = 1, arithmetic: Arithmetic = EXACT, **attributes: Any
) -> Any:
    """Return what the kernel of an operator makes of arrays, or of what becomes one; None for an omitted input."""
    given = tuple(None if x is None else np.asarray(x) for x in inputs)
    kernel = kernel_for(op_type)
    assert kernel is not None
    return kernel(Call(op_type, version, given, attributes, outputs, arithmetic))
