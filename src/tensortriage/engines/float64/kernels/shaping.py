"""Operators that rearrange, cut, join or make tensors without arithmetic on their elements."""

from collections.abc import Sequence

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.casting import convert, to_float64
from tensortriage.values.dtype import DType


@kernel("Reshape")
def _reshape(call: Call) -> Output:
    """Reshape(data, shape): the elements in row-major order in another shape; 0 copies a size, -1 takes the rest."""
    x = call[0]
    shape = call.integers(1, "shape") or []
    if not call.get("allowzero", 0):
        shape = [x.shape[i] if dim == 0 else dim for i, dim in enumerate(shape)]
    return np.reshape(x, _inferred(shape, x.size))


def _inferred(shape: list[int], size: int) -> list[int]:
    """Return the shape with -1 resolved, also where another dimension is 0, which numpy refuses."""
    if -1 in shape and 0 in shape and size == 0:
        return [0 if dim == -1 else dim for dim in shape]
    return shape


@kernel("Flatten")
def _flatten(call: Call) -> Output:
    """Flatten(input): [product of sizes before `axis`, product of the rest]."""
    x = call[0]
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return np.reshape(x, (int(np.prod(x.shape[:axis], dtype=np.int64)), int(np.prod(x.shape[axis:], dtype=np.int64))))


@kernel("Transpose")
def _transpose(call: Call) -> Output:
    """Transpose(data): axes in the order of `perm`; reversed without."""
    return np.transpose(call[0], call.get("perm"))


@kernel("Squeeze")
def _squeeze(call: Call) -> Output:
    """Squeeze(data, axes): without these axes of size 1, or without all of them."""
    axes = call.integers(1, "axes")
    return np.squeeze(call[0], None if axes is None else tuple(axes))


@kernel("Unsqueeze")
def _unsqueeze(call: Call) -> Output:
    """Unsqueeze(data, axes): with axes of size 1 at these places of the output."""
    return np.expand_dims(call[0], tuple(call.integers(1, "axes") or ()))


@kernel("Concat")
def _concat(call: Call) -> Output:
    """Concat(inputs, ...): tensors one after the other along `axis`."""
    return np.concatenate(call.inputs, axis=call.get("axis", 1))


@kernel("Split")
def _split(call: Call) -> Output:
    """Split(input, split): parts of these sizes along `axis`, or `num_outputs` of equal size, the last one smaller."""
    x, axis = call[0], call.get("axis", 0)
    sizes = call.integers(1, "split")
    if sizes is None:
        parts = call.get("num_outputs", call.outputs)
        step = -(-x.shape[axis] // parts)
        sizes = [max(0, min(step, x.shape[axis] - i * step)) for i in range(parts)]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=axis))


@kernel("Slice")
def _slice(call: Call) -> Output:
    """Slice(data, starts, ends, axes, steps): as numpy's data[start:end:step], ends cut to the size of the axis."""
    x = call[0]
    starts, ends = call.integers(1, "starts") or [], call.integers(2, "ends") or []
    axes = call.integers(3, "axes")
    steps = call.integers(4, "steps") or [1] * len(starts)
    picks = [slice(None)] * x.ndim
    for axis, start, end, step in zip(range(len(starts)) if axes is None else axes, starts, ends, steps, strict=True):
        picks[axis] = _cut(start, end, step, x.shape[axis])
    return x[tuple(picks)]


def _cut(start: int, end: int, step: int, size: int) -> slice:
    """Return the slice that ONNX means: counting down, a start before the first element is the first element."""
    start, end = (place + size if place < 0 else place for place in (start, end))
    if step > 0:
        return slice(max(0, start), max(0, end), step)
    end = max(-1, end)
    return slice(max(0, start), None if end < 0 else end, step) if size else slice(0, 0)


@kernel("Expand")
def _expand(call: Call) -> Output:
    """Expand(input, shape): input broadcast with the shape, either way."""
    wanted = [int(dim) for dim in call[1]]
    return np.broadcast_to(call[0], np.broadcast_shapes(call[0].shape, tuple(wanted)))


@kernel("Tile")
def _tile(call: Call) -> Output:
    """Tile(input, repeats): input repeated so often along each axis."""
    return np.tile(call[0], tuple(call[1]))


@kernel("Shape")
def _shape(call: Call) -> Output:
    """Shape(data): int64 sizes of the axes `start` to `end`."""
    return np.array(call[0].shape[slice(call.get("start", 0), call.get("end"))], np.int64)


@kernel("Size")
def _size(call: Call) -> Output:
    """Size(data): int64 number of elements."""
    return np.array(call[0].size, np.int64)


@kernel("Constant")
def _constant(call: Call) -> Output:
    """Constant(): the attribute as a tensor; numbers are float64 here, strings are objects."""
    name, value = next(iter(call.attributes.items()))
    if name == "value":
        return to_float64(value)
    dtype = {"value_float": np.float64, "value_int": np.int64, "value_string": object}[name.removesuffix("s")]
    return np.array(value, dtype)


