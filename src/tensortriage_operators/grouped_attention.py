"""Attention of several query heads to one key, with the cache of a decoder: the form of exported language models.

Rows of a batch may be of different length, so that new keys go to another place of the cache in each. The cache is
written as ONNX Runtime's CPU kernel does where past and present are two buffers: zeros behind the last key.
"""

import math

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, needed, refuse_if
from tensortriage_operators.attention import NEVER, joined, rotated, split_heads


@body_of("GroupQueryAttention")
def group_query_attention(body: OperatorBody) -> Results:
    """Write grouped attention, rotary positions and cache; smooth softmax, sinks and quantized caches are refused."""
    refuse_if(any(body.input(index) is not None for index in range(11, 16)) or body.wants(3))
    refuse_if(bool(body.attribute("smooth_softmax", 0)) or body.attribute("k_quant_type", "NONE") != "NONE")
    heads, groups = int(body.attribute("num_heads", 0)), int(body.attribute("kv_num_heads", 0))
    past = needed(body.input(3))
    size = body.known_size(past, 3)
    query, key, value = _projected(body, heads, groups, size)
    lengths = _Lengths(body, query, past)
    if body.attribute("do_rotary", 0):
        query, key = (_turned(body, part, lengths.places, size) for part in (query, key))
    keys, values = (_cache(body, needed(body.input(3 + k)), new, lengths) for k, new in enumerate((key, value)))
    shared = heads // groups
    apart = body.op("Reshape", query, body.integers(0, groups, shared, -1, size))
    scores = body.op("MatMul", apart, body.unsqueeze(body.op("Transpose", keys, perm=[0, 1, 3, 2]), 2))
    scores = body.op("Mul", scores, body.constant(body.attribute("scale", 0.0) or 1 / math.sqrt(size)))
    if cap := body.attribute("softcap", 0.0):
        scores = body.op("Mul", body.op("Tanh", body.op("Div", scores, body.constant(cap))), body.constant(cap))
    if (bias := body.input(10)) is not None:
        split = body.op("Reshape", bias, body.integers(0, groups, shared, 0, -1)) if _has_heads(body, bias) else None
        scores = body.op("Add", scores, body.unsqueeze(bias, 2) if split is None else split)
    scores = body.op("Add", scores, lengths.mask())
    result = body.op("MatMul", body.op("Softmax", scores, axis=-1), body.unsqueeze(values, 2))
    whole = joined(body, body.op("Reshape", result, body.integers(0, heads, -1, size)))
    return (whole, keys if body.wants(1) else None, values if body.wants(2) else None)


class _Lengths:
    """Places of the new keys of each row, and the range that each query may attend to; int64 values.

    Attributes:
        past: Keys before the new ones, ``[batch, 1]``: none where all keys there are new ones.
        count: New keys, ``[1]``.
        total: Keys of the cache that comes out, ``[1]``: no fewer than went in.
        places: Position of each new key, ``[batch, count]``.
    """

    def __init__(self, body: OperatorBody, query: ir.Value, past: ir.Value) -> None:
        self._body = body
        last, longest = (needed(body.input(index)) for index in (5, 6))
        wide = int(ir.DataType.INT64)
        self.count = body.size(query, 2)
        ends = body.op("Add", body.op("Cast", last, to=wide), body.integers(1))
        ends = body.op("Reshape", ends, body.integers(-1, 1))
        longest = body.op("Reshape", body.op("Cast", longest, to=wide), body.integers(1))
        prompt = body.op("Equal", self.count, longest)
        self.past = body.op("Where", prompt, body.integers(0), body.op("Sub", ends, self.count))
        self.total = body.op("Max", body.size(past, 2), longest)
        self.places = body.op("Add", self.past, self._up_to(self.count))

    def _up_to(self, count: ir.Value) -> ir.Value:
        body = self._body
        zero, one = (body.constant(number, np.int64) for number in (0, 1))
        return body.op("Range", zero, body.squeeze(count, 0), one)

    def source(self, past: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return where each key of the cache comes from in past and new keys, and whether there is one."""
        body = self._body
        slots = body.unsqueeze(self._up_to(self.total), 0)
        behind = body.op("Add", body.op("Sub", slots, self.past), body.size(past, 2))
        most = body.op("Sub", body.op("Add", body.size(past, 2), self.count), body.integers(1))
        place = body.op("Where", body.op("Less", slots, self.past), slots, behind)
        there = body.op("Less", slots, body.op("Add", self.past, self.count))
        return body.op("Min", place, most), there

    def mask(self) -> ir.Value:
        """Return zero for each query and key that it may look at, ``[batch, 1, 1, queries, keys]``."""
        body = self._body
        slots = body.unsqueeze(self._up_to(self.total), 0, 1)
        places = body.unsqueeze(self.places, 2)
        away = body.op("Greater", slots, places)
        window = int(body.attribute("local_window_size", -1))
        if window > 0:
            oldest = body.op("Sub", places, body.integers(window))
            away = body.op("Or", away, body.op("Not", body.op("Greater", slots, oldest)))
        return body.unsqueeze(body.op("Where", away, body.constant(NEVER), body.constant(0)), 1, 2)


def _projected(body: OperatorBody, heads: int, groups: int, size: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return query, key and value as ``[batch, heads, length, size]``; they may be packed into one tensor."""
    query, key, value = body.input(0), body.input(1), body.input(2)
    if key is None:
        bounds = [0, heads * size, (heads + groups) * size, (heads + 2 * groups) * size]
        query, key, value = (body.part(needed(query), bounds[k], bounds[k + 1], -1) for k in range(3))
    counts = (heads, groups, groups)
    first, second, third = (split_heads(body, needed(v), n) for v, n in zip((query, key, value), counts, strict=True))
    return first, second, third


def _turned(body: OperatorBody, x: ir.Value, places: ir.Value, size: int) -> ir.Value:
    """Return keys or queries turned by their positions; the last numbers of a head may stay as they are."""
    cosines, sines = needed(body.input(7)), needed(body.input(8))
    given = body.input(9)
    at = places if given is None else given
    turned = 2 * body.known_size(cosines, 1)
    head = x if turned == size else body.part(x, 0, turned, 3)
    cosine, sine = (body.unsqueeze(body.op("Gather", table, at), 1) for table in (cosines, sines))
    new = rotated(body, head, cosine, sine, size=turned, interleaved=bool(body.attribute("rotary_interleaved", 0)))
    return new if turned == size else body.op("Concat", new, body.part(x, turned, size, 3), axis=3)


def _cache(body: OperatorBody, past: ir.Value, new: ir.Value, lengths: _Lengths) -> ir.Value:
    """Return the keys or values of the past with the new ones behind the last of each row."""
    place, there = lengths.source(past)
    both = body.op("Transpose", body.op("Concat", past, new, axis=2), perm=[0, 2, 1, 3])
    picked = body.op("GatherND", both, body.unsqueeze(place, 2), batch_dims=1)
    kept = body.op("Where", body.unsqueeze(there, 2, 3), picked, body.constant(0))
    return body.op("Transpose", kept, perm=[0, 2, 1, 3])


def _has_heads(body: OperatorBody, bias: ir.Value) -> bool:
    return body.shape_of(bias)[1] != 1
