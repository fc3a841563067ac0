"""Whole layers on quantized numbers, as ONNX Runtime's quantizers write them: attention, embeddings, LSTM, images.

Products of integers times their scales are products of the real numbers that they stand for. What a kernel rounds while
it runs (the hidden state of an LSTM) is not part of what the types say: bodies of the coarser computation have it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import (
    CONVOLUTION,
    INTEGERS,
    PAIRS,
    OperatorBody,
    Results,
    array_of,
    body_of,
    needed,
    refuse_if,
)
from tensortriage_operators.attention import projected_attention
from tensortriage_operators.convolutions import to_first, to_last
from tensortriage_operators.fused_layers import embedded
from tensortriage_operators.products import numbers_in, stored_array
from tensortriage_operators.quantized import PER_AXIS, integer_product, real, stored

_FLOAT = int(ir.DataType.FLOAT)


def real_numbers(
    body: OperatorBody, numbers: ir.Value, scale: ir.Value, zero: ir.Value | None, *, axes: tuple[int, ...] = ()
) -> ir.Value:
    """Write ``(numbers - zero) * scale``, which standard operators of old sets have for one scale only.

    Args:
        body: The function body that is written.
        numbers: The integers.
        scale: One number, or as many as an axis has.
        zero: Likewise, or none.
        axes: Positions of axes of size 1 that are inserted into scales.
    """
    wide = body.op("DequantizeLinear", numbers, body.constant(1))
    if zero is not None:
        offset = body.op("Cast", zero, to=_FLOAT)
        wide = body.op("Sub", wide, _placed(body, offset, zero, axes))
    return body.op("Mul", wide, _placed(body, scale, scale, axes))


def _placed(body: OperatorBody, value: ir.Value, known: ir.Value, axes: tuple[int, ...]) -> ir.Value:
    shape = body.shape_of(known)
    if not shape or shape == (1,):
        return body.op("Reshape", value, body.constant([], np.int64)) if shape else value
    return body.unsqueeze(value, *axes) if axes else value


@body_of("QAttention")
def quantized_attention(body: OperatorBody) -> Results:
    """Write attention whose input and projection are quantized; rotary positions and shared buffers are refused."""
    x, weight, _, step, scale = body.inputs(5)
    operands = real_numbers(body, x, step, body.input(6)), real_numbers(body, weight, scale, body.input(7))
    return _attending(body, body.op("MatMul", *operands))


@body_of(f"{INTEGERS}QAttention")
def attention_on_integers(body: OperatorBody) -> Results:
    """Write the same with its projection as a product of integers."""
    x, weight, _, *scales = body.inputs(5)
    return _attending(body, integer_product(body, (x, weight), (scales[0], scales[1]), (body.input(6), body.input(7))))


def _attending(body: OperatorBody, product: ir.Value) -> Results:
    _, weight, bias = body.inputs(3)
    refuse_if(bool(body.attribute("do_rotary", 0) or body.attribute("past_present_share_buffer", 0)))
    projected = body.op("Add", product, bias)
    return projected_attention(body, projected, body.known_size(weight, 1), mask=5, past=8, bias=None)


@body_of("QEmbedLayerNormalization")
def quantized_embedding(body: OperatorBody) -> Results:
    """Write the sum of embeddings, normalized; tables, scale and offset are quantized."""
    tables: list[ir.Value | None] = []
    for place in range(5):  # words, positions, segments, scale and offset of the normalization
        numbers = body.input(2 + place)
        step, zero = body.input(8 + place), body.input(13 + place)
        tables.append(None if numbers is None else real_numbers(body, numbers, needed(step), zero))
    words, positions, segments, scale, offset = tables
    normal, index, _ = embedded(
        body,
        (needed(words), needed(positions), segments),
        (needed(scale), needed(offset)),
        mask=body.input(7),
        places=None,
    )
    return (normal, index)


@body_of("DynamicQuantizeLSTM")
def quantized_lstm(body: OperatorBody) -> Results:
    """Write an LSTM of dequantized weights, which come transposed, on an input that is quantized by its own range."""
    if body.coarse and _can_go_in_steps(body):
        return lstm_in_steps(body)
    numbers, step, zero = body.op_of("DynamicQuantizeLinear", [body.input(0)], {}, outputs=3)
    return lstm_on(body, body.op("DequantizeLinear", numbers, step, zero))


@body_of(f"{PAIRS}DynamicQuantizeLSTM")
def lstm_of_pairs(body: OperatorBody) -> Results:
    """Write an LSTM of dequantized weights on an unquantized input."""
    return lstm_on(body, needed(body.input(0)))


def lstm_on(body: OperatorBody, given: ir.Value) -> Results:
    """Write the LSTM of the dequantized weights of a node on an input."""
    _, weight, recurrent = body.inputs(3)
    weights = []
    for place, value in ((8, weight), (10, recurrent)):
        scale, zero_point = needed(body.input(place)), body.input(place + 1)
        one = len(body.shape_of(scale)) == 1  # a scale for each direction, or for each of its columns
        if one and body.opset >= PER_AXIS:
            zeros = [zero_point] if zero_point is not None else []
            real_weight = body.op("DequantizeLinear", value, scale, *zeros, axis=0)
        else:
            real_weight = real_numbers(body, value, scale, zero_point, axes=(1, 2) if one else (1,))
        weights.append(body.op("Transpose", real_weight, perm=[0, 2, 1]))
    others = [body.input(index) for index in range(3, 8)]
    while others and others[-1] is None:
        others.pop()
    names = ("activation_alpha", "activation_beta", "activations", *_OF_STEPS, "direction")
    return tuple(body.op_of("LSTM", [given, *weights, *others], body.given(*names), outputs=len(body.node.outputs)))


_OF_STEPS = ("clip", "hidden_size", "input_forget")
"""Attributes of an LSTM that each of its steps has as well."""


def _can_go_in_steps(body: OperatorBody) -> bool:
    known = all(array_of(body.input(place)) is not None for place in (1, 2))
    return known and body.input(4) is None and not body.given("activation_alpha", "activation_beta")


@body_of(f"{INTEGERS}DynamicQuantizeLSTM")
def lstm_in_steps(body: OperatorBody) -> Results:
    """Write the LSTM step by step, as ONNX Runtime's kernel computes it: its state is put in uint8 before each one.

    The kernel takes the range of as many rows at once as it gives to a thread (`ComputeGemm` of its rnn_helpers.cc), so
    that two healthy runs differ by what this costs; here it is that of all rows.
    """
    refuse_if(not _can_go_in_steps(body))
    ways = {"reverse": (1,), "bidirectional": (0, 1)}.get(body.attribute("direction", "forward"), (0,))
    activations, results = body.attribute("activations", None), []
    numbers = body.op_of("DynamicQuantizeLinear", [body.input(0)], {}, outputs=3)
    for number, backward in enumerate(ways):
        attributes = body.given(*_OF_STEPS)
        if activations:
            attributes["activations"] = list(activations[3 * number : 3 * number + 3])
        others = [_half(body, body.input(index), number, len(ways)) for index in range(3, 8)]
        gates = _product(body, numbers, number, (1, 8))
        results.append(_scanned(body, gates, number, others, attributes, backward=backward))
    ends = zip(*results, strict=True)
    return tuple(
        body.op("Concat", *(body.unsqueeze(half, axis) for half in halves), axis=axis)
        for axis, halves in zip((1, 0, 0), ends, strict=True)
    )


def _half(body: OperatorBody, value: ir.Value | None, number: int, count: int) -> ir.Value | None:
    return value if value is None or count == 1 else body.part(value, number, number + 1, 0)


def _product(
    body: OperatorBody,
    quantized: Sequence[ir.Value],
    number: int,
    at: tuple[int, int],
    within: OperatorBody | None = None,
) -> ir.Value:
    """Return what one direction adds to its gates: quantized rows times its weight.

    Args:
        body: The function body that is written.
        quantized: The rows, their step and zero point.
        number: Number of the direction.
        at: Where the weight is among the inputs of the node, and its scale; its zero point is the next.
        within: The body of the loop where the product stands; None where it stands before the loop.
    """
    weight, scale, zero = (array_of(body.input(place)) for place in (at[0], at[1], at[1] + 1))
    refuse_if(weight is None or scale is None or (zero is None and body.input(at[1] + 1) is not None))
    own = [None if array is None else np.asarray(array)[number] for array in (weight, scale, zero)]
    values = [None if array is None else _kept(body, array) for array in own]
    rows, step, point = quantized
    operands, scales = (rows, needed(values[0])), (step, needed(values[1]))
    return integer_product(within or body, operands, scales, (point, values[2]))


def _kept(body: OperatorBody, array: np.ndarray) -> ir.Value:
    return body.weight(lambda: array, array.shape, array.dtype.type)


def _scanned(
    body: OperatorBody,
    gates: ir.Value,
    number: int,
    others: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
    *,
    backward: int,
) -> Sequence[ir.Value]:
    """Write one direction as a Scan; return results, last state and last cell, without the axis of directions.

    A step is an LSTM whose input is the sum of both products, by weights of 1 and, of the state, 0.

    Args:
        body: The function body that is written.
        gates: What the input adds to the gates at each step.
        number: Number of the direction.
        others: Its bias, lengths, first state, first cell and peepholes.
        attributes: Attributes of a step.
        backward: 1 where it goes from the last step to the first.
    """
    bias, _, first, cell, peepholes = others
    size = body.known_size(body.inputs(3)[2], 1)
    empty = body.op("Concat", body.part(body.op("Shape", gates), 1, 2, 0), body.integers(size), axis=0)
    zeros = body.op("ConstantOfShape", empty)
    begin = [zeros if value is None else body.squeeze(value, 0) for value in (first, cell)]
    ones = body.weight(lambda: np.eye(4 * size, dtype=np.float32)[None], (1, 4 * size, 4 * size))
    nothing = body.weight(lambda: np.zeros((1, 4 * size, size), np.float32), (1, 4 * size, size))
    step = OperatorBody(body.node, body.opset, {})
    state, memory, given = (
        ir.Value(name=f"{body.owner}/step:{name}", type=ir.TensorType(ir.DataType.FLOAT)) for name in ("h", "c", "x")
    )
    rounded = step.op_of("DynamicQuantizeLinear", [state], {}, outputs=3)
    wanted = step.op("Add", given, _product(body, rounded, number, (2, 10), step))
    inputs = [step.unsqueeze(wanted, 0), ones, nothing, bias, None, None, step.unsqueeze(memory, 0), peepholes]
    made = step.op_of("LSTM", inputs, attributes, outputs=3)
    after = [step.squeeze(value, 0) for value in made[1:]]
    shown = step.op("Identity", after[0])
    for index, node in enumerate(step.nodes):
        node.name = f"{body.owner}/step:{number}:{index}"
    graph = ir.Graph([state, memory, given], [*after, shown], nodes=step.nodes, name=f"{body.owner}/step")
    scan = {"num_scan_inputs": 1, "scan_input_directions": [backward], "scan_output_directions": [backward]}
    last, cells, results = body.op_of("Scan", [*begin, gates], {"body": graph, **scan}, outputs=3)
    return results, last, cells


@body_of("QLinearConv", "nhwc.QLinearConv")
def last_quantized_convolution(body: OperatorBody) -> Results:
    """Write the standard operator on images with the channels last, if the node declares that layout."""
    x, *others = body.node.inputs
    last = bool(body.attribute("channels_last", 0)) or body.node.domain != "com.microsoft"
    given = body.given(*CONVOLUTION)
    y = body.op("QLinearConv", to_first(body, needed(x)) if last else needed(x), *others, **given)
    return (to_last(body, y) if last else y,)


@body_of("QLinearWhere")
def quantized_choice(body: OperatorBody) -> Results:
    """Write a choice of two quantized tensors, in one scale."""
    (condition,) = body.inputs(1)
    return (stored(body, body.op("Where", condition, real(body, 1), real(body, 4)), 7),)


@body_of("GatherBlockQuantized")
def gathered_blocks(body: OperatorBody) -> Results:
    """Write rows of a table of few bits; a table that is computed is refused."""
    table, indices, scales = body.inputs(3)
    zeros = body.input(3)
    refuse_if(any(value is not None and array_of(value) is None for value in (table, scales, zeros)))
    axis, along = int(body.attribute("gather_axis", 0)), int(body.attribute("quantize_axis", 1))
    bits, block = int(body.attribute("bits", 4)), int(body.attribute("block_size", 128))
    shape = list(stored_array(table).shape)
    packed = stored_array(table).dtype == np.uint8 and bits < 8
    if packed:
        shape[-1] *= 8 // bits

    def made() -> np.ndarray:
        return _dequantized_blocks(table, scales, zeros, bits=bits, block=block, axis=along % len(shape))

    return (body.op("Gather", body.weight(made, shape), indices, axis=axis),)


def _dequantized_blocks(
    table: ir.Value, scales: ir.Value, zeros: ir.Value | None, *, bits: int, block: int, axis: int
) -> np.ndarray:
    stored_numbers = stored_array(table)
    bytes_of = stored_numbers.dtype == np.uint8
    numbers = numbers_in(stored_numbers, bits).astype(np.float32)
    step = stored_array(scales).astype(np.float32)
    size = numbers.shape[axis]

    def spread(array: np.ndarray) -> np.ndarray:
        return np.take(np.repeat(array, block, axis=axis), range(size), axis=axis)

    zero: np.ndarray | float = float(2 ** (bits - 1)) if bytes_of else 0.0
    if zeros is not None:
        points = numbers_in(stored_array(zeros), bits).astype(np.float32)
        zero = spread(np.take(points, range(step.shape[axis]), axis=axis) if axis == step.ndim - 1 else points)
    return np.asarray((numbers - zero) * spread(step), np.float32)
