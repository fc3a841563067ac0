"""Convolutions and pools that ONNX Runtime keeps in another layout: channels last, or in blocks of a vector's width.

Blocked ones (NCHWc) are written when a CPU's session is saved: a tensor ``[batch, channels, height, width]`` lies in
memory as ``[batch, channels / block, height, width, block]``, channels filled up with zeros. Their bodies read and
write that layout, so that every value is what the engine has.
"""

import functools
import importlib

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import (
    CONVOLUTION,
    OperatorBody,
    Results,
    array_of,
    body_of,
    needed,
    refuse_if,
)
from tensortriage_operators.products import activated

_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "storage_order", "strides")
_NARROW, _WIDE = 8, 16
"""Channels in a block: of CPUs with vectors of 256 bits and less, and of those with 512."""


@body_of("NhwcConv", "NhwcFusedConv")
def last_convolution(body: OperatorBody) -> Results:
    """Write a convolution of images with channels last, its weight ``[channels out, height, width, channels in]``.

    NhwcFusedConv keeps ONNX's order in its weight, and may add a tensor and have an activation.
    """
    fused = body.node.op_type == "NhwcFusedConv"
    x, weight = body.inputs(2)
    weight = weight if fused else body.op("Transpose", weight, perm=[0, 3, 1, 2])
    bias = [value] if (value := body.input(2)) is not None else []
    y = to_last(body, body.op("Conv", to_first(body, x), weight, *bias, **body.given(*CONVOLUTION)))
    return (activated(body, body.plus(y, 3), list(body.attribute("activation_params", ()))),)


@body_of("NhwcMaxPool")
def last_pool(body: OperatorBody) -> Results:
    """Write the largest number of windows, channels last."""
    (x,) = body.inputs(1)
    return (to_last(body, body.op("MaxPool", to_first(body, x), **body.given(*_POOL))),)


@body_of("nhwc.Conv", "nhwc.ConvTranspose", "nhwc.MaxPool", "nhwc.AveragePool", "nhwc.GlobalAveragePool",
         "nhwc.GlobalMaxPool", "nhwc.LpPool", "nhwc.GlobalLpPool", "nhwc.BatchNormalization",
         "nhwc.InstanceNormalization", "nhwc.LRN", "nhwc.DepthToSpace", "nhwc.SpaceToDepth")  # fmt: skip
def last_standard(body: OperatorBody) -> Results:
    """Write the standard operator of the same name on images with channels last."""
    x, *others = body.node.inputs
    given = {name: attribute.value for name, attribute in body.node.attributes.items() if not attribute.is_ref()}
    refuse_if(any(body.wants(index) for index in range(1, len(body.node.outputs))))
    return (to_last(body, body.op(body.node.op_type, to_first(body, needed(x)), *others, **given)),)


def to_first(body: OperatorBody, x: ir.Value) -> ir.Value:
    """Write channels, which are last, behind the batch."""
    rank = body.rank(x, 4)
    return body.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])


def to_last(body: OperatorBody, x: ir.Value) -> ir.Value:
    """Write channels, which are behind the batch, last."""
    rank = body.rank(needed(body.input(0)), 4)
    return body.op("Transpose", x, perm=[0, *range(2, rank), 1])


@body_of("nchwc.ReorderInput")
def into_blocks(body: OperatorBody) -> Results:
    """Write an image into blocks, its channels filled up."""
    (x,) = body.inputs(1)
    last = bool(body.attribute("channels_last", 0))
    channels = body.known_size(x, 3 if last else 1)
    block = _block(channels)
    plain = to_first(body, x) if last else x
    if more := -channels % block:
        pads = [0, 0, 0, 0, 0, more, 0, 0]
        plain = body.op("Pad", plain, body.integers(*pads)) if body.opset >= 11 else body.op("Pad", plain, pads=pads)
    return (_blocked(body, plain, block),)


@body_of("nchwc.ReorderOutput")
def out_of_blocks(body: OperatorBody) -> Results:
    """Write an image as ONNX has it, without the channels that only fill up."""
    (x,) = body.inputs(1)
    plain = body.part(_plain(body, x, _block_of(body, x)), 0, int(body.attribute("channels", 0)), 1)
    return (to_last(body, plain) if body.attribute("channels_last", 0) else plain,)


