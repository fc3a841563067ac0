"""Attention as ONNX Runtime fuses it: heads split off, keys of the past put in front, masks added to the scores."""

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, needed, refuse_if

NEVER = float(np.finfo(np.float32).min)
"""Summand for the score of a key that comes later than the query."""


@body_of("MultiHeadAttention")
def multi_head_attention(body: OperatorBody) -> Results:
    """Write attention on projected query, key and value, separate or packed into one tensor.

    Shared buffers of past and present, beams, and scores as a result are refused.
    """
    refuse_if(any(body.input(index) is not None for index in (8, 9)) or body.wants(3))
    heads = int(body.attribute("num_heads", 0))
    given = _apart(body)
    size = body.size(given[0], 2)
    rows = [_with_bias(body, part, index, size) for index, part in enumerate(given)]
    split = [split_heads(body, part, heads) for part in rows]
    keys, values = (_after(body, body.input(6 + index), split[1 + index]) for index in range(2))
    scores = _masked(body, _scores_of(body, split[0], keys), body.input(4))
    result = _result(body, body.plus(scores, 5), values, keys)
    return (result, keys if body.wants(1) else None, values if body.wants(2) else None)


@body_of("Attention")
def attention(body: OperatorBody) -> Results:
    """Write attention with its projection; rotary positions and shared buffers of past and present are refused."""
    x, weight = body.inputs(2)
    refuse_if(bool(body.attribute("do_rotary", 0)) or body.input(6) is not None)
    projected = body.plus(body.op("MatMul", x, weight), 2)
    return projected_attention(body, projected, body.known_size(weight, 1), mask=3, past=4, bias=5)


def projected_attention(
    body: OperatorBody, projected: ir.Value, width: int, *, mask: int, past: int, bias: int | None
) -> Results:
    """Write attention of query, key and value that lie behind each other.

    Args:
        body: The function body that is written.
        projected: ``[batch, length, width]``.
        width: Width of all three.
        mask: The input that is the mask.
        past: The input that is keys and values of the past.
        bias: The input that is added to the scores; None for an operator without.
    """
    heads = int(body.attribute("num_heads", 0))
    split = [split_heads(body, part, heads) for part in _thirds(body, projected, width)]
    before = body.input(past)
    pasts = [None if before is None else body.squeeze(body.part(before, k, k + 1, 0), 0) for k in range(2)]
    keys, values = (_after(body, pasts[k], split[1 + k]) for k in range(2))
    scores = _masked(body, _scores_of(body, split[0], keys), body.input(mask))
    result = _result(body, scores if bias is None else body.plus(scores, bias), values, keys)
    present = None
    if body.wants(1):
        present = body.op("Concat", body.unsqueeze(keys, 0), body.unsqueeze(values, 0), axis=0)
    return (result, present)


