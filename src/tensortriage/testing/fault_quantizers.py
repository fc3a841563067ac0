"""Planted faults of quantizers: the definition of QuantizeLinear or DequantizeLinear misread in one place."""

from collections.abc import Callable

import numpy as np

from tensortriage.engines.reference.kernels import Call, kernel_for
from tensortriage.errors import UsageError
from tensortriage.testing.fault_numbers import Site


def no_zero_point(site: Site) -> np.ndarray:
    """Leave the zero point out."""
    return _computed(site, 2, lambda zero: np.zeros_like(zero))


def first_scale(site: Site) -> np.ndarray:
    """Take the scale of the first channel for all."""
    return _computed(site, 1, lambda scale: np.full_like(scale, scale.flat[0]))


def _computed(site: Site, position: int, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute the operator with one operand changed."""
    kernel = kernel_for(site.op_type)
    operand = site.operands[position] if position < len(site.operands) else None
    if site.op_type not in ("QuantizeLinear", "DequantizeLinear") or operand is None or kernel is None:
        raise UsageError(
            f"a fault of a quantizer cannot be planted in {site.op_type} without operand {position}",
            slug="fault-unsupported",
            cure="choose another node or kind",
        )
    changed = change(operand)
    operands = tuple(changed if number == position else x for number, x in enumerate(site.operands))
    return np.asarray(kernel(Call(site.op_type, 21, operands, dict(site.attributes))))
