"""Attention of rows without padding: tokens of all rows in sequence, and the removal and restoration of padding.

ONNX Runtime has these for GPUs; formulas are those of its ContribOperators.md.
"""

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.attention import NEVER, joined, scores_of, split_heads, thirds, upto
from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, needed, refuse_if

_WIDE = int(ir.DataType.INT64)


@body_of("PackedAttention")
def packed_attention(body: OperatorBody) -> Results:
    """Write attention with its projection; a bias of the scores, which has rows with padding, is refused."""
    x, weight = body.inputs(2)
    refuse_if(body.input(5) is not None)
    projected = body.plus(body.op("MatMul", x, weight), 2)
    parts = thirds(body, projected, body.known_size(weight, 1))
    return (_attended(body, parts, needed(body.input(4))),)


@body_of("PackedMultiHeadAttention")
def packed_multi_head_attention(body: OperatorBody) -> Results:
    """Write attention on projected query, key and value; a bias of the scores is refused."""
    query, key, value = needed(body.input(0)), body.input(1), body.input(2)
    refuse_if(body.input(6) is not None)
    if key is None or value is None:  # [tokens, heads, 3, size]
        apart = [body.squeeze(body.part(query, k, k + 1, 2), 2) for k in range(3)]
        parts = [body.op("Reshape", part, body.integers(0, -1)) for part in apart]
    else:
        parts = [query, key, value]
    if (bias := body.input(3)) is not None:
        sizes = [body.size(part, 1) for part in parts]
        ends = [sizes[0], body.op("Add", *sizes[:2]), body.op("Add", body.op("Add", *sizes[:2]), sizes[2])]
        starts = [body.integers(0), *ends[:2]]
        parts = [
            body.op("Add", part, body.part(bias, start, end, 0))
            for part, start, end in zip(parts, starts, ends, strict=True)
        ]
    return (_attended(body, parts, needed(body.input(5))),)


def _attended(body: OperatorBody, parts: list[ir.Value], ends: ir.Value) -> ir.Value:
    """Write attention of ``[tokens, hidden]``, in which a token sees those of its own row only."""
    heads = int(body.attribute("num_heads", 0))
    query, keys, values = (split_heads(body, body.unsqueeze(part, 0), heads, rank=3) for part in parts)
    scores = scores_of(body, query, keys)
    places = body.unsqueeze(upto(body, body.size(parts[0], 0)), 1)
    bounds = body.unsqueeze(body.part(body.op("Cast", ends, to=_WIDE), 1, 2**31, 0), 0)
    before = body.op("Cast", body.op("Not", body.op("Less", places, bounds)), to=_WIDE)
    rows = body.along("ReduceSum", before, [1], since=13)
    other = body.op("Not", body.op("Equal", rows, body.op("Transpose", rows, perm=[1, 0])))
    scores = body.op("Add", scores, body.op("Where", other, body.constant(NEVER), body.constant(0)))
    mixed = body.op("MatMul", body.op("Softmax", scores, axis=-1), values)
    return body.squeeze(joined(body, mixed), 0)


@body_of("RemovePadding")
def remove_padding(body: OperatorBody) -> Results:
    """Write the tokens that count behind each other, where they were, where each row ends, and the longest row."""
    x, counts = body.inputs(2)
    rows, length = body.size(x, 0), body.size(x, 1)
    wide = body.op("Cast", counts, to=_WIDE)
    inside = body.op("Less", body.unsqueeze(upto(body, length), 0), body.unsqueeze(wide, 1))
    flat = body.op("Reshape", inside, body.integers(-1))
    kept, left = (
        body.squeeze(body.op("Transpose", body.op("NonZero", of), perm=[1, 0]), 1)
        for of in (body.op("Cast", flat, to=_WIDE), body.op("Cast", body.op("Not", flat), to=_WIDE))
    )
    tokens = body.op("Reshape", x, body.op("Concat", body.integers(-1), body.size(x, 2), axis=0))
    narrow = int(ir.DataType.INT32)
    where = body.op("Reshape", body.op("Concat", kept, left, axis=0), body.op("Concat", rows, length, axis=0))
    ends = body.op("CumSum", wide, body.constant(0, np.int64))
    longest = body.along("ReduceMax", wide, [0], since=18)
    return (
        body.op("Gather", tokens, kept),
        body.op("Cast", where, to=narrow),
        body.op("Cast", body.op("Concat", body.integers(0), ends, axis=0), to=narrow),
        body.op("Cast", longest, to=narrow),
    )


@body_of("RestorePadding")
def restore_padding(body: OperatorBody) -> Results:
    """Write tokens at their places, and zeros at all others."""
    x, where = body.inputs(2)
    count, width = body.size(x, 0), body.size(x, 1)
    flat = body.op("Cast", body.op("Reshape", where, body.integers(-1)), to=_WIDE)
    shape = body.op("Concat", body.size(flat, 0), width, axis=0)
    empty = body.op("Expand", body.op("CastLike", body.constant(0), x) if body.opset >= 15 else body.constant(0), shape)
    whole = body.op("ScatterND", empty, body.unsqueeze(body.part(flat, 0, count, 0), 1), x)
    return (body.op("Reshape", whole, body.op("Concat", body.op("Shape", where), width, axis=0)),)
