"""Operators that ONNX Runtime has in its own domain, and ONNX in its standard by now."""

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, refuse_if


@body_of("Range", "GatherND", "Pad", "Trilu")
def of_the_same_name(body: OperatorBody) -> Results:
    """Write the standard operator of the same name, for an early form of it."""
    op = body.node.op_type
    refuse_if(body.opset < {"Pad": 11, "Trilu": 14, "GatherND": 11, "Range": 11}[op])
    inputs = list(body.node.inputs)
    if op == "Range" and len(inputs) == 2:
        inputs.append(body.op("CastLike", body.constant(1, np.int64), inputs[0]) if body.opset >= 15 else None)
        refuse_if(inputs[2] is None)
    return (body.op(op, *inputs, **body.given("mode", "upper")),)


@body_of("BiasDropout")
def sum_without_dropout(body: OperatorBody) -> Results:
    """Write a sum with a bias and a residual: an inference drops nothing."""
    x, bias = body.inputs(2)
    refuse_if(body.wants(1) or body.input(4) is not None)
    return (body.plus(body.op("Add", x, bias), 2),)


@body_of("RelativePositionBias")
def relative_position_bias(body: OperatorBody) -> Results:
    """Write T5's bias of each head and distance: near ones have a row of the table each, far ones share one."""
    table, queries, keys = body.inputs(3)
    buckets = body.known_size(table, 0)
    both = bool(body.attribute("is_bidirectional", 0))
    farthest = int(body.attribute("max_distance", 128))
    wide = int(ir.DataType.INT64)
    rows, columns = (_counted(body, value) for value in (queries, keys))
    distance = body.op("Sub", body.unsqueeze(columns, 0), body.unsqueeze(rows, 1))
    zero = body.constant(0, np.int64)
    start = zero
    if both:
        buckets //= 2
        start = body.op(
            "Mul", body.op("Cast", body.op("Greater", distance, zero), to=wide), body.constant(buckets, np.int64)
        )
        distance = body.op("Abs", distance)
    else:
        distance = body.op("Neg", body.op("Min", distance, zero))
    near = buckets // 2
    real = body.op("Cast", body.op("Max", distance, body.constant(1, np.int64)), to=int(ir.DataType.FLOAT))
    log = body.op("Log", body.op("Div", real, body.constant(near)))
    far = body.op("Mul", log, body.constant((buckets - near) / np.log(farthest / near)))
    far = body.op("Add", body.op("Cast", far, to=wide), body.constant(near, np.int64))
    far = body.op("Min", far, body.constant(buckets - 1, np.int64))
    place = body.op("Where", body.op("Less", distance, body.constant(near, np.int64)), distance, far)
    bias = body.op("Gather", table, body.op("Add", place, start))
    return (body.unsqueeze(body.op("Transpose", bias, perm=[2, 0, 1]), 0),)


def _counted(body: OperatorBody, count: ir.Value) -> ir.Value:
    zero, one = (body.constant(number, np.int64) for number in (0, 1))
    whole = body.op("Reshape", body.op("Cast", count, to=int(ir.DataType.INT64)), body.constant([], np.int64))
    return body.op("Range", zero, whole, one)
