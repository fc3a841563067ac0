"""Layers of diffusion models as ONNX Runtime fuses them for GPUs: normalized groups, sums with biases, halves as gates.

Formulas are those of ONNX Runtime's ContribOperators.md.
"""

import onnx_ir as ir

from tensortriage.model.operator_bodies.convolutions import to_first, to_last
from tensortriage.model.operator_bodies.fused_layers import gelu
from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, refuse_if


@body_of("BiasAdd")
def sum_of_three(body: OperatorBody) -> Results:
    """Write a sum with a bias and a residual."""
    x, bias, skip = body.inputs(3)
    return (body.op("Add", body.op("Add", x, bias), skip),)


@body_of("BiasSplitGelu")
def gated_half(body: OperatorBody) -> Results:
    """Write the first half of a sum times Gelu of its other half."""
    x, bias = body.inputs(2)
    whole = body.op("Add", x, bias)
    middle = body.op("Div", body.size(whole, 2), body.integers(2))
    first, other = body.part(whole, 0, middle, 2), body.part(whole, middle, 2**31, 2)
    return (body.op("Mul", first, gelu(body, other)),)


@body_of("GroupNorm")
def group_norm(body: OperatorBody) -> Results:
    """Write groups of channels normalized, and an activation if the node asks for it."""
    x, scale, offset = body.inputs(3)
    return (_normalized(body, x, scale, offset),)


@body_of("SkipGroupNorm")
def skip_group_norm(body: OperatorBody) -> Results:
    """Write the same of a sum with a residual and a bias, and the sum."""
    x, scale, offset, skip = body.inputs(4)
    if body.rank(skip, 4) == 2:
        skip = body.unsqueeze(skip, 1, 2)
    total = body.plus(body.op("Add", x, skip), 4)
    return (_normalized(body, total, scale, offset), total)


def _normalized(body: OperatorBody, x: ir.Value, scale: ir.Value, offset: ir.Value) -> ir.Value:
    """Write ``(x - mean) / sqrt(variance + epsilon) * scale + offset`` over a group of channels, and SiLU."""
    groups, last = int(body.attribute("groups", 0)), bool(body.attribute("channels_last", 1))
    refuse_if(groups < 1)
    image = to_first(body, x) if last else x
    apart = body.op("Reshape", image, body.integers(0, groups, -1))
    centred = body.op("Sub", apart, body.mean(apart))
    spread = body.op("Add", body.mean(body.op("Mul", centred, centred)), body.constant(body.attribute("epsilon", 1e-5)))
    normal = body.op("Reshape", body.op("Div", centred, body.op("Sqrt", spread)), body.op("Shape", image))
    y = body.op("Mul", normal, body.unsqueeze(scale, 1, 2))
    y = body.op("Add", y, body.unsqueeze(offset, 1, 2))
    if body.attribute("activation", 0):
        y = body.op("Mul", y, body.op("Sigmoid", y))
    return to_last(body, y) if last else y
