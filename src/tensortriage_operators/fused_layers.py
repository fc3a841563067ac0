"""Activations with their bias, normalizations with their residual, and embeddings, as ONNX Runtime fuses them.

Formulas are those of ONNX Runtime's ContribOperators.md and of its CPU kernels, whose constants they use.
"""

import math

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, body_of, needed, refuse_if

_TANH_SCALE = math.sqrt(2 / math.pi)
"""FastGelu: ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`` (Hendrycks and Gimpel, 2016)."""


def gelu(body: OperatorBody, x: ir.Value) -> ir.Value:
    """Write ``0.5 x (1 + erf(x / sqrt(2)))``, of the shape of x."""
    error = body.op("Erf", body.op("Div", x, body.constant(math.sqrt(2))))
    return body.op("Mul", body.op("Mul", x, body.constant(0.5)), body.op("Add", error, body.constant(1)))


@body_of("Gelu", "BiasGelu")
def bias_gelu(body: OperatorBody) -> Results:
    """Write Gelu of the input, or of input plus bias."""
    return (gelu(body, body.plus(needed(body.input(0)), 1)),)


@body_of("FastGelu")
def fast_gelu(body: OperatorBody) -> Results:
    """Write the approximation of Gelu by Tanh, of the input or of input plus bias."""
    return (tanh_gelu(body, body.plus(needed(body.input(0)), 1)),)


def tanh_gelu(body: OperatorBody, x: ir.Value) -> ir.Value:
    """Write the approximation of Gelu by Tanh."""
    cube = body.op("Mul", body.op("Mul", x, x), x)
    inner = body.op("Add", x, body.op("Mul", cube, body.constant(0.044715)))
    curve = body.op("Tanh", body.op("Mul", inner, body.constant(_TANH_SCALE)))
    return body.op("Mul", body.op("Mul", x, body.constant(0.5)), body.op("Add", curve, body.constant(1)))


@body_of("QuickGelu")
def quick_gelu(body: OperatorBody) -> Results:
    """Write ``x * sigmoid(alpha x)``."""
    (x,) = body.inputs(1)
    scaled = body.op("Mul", x, body.constant(body.attribute("alpha", 1.702)))
    return (body.op("Mul", x, body.op("Sigmoid", scaled)),)


@body_of("SkipLayerNormalization")
def skip_layer_normalization(body: OperatorBody) -> Results:
    """Write LayerNormalization of input + skip + bias; mean and deviation, which no CPU kernel gives, are refused."""
    refuse_if(body.wants(1) or body.wants(2))
    x = _with_skip(body, bias=4)
    scale, offset = needed(body.input(2)), body.input(3)
    y = body.op("LayerNormalization", x, scale, *([offset] if offset is not None else []), axis=-1, epsilon=_eps(body))
    return (y, None, None, x if body.wants(3) else None)


@body_of("SkipSimplifiedLayerNormalization")
def skip_rms_normalization(body: OperatorBody) -> Results:
    """Write the same with division by the root of the mean square only."""
    refuse_if(body.wants(1) or body.wants(2))
    x = _with_skip(body, bias=3)
    return (_rms(body, x, needed(body.input(2)), _eps(body)), None, None, x if body.wants(3) else None)


@body_of("SimplifiedLayerNormalization")
def rms_normalization(body: OperatorBody) -> Results:
    """Write ``x / sqrt(mean(x^2) + epsilon) * scale`` over the last axis; other axes are refused."""
    x, scale = body.inputs(2)
    axis = body.attribute("axis", -1)
    refuse_if(body.wants(1) or (axis != -1 and axis != len(body.shape_of(x)) - 1))
    return (_rms(body, x, scale, body.attribute("epsilon", 1e-5)),)


@body_of("EmbedLayerNormalization")
def embed_layer_normalization(body: OperatorBody) -> Results:
    """Write the sum of word, position and segment embeddings, normalized, and how many places of a row count."""
    words, positions, scale, offset = (needed(body.input(index)) for index in (2, 3, 5, 6))
    tables = (words, positions, body.input(4))
    return embedded(body, tables, (scale, offset), mask=body.input(7), places=body.input(8))


def embedded(
    body: OperatorBody,
    tables: tuple[ir.Value, ir.Value, ir.Value | None],
    norm: tuple[ir.Value, ir.Value],
    *,
    mask: ir.Value | None,
    places: ir.Value | None,
) -> tuple[ir.Value, ir.Value | None, ir.Value | None]:
    """Write embeddings of the ids and segments that are the first inputs.

    Args:
        body: The function body that is written.
        tables: Tables of words, positions and segments.
        norm: Scale and offset.
        mask: Mask of ones and zeros.
        places: Positions; None for one after the other.

    Returns:
        The normalized sum, the number of places of a row that count, and the sum, each where the node returns it.
    """
    words, positions, table = tables
    scale, offset = norm
    ids, segments = needed(body.input(0)), body.input(1)
    total = body.op("Gather", words, ids)
    if places is None:
        total = body.op("Add", total, body.part(positions, 0, body.size(ids, 1), 0))
    else:
        total = body.op("Add", total, body.op("Gather", positions, places))
    if segments is not None:
        total = body.op("Add", total, body.op("Gather", needed(table), segments))
    normal = body.op("LayerNormalization", total, scale, offset, axis=-1, epsilon=_eps(body))
    return (normal, _mask_index(body, ids, mask), total if body.wants(2) else None)


def _mask_index(body: OperatorBody, ids: ir.Value, mask: ir.Value | None) -> ir.Value | None:
    if not body.wants(1) or body.attribute("mask_index_type", 1) == 0:
        return None
    counted = body.op("Mul", ids, body.constant(0, np.int32)) if mask is None else mask
    return body.along("ReduceSum", counted, [1], since=13, keepdims=0)


def _with_skip(body: OperatorBody, *, bias: int) -> ir.Value:
    x, skip = body.inputs(2)
    return body.plus(body.op("Add", x, skip), bias)


def _rms(body: OperatorBody, x: ir.Value, scale: ir.Value, epsilon: float) -> ir.Value:
    square = body.op("Add", body.mean(body.op("Mul", x, x)), body.constant(epsilon))
    return body.op("Mul", body.op("Div", x, body.op("Sqrt", square)), scale)


def _eps(body: OperatorBody) -> float:
    return float(body.attribute("epsilon", 1e-12))