def _thirds(body: OperatorBody, projected: ir.Value, width: int) -> list[ir.Value]:
    """Return query, key and value from the last axis; the node may give their sizes."""
    sizes = list(body.attribute("qkv_hidden_sizes", None) or [width // 3] * 3)
    ends = [sum(sizes[: k + 1]) for k in range(3)]
    return [body.part(projected, end - size, end, -1) for size, end in zip(sizes, ends, strict=True)]


def _apart(body: OperatorBody) -> list[ir.Value]:
    """Return query, key and value; packed ones have five axes, the fourth of which separates them."""
    query, key, value = needed(body.input(0)), body.input(1), body.input(2)
    if key is None:
        return [_of_packed(body, query, k) for k in range(3)]
    if value is None:
        return [query, *(_of_packed(body, key, k) for k in range(2))]
    return [query, key, value]


def _of_packed(body: OperatorBody, packed: ir.Value, index: int) -> ir.Value:
    one = body.squeeze(body.part(packed, index, index + 1, 3), 3)
    return body.op("Reshape", one, body.integers(0, 0, -1))


@body_of("RotaryEmbedding")
def rotary_embedding(body: OperatorBody) -> Results:
    """Write rotary positions on ``[batch, length, hidden]`` or ``[batch, heads, length, size]``.

    Pairs are ``(i, i + size / 2)``, or neighbours where interleaved (Su et al., 2021). Positions may be one offset; the
    last numbers of a head may stay as they are. Packed batches are refused.
    """
    x, positions, cosines, sines = body.inputs(4)
    refuse_if(bool(body.attribute("is_packed_batching", 0)))
    size = 2 * body.known_size(cosines, 1)
    rank, width = body.rank(x, 3), int(body.attribute("rotary_embedding_dim", 0))
    count = int(body.attribute("num_heads", 0))
    refuse_if(rank != 4 and bool(width) and not count)
    heads = x if rank == 4 else split_heads(body, x, count) if width else _by_size(body, x, size)
    if len(body.shape_of(positions)) == 1:
        positions = body.unsqueeze(body.op("Add", _upto(body, body.size(heads, 2)), positions), 0)
    turned = rotated(
        body,
        body.part(heads, 0, size, 3) if width else heads,
        body.unsqueeze(body.op("Gather", cosines, positions), 1),
        body.unsqueeze(body.op("Gather", sines, positions), 1),
        size=size,
        interleaved=bool(body.attribute("interleaved", 0)),
    )
    if width:
        turned = body.op("Concat", turned, body.part(heads, size, 2**31, 3), axis=3)
    return (turned if rank == 4 else joined(body, turned),)


def rotated(
    body: OperatorBody, x: ir.Value, cosine: ir.Value, sine: ir.Value, *, size: int, interleaved: bool
) -> ir.Value:
    """Write the rotation of pairs of numbers.

    Args:
        body: The function body that is written.
        x: ``[batch, heads, length, size]``.
        cosine: Cosine of each position and pair, ``[batch, 1, length, size / 2]``.
        sine: Likewise.
        size: Size of a head.
        interleaved: Whether pairs are neighbours.
    """
    if interleaved:
        apart = body.op("Reshape", x, body.integers(0, 0, 0, size // 2, 2))  # exact: only a view
        first, other = (body.squeeze(body.part(apart, k, k + 1, 4), 4) for k in range(2))
    else:
        first, other = body.part(x, 0, size // 2, 3), body.part(x, size // 2, size, 3)
    real = body.op("Sub", body.op("Mul", first, cosine), body.op("Mul", other, sine))
    imaginary = body.op("Add", body.op("Mul", first, sine), body.op("Mul", other, cosine))
    if not interleaved:
        return body.op("Concat", real, imaginary, axis=3)
    pairs = body.op("Concat", body.unsqueeze(real, 4), body.unsqueeze(imaginary, 4), axis=4)
    return body.op("Reshape", pairs, body.integers(0, 0, 0, -1))


def joined(body: OperatorBody, x: ir.Value) -> ir.Value:
    """Write ``[batch, heads, length, size]`` as ``[batch, length, heads * size]``."""
    return body.op("Reshape", body.op("Transpose", x, perm=[0, 2, 1, 3]), body.integers(0, 0, -1))


def _with_bias(body: OperatorBody, part: ir.Value, index: int, size: ir.Value) -> ir.Value:
    """Write the sum with a third of the bias; that of the values may have another size than the other two."""
    bias = body.input(3)
    if bias is None:
        return part
    start = body.op("Mul", size, body.integers(index))
    return body.op("Add", part, body.part(bias, start, body.op("Add", start, size) if index < 2 else 2**31, 0))


def split_heads(body: OperatorBody, x: ir.Value, heads: int) -> ir.Value:
    """Write ``[batch, length, hidden]`` as ``[batch, heads, length, size]``; four axes stay."""
    if body.rank(x, 3) == 4:
        return x
    return body.op("Transpose", body.op("Reshape", x, body.integers(0, 0, heads, -1)), perm=[0, 2, 1, 3])


def _by_size(body: OperatorBody, x: ir.Value, size: int) -> ir.Value:
    return body.op("Transpose", body.op("Reshape", x, body.integers(0, 0, -1, size)), perm=[0, 2, 1, 3])


def _after(body: OperatorBody, past: ir.Value | None, now: ir.Value) -> ir.Value:
    return now if past is None else body.op("Concat", past, now, axis=2)


def _scores_of(body: OperatorBody, query: ir.Value, keys: ir.Value) -> ir.Value:
    """Write the scaled products of queries and keys."""
    product = body.op("MatMul", query, body.op("Transpose", keys, perm=[0, 1, 3, 2]))
    if scale := body.attribute("scale", 0.0):
        return body.op("Mul", product, body.constant(scale))
    size = body.op("Cast", body.size(query, 3), to=int(ir.DataType.FLOAT))
    return body.op("Div", product, body.op("Sqrt", size))


def _masked(body: OperatorBody, scores: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Write the penalty that a mask subtracts from the scores.

    It is of ones and zeros, ``[batch, keys]`` or ``[batch, queries, keys]``; or holds for each row the number of keys
    that count, perhaps followed by the first one that does, ``[batch]`` or ``[2 * batch]``.
    """
    if mask is None:
        return scores
    rank = len(body.shape_of(mask))
    refuse_if(rank not in (1, 2, 3))
    if rank == 1:
        mask, rank = _counted(body, scores, mask), 2
    away = body.op("Sub", body.constant(1), body.op("Cast", mask, to=int(ir.DataType.FLOAT)))
    off = body.op("Mul", away, body.constant(body.attribute("mask_filter_value", -10000.0)))
    return body.op("Add", scores, body.unsqueeze(off, *((1, 2) if rank == 2 else (1,))))


def _counted(body: OperatorBody, scores: ir.Value, mask: ir.Value) -> ir.Value:
    """Return a mask ``[batch, keys]`` from bounds.

    The bounds are decided where it runs: a missing one starts at the first key. Where the bounds of packed rows follow,
    ``[3 * batch + 2]``, only the counts are looked at, which come first.
    """
    wide = int(ir.DataType.INT64)
    bounds = body.op("Cast", mask, to=wide)
    rows, count = body.size(scores, 0), body.size(mask, 0)
    places = body.unsqueeze(_upto(body, body.size(scores, 3)), 0)
    ends = body.unsqueeze(body.part(bounds, 0, rows, 0), 1)
    twice = body.op("Equal", count, body.op("Add", rows, rows))
    first = body.op("Where", twice, rows, body.integers(0))
    starts = body.op("Mul", body.part(bounds, first, body.op("Add", first, rows), 0), body.op("Cast", twice, to=wide))
    inside = body.op(
        "And", body.op("Less", places, ends), body.op("Not", body.op("Less", places, body.unsqueeze(starts, 1)))
    )
    return body.op("Cast", inside, to=int(ir.DataType.INT32))


def _upto(body: OperatorBody, count: ir.Value) -> ir.Value:
    """Return 0, 1, ... below a number, which is a vector of one element."""
    zero, one = (body.constant(number, np.int64) for number in (0, 1))
    return body.op("Range", zero, body.squeeze(count, 0), one)


def _result(body: OperatorBody, scores: ir.Value, values: ir.Value, keys: ir.Value) -> ir.Value:
    if body.attribute("unidirectional", 0):
        scores = body.op("Add", scores, _later(body, scores, keys))
    weights = body.op("Softmax", scores, axis=-1)
    return joined(body, body.op("MatMul", weights, needed(values)))


def _later(body: OperatorBody, scores: ir.Value, keys: ir.Value) -> ir.Value:
    """Write a matrix ``[queries, keys]`` that is zero where the key is no later than the query, which is last."""
    count, length = body.size(keys, 2), body.size(scores, 2)
    zero, one = (body.constant(number, np.int64) for number in (0, 1))
    columns = body.op("Range", zero, body.squeeze(count, 0), one)
    rows = body.op("Range", body.squeeze(body.op("Sub", count, length), 0), body.squeeze(count, 0), one)
    later = body.op("Greater", body.unsqueeze(columns, 0), body.unsqueeze(rows, 1))
    return body.op("Where", later, body.constant(NEVER), body.constant(0))