@kernel("ConstantOfShape")
def _constant_of_shape(call: Call) -> Output:
    """ConstantOfShape(input): a tensor of this shape full of `value`, 0 without."""
    value = to_float64(call.get("value", np.zeros(1)))
    return np.full(tuple(call[0]), value.reshape(-1)[0], value.dtype)


@kernel("Range")
def _range(call: Call) -> Output:
    """Range(start, limit, delta): start + i delta for i below ceil((limit - start) / delta)."""
    start, limit, delta = (np.asarray(x).reshape(()) for x in call.inputs)
    count = max(0, int(np.ceil((limit.astype(np.float64) - start) / delta)))
    return start + np.arange(count).astype(start.dtype) * delta


@kernel("EyeLike")
def _eye_like(call: Call) -> Output:
    """EyeLike(input): ones on diagonal `k` of the shape of input [rows, columns], zeros elsewhere."""
    rows, columns = call[0].shape
    eye = np.eye(rows, columns, k=call.get("k", 0))
    return convert(eye, DType(call.get("dtype"))) if "dtype" in call.attributes else eye.astype(call[0].dtype)


@kernel("Pad")
def _pad(call: Call) -> Output:
    """Pad(data, pads, constant_value, axes): data grown at both ends of each axis, or cropped where negative.

    `mode` constant, reflect, edge or wrap, as numpy.pad.
    """
    x = call[0]
    pads = call.integers(1, "pads") or []
    axes = [int(axis) % x.ndim for axis in call[3]] if call[3] is not None else list(range(x.ndim))
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(axes)])
    crop = tuple(slice(max(0, -low), size - max(0, -high)) for size, (low, high) in zip(x.shape, widths, strict=True))
    grown = [(max(0, low), max(0, high)) for low, high in widths]
    mode = call.get("mode", "constant")
    if mode == "constant":
        fill = call[2] if call[2] is not None else call.get("value", 0)
        return np.pad(x[crop], grown, constant_values=np.asarray(fill, x.dtype).reshape(()))
    return np.pad(x[crop], grown, mode=mode)


@kernel("DepthToSpace")
def _depth_to_space(call: Call) -> Output:
    """DepthToSpace(input): [N, C, H, W] to [N, C / b**2, H b, W b], b = `blocksize`; `mode` orders channels."""
    x, size = call[0], call.get("blocksize")
    n, c, h, w = x.shape
    if call.get("mode", "DCR") == "DCR":
        blocks = x.reshape(n, size, size, c // size**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, c // size**2, size, size, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.reshape(blocks, (n, c // size**2, h * size, w * size))


@kernel("SpaceToDepth")
def _space_to_depth(call: Call) -> Output:
    """SpaceToDepth(input): [N, C, H, W] to [N, C b**2, H / b, W / b], b = `blocksize`."""
    x, size = call[0], call.get("blocksize")
    n, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = x.reshape(n, c, h // size, size, w // size, size).transpose(order)
    return np.reshape(blocks, (n, c * size**2, h // size, w // size))


@kernel("Trilu")
def _trilu(call: Call) -> Output:
    """Trilu(input, k): the upper or lower triangle of the last two axes from diagonal k on, zeros elsewhere."""
    k = 0 if call[1] is None else int(np.reshape(call[1], ()))
    return np.triu(call[0], k) if call.get("upper", 1) else np.tril(call[0], k)


@kernel("ReverseSequence")
def _reverse_sequence(call: Call) -> Output:
    """ReverseSequence(input, sequence_lens): the first elements of each batch along `time_axis` in reverse order."""
    batch_axis, time_axis = call.get("batch_axis", 1), call.get("time_axis", 0)
    x = np.moveaxis(call[0], (batch_axis, time_axis), (0, 1)).copy()
    for row, length in zip(x, call[1], strict=True):
        row[:length] = row[:length][::-1]
    return np.moveaxis(x, (0, 1), (batch_axis, time_axis))


@kernel("CenterCropPad")
def _center_crop_pad(call: Call) -> Output:
    """CenterCropPad(input_data, shape): `axes` cropped or padded with zeros around their centre to these sizes."""
    x = call[0]
    axes: Sequence[int] = call.get("axes") or range(x.ndim)
    for axis, wanted in zip(axes, call[1], strict=True):
        have = x.shape[axis]
        if have > wanted:
            start = (have - int(wanted)) // 2
            x = np.take(x, range(start, start + int(wanted)), axis)
        elif have < wanted:
            widths = [(0, 0)] * x.ndim
            before = (int(wanted) - have) // 2
            widths[axis] = (before, int(wanted) - have - before)
            x = np.pad(x, widths)
    return x
