"""Variances in single steps: which node makes one, and of how many numbers, however it is written."""

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from tensortriage.model.sdk import array_of, is_standard
from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeantNode

_WHOLE = 1e-6
"""Relative difference up to which the inverse of a factor in float32 is a whole number."""


def unbiased(site: MeantNode) -> Iterator[Meaning]:
    """Yield a variance that is divided by one less than the number of what it is of."""
    count = _count(site)
    if count < 2:
        return
    yield Meaning(
        f"the variance were divided by {count - 1}, one less than there are numbers (unbiased), not by {count}",
        body=f"{formal(site)} => (y) {{ m = {call(site)} f0 = Constant<value_float={count / (count - 1)}>() "
        "f = CastLike(f0, m) y = Mul(m, f) }",
        cure="give the same correction on both sides (unbiased, ddof)",
    )


def _count(site: MeantNode) -> int:
    """Return of how many numbers a node makes the variance; 0 where it makes none.

    It is a mean of squares, a sum of squares divided by their number (or multiplied by the inverse of that), or a mean
    of squares without the square of a mean.
    """
    if site.op_type == "ReduceMean":
        return _reduced(site) if _is_square(site.made_by("Mul", "Pow")) else 0
    if site.op_type == "Sub":
        mean, square = site.made_by("ReduceMean"), site.made_by("Mul", "Pow", index=1)
        of_mean = square is not None and is_standard(_maker(square, 0), "ReduceMean") and _is_square(square)
        return 0 if mean is None or not of_mean else _count(MeantNode(mean, site.opset, site.specs))
    for index in (0, 1) if site.op_type == "Mul" else (1,):
        factor, total = site.constant(index), site.made_by("ReduceSum", "ReduceSumSquare", index=1 - index)
        if factor is not None and factor.size == 1 and factor.item() > 0.0 and total is not None:
            count = factor.item() if site.op_type == "Div" else 1.0 / factor.item()
            whole = round(count)
            if total.op_type == "ReduceSum" and not _is_square(_maker(total, 0)):
                continue
            return whole if abs(count - whole) <= _WHOLE * whole else 0
    return 0


def _reduced(site: MeantNode) -> int:
    shape, made = site.shape(), site.made()
    return 0 if shape is None or made is None else int(np.prod(shape)) // max(int(np.prod(made)), 1)


def _maker(node: ir.Node, index: int) -> ir.Node | None:
    value = node.inputs[index]
    return None if value is None else value.producer()


def _is_square(node: ir.Node | None) -> bool:
    if node is None or node.op_type not in ("Mul", "Pow"):
        return False
    power = array_of(node.inputs[1]) if node.op_type == "Pow" else None
    return node.inputs[0] is node.inputs[1] or (power is not None and bool((power == 2).all()))