@body_of("nchwc.Conv")
def blocked_convolution(body: OperatorBody) -> Results:
    """Write a convolution with its weight in blocks, its summand, and its activation.

    Fewer channels than a block come as ONNX has them; the weight of a group of one channel has blocks of its other axis
    only. Groups of several channels are blocks of whole ones, or it is refused.
    """
    x, weight = body.inputs(2)
    stored = array_of(weight)
    if stored is None:
        refuse_if(True)
        raise AssertionError
    count, depth = stored.shape[:2]
    block = _block(count)
    group = int(body.attribute("group", 1))
    shallow = depth % block != 0
    refuse_if(shallow and group > 1 and depth > 1)
    order = _one_sided if shallow else _two_sided
    plain_weight = body.weight(functools.partial(order, weight, block), stored.shape)
    given = {**body.given(*CONVOLUTION), "group": count if shallow and group > 1 else group}
    given = (
        given if given.get("auto_pad", "NOTSET") in ("NOTSET", "") else {k: v for k, v in given.items() if k != "pads"}
    )
    image = x if shallow and group == 1 else _plain(body, x, block)
    bias = [value] if (value := body.input(2)) is not None else []
    y = body.op("Conv", image, plain_weight, *bias, **given)
    if (more := body.input(3)) is not None:
        y = body.op("Add", y, _plain(body, more, block))
    return (_blocked(body, activated(body, y, list(body.attribute("activation_params", ()))), block),)


@body_of("nchwc.MaxPool", "nchwc.AveragePool", "nchwc.GlobalMaxPool", "nchwc.GlobalAveragePool")
def blocked_pool(body: OperatorBody) -> Results:
    """Write a pool of the same name."""
    (x,) = body.inputs(1)
    block = _block_of(body, x)
    given = body.given(*_POOL)
    if given.get("auto_pad", "NOTSET") not in ("NOTSET", ""):
        given.pop("pads", None)
    return (_blocked(body, body.op(body.node.op_type, _plain(body, x, block), **given), block),)


@body_of("nchwc.Upsample")
def blocked_resize(body: OperatorBody) -> Results:
    """Write a resizing by whole factors."""
    (x,) = body.inputs(1)
    refuse_if(body.opset < 11)
    block = _block_of(body, x)
    scales = body.constant(list(body.attribute("scales", ())))
    mode = body.attribute("mode", "nearest")
    how = {
        "mode": mode,
        "coordinate_transformation_mode": body.attribute("coordinate_transformation_mode", "asymmetric"),
    }
    if mode == "nearest":
        how["nearest_mode"] = "floor"
    none = body.constant([]) if body.opset < 13 else None
    return (_blocked(body, body.op("Resize", _plain(body, x, block), none, scales, **how), block),)


def _block_of(body: OperatorBody, x: ir.Value) -> int:
    return _block(body.known_size(x, 1))


def _block(channels: int) -> int:
    """Return how many channels a block has.

    No file states it: it is decided by the CPU that wrote the file, and read by one that has to be of the same kind.
    """
    return _NARROW if channels % _WIDE == _NARROW else _machine_block()


@functools.cache
def _machine_block() -> int:
    # The only place where numpy reports the CPU's features; a numpy without it gives no answer.
    known = getattr(importlib.import_module("numpy._core._multiarray_umath"), "__cpu_features__", {})
    return _WIDE if known.get("AVX512F") else _NARROW


def _plain(body: OperatorBody, x: ir.Value, block: int) -> ir.Value:
    """Write the conversion from blocks to ONNX's layout."""
    shape = body.op("Shape", x)
    apart = body.op("Reshape", x, _split_shape(body, x, block, last=True))
    return body.op("Reshape", body.op("Transpose", apart, perm=[0, 1, 3, 2]), shape)


def _blocked(body: OperatorBody, x: ir.Value, block: int) -> ir.Value:
    """Write the conversion from ONNX's layout to blocks; the shape stays."""
    shape = body.op("Shape", x)
    apart = body.op("Reshape", x, _split_shape(body, x, block, last=False))
    return body.op("Reshape", body.op("Transpose", apart, perm=[0, 1, 3, 2]), shape)


def _split_shape(body: OperatorBody, x: ir.Value, block: int, *, last: bool) -> ir.Value:
    size = body.integers(block)
    blocks = body.op("Div", body.size(x, 1), size)
    ends = (body.integers(-1), size) if last else (size, body.integers(-1))
    return body.op("Concat", body.size(x, 0), blocks, *ends, axis=0)


def _two_sided(value: ir.Value, block: int) -> np.ndarray:
    """Return a weight from blocks of both channel axes: ``[out / b, in / b, height, width, b in, b out]``."""
    array = _stored(value)
    out, depth, *window = array.shape
    apart = array.reshape(out // block, depth // block, *window, block, block)
    return np.ascontiguousarray(apart.transpose(0, 5, 1, 4, 2, 3)).reshape(array.shape)


def _one_sided(value: ir.Value, block: int) -> np.ndarray:
    """Return a weight from blocks of its first axis: ``[out / b, in, height, width, b out]``."""
    array = _stored(value)
    out, depth, *window = array.shape
    apart = array.reshape(out // block, depth, *window, block)
    return np.ascontiguousarray(apart.transpose(0, 4, 1, 2, 3)).reshape(array.shape)


def _stored(value: ir.Value) -> np.ndarray:
    array = array_of(value)
    assert array is not None
    return array.astype(np.float32)
