"""ReduceSum, ReduceMean, Softmax and LayerNormalization in another order of sums, or with another exponential."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage_testing.simulated.freedoms import Freedoms

Operands = Sequence[np.ndarray | None]


def total(terms: np.ndarray, freedoms: Freedoms) -> np.ndarray:
    """Return the sum over the last axis in float32, in the order that was chosen."""
    terms = terms.astype(np.float32)
    if freedoms.order == "reversed":
        terms = np.ascontiguousarray(terms[..., ::-1])
    if freedoms.order == "whole" or not terms.shape[-1]:
        return np.asarray(terms.sum(axis=-1))
    return np.cumsum(terms, axis=-1, dtype=np.float32)[..., -1]


def reduction(inputs: Operands, attributes: Mapping[str, object], freedoms: Freedoms, *, mean: bool) -> np.ndarray:
    """ONNX ReduceSum or ReduceMean."""
    data = np.asarray(inputs[0])
    axes = attributes.get("axes")
    if axes is None and len(inputs) > 1 and inputs[1] is not None:
        axes = tuple(int(axis) for axis in inputs[1].reshape(-1))
    given = tuple(int(str(axis)) % data.ndim for axis in axes) if isinstance(axes, tuple | list) else ()
    if not given and int(str(attributes.get("noop_with_empty_axes", 0))):
        return data
    reduced = given or tuple(range(data.ndim))
    kept = tuple(axis for axis in range(data.ndim) if axis not in reduced)
    terms = data.transpose((*kept, *reduced)).reshape((*(data.shape[axis] for axis in kept), -1))
    made = total(terms, freedoms)
    made = made / np.float32(max(1, terms.shape[-1])) if mean else made
    if int(str(attributes.get("keepdims", 1))):
        made = made.reshape([1 if axis in reduced else size for axis, size in enumerate(data.shape)])
    return made


def softmax(inputs: Operands, attributes: Mapping[str, object], freedoms: Freedoms) -> np.ndarray:
    """ONNX Softmax from operator set 13 on."""
    data, axis = np.asarray(inputs[0]), int(str(attributes.get("axis", -1)))
    approximated = freedoms.functions.get("Softmax")
    if approximated is not None:
        return approximated.functions["Softmax"](data.astype(np.float64), axis=axis)
    moved = np.moveaxis(data.astype(np.float32), axis, -1)
    powers = np.exp(moved - moved.max(axis=-1, keepdims=True))
    return np.moveaxis(powers / total(powers, freedoms)[..., None], -1, axis)


def layer_normalization(inputs: Operands, attributes: Mapping[str, object], freedoms: Freedoms) -> np.ndarray:
    """ONNX LayerNormalization, its first output."""
    data, scale = (np.asarray(each) for each in inputs[:2])
    bias = inputs[2] if len(inputs) > 2 else None
    axis = int(str(attributes.get("axis", -1))) % data.ndim
    rows = data.reshape((*data.shape[:axis], -1)).astype(np.float32)
    count = np.float32(max(1, rows.shape[-1]))
    centred = rows - (total(rows, freedoms) / count)[..., None]
    variance = (total(np.square(centred), freedoms) / count)[..., None]
    epsilon = np.float32(str(attributes.get("epsilon", 1e-5)))
    made = (centred / np.sqrt(variance + epsilon)).reshape(data.shape) * scale.astype(np.float32)
    return made if bias is None else made + bias.astype(np.float32)
