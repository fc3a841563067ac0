"""Products with the operations fused behind them, and products by weights in 4-bit floating point."""

import functools

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, array_of, body_of, refuse_if
from tensortriage_operators.fused_layers import tanh_gelu
from tensortriage_operators.products import fused_matmul

_NORMAL = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""NF4: quantiles of a normal distribution (Dettmers et al., 2023, appendix E)."""
_FLOATING = (0.0, 0.0625 / 12, 8 / 12, 1.0, 4 / 12, 6 / 12, 2 / 12, 3 / 12)
"""FP4 of bitsandbytes: a sign in the highest bit, and these magnitudes over their largest."""


@body_of("FusedMatMulActivation")
def product_and_activation(body: OperatorBody) -> Results:
    """Write FusedMatMul and its activation."""
    (product,) = fused_matmul(body)
    kind = body.attribute("activation", "")
    names = {
        "alpha": "activation_alpha",
        "beta": "activation_beta",
        "gamma": "activation_gamma",
        "axis": "activation_axis",
    }
    known = {"Elu": "alpha", "HardSigmoid": "alpha beta", "LeakyRelu": "alpha", "Relu": "", "Selu": "alpha gamma",
             "Sigmoid": "", "Softmax": "axis", "LogSoftmax": "axis", "Hardmax": "axis", "Softplus": "", "Softsign": "",
             "Tanh": "", "ThresholdedRelu": "alpha"}  # fmt: skip
    refuse_if(kind not in known or product is None)
    given = body.given(*(names[word] for word in known[kind].split()))
    assert product is not None
    return (
        body.op(kind, product, **{word: given[names[word]] for word in known[kind].split() if names[word] in given}),
    )


@body_of("GemmFastGelu")
def product_and_gelu(body: OperatorBody) -> Results:
    """Write a product, its bias, and GELU by Tanh."""
    x, weight = body.inputs(2)
    return (tanh_gelu(body, body.plus(body.op("MatMul", x, weight), 2)),)


@body_of("MatMulBnb4")
def product_of_float4(body: OperatorBody) -> Results:
    """Write a product by a weight of FP4 or NF4 in blocks with their largest magnitudes; computed ones are refused."""
    x, packed, largest = body.inputs(3)
    refuse_if(array_of(packed) is None or array_of(largest) is None)
    terms, columns = int(body.attribute("K", 0)), int(body.attribute("N", 0))
    block, kind = int(body.attribute("block_size", 64)), int(body.attribute("quant_type", 1))
    transposed = bool(body.attribute("transB", 1))
    make = functools.partial(_weight, packed, largest, (columns, terms), block, normal=kind == 1)
    shape = (columns, terms)
    weight = body.weight(make, shape)
    return (body.op("MatMul", x, body.op("Transpose", weight, perm=[1, 0]) if transposed else weight),)


def _weight(packed: ir.Value, largest: ir.Value, shape: tuple[int, int], block: int, *, normal: bool) -> np.ndarray:
    table = np.array(_NORMAL if normal else [*_FLOATING, *(-number for number in _FLOATING)], np.float32)
    stored, scale = array_of(packed), array_of(largest)
    assert stored is not None
    assert scale is not None
    flat = stored.reshape(-1)
    numbers = table[np.stack([flat >> 4, flat & 15], 1).reshape(-1)][: shape[0] * shape[1]]
    spread = np.repeat(scale.reshape(-1).astype(np.float32), block)[: len(numbers)]
    return (numbers * spread).reshape(shape)


@body_of("BiasSoftmax")
def softmax_of_sum(body: OperatorBody) -> Results:
    """Write Softmax of a sum over all axes from one on; a bias that repeats inside of the batch is refused."""
    x, bias = body.inputs(2)
    axis = int(body.attribute("axis", 1))
    rank = len(body.shape_of(x))
    refuse_if(axis % rank != rank - 1 or not body.attribute("is_inner_broadcast", 1))
    return (body.op("Softmax", body.op("Add", x, bias), axis=-1),)
