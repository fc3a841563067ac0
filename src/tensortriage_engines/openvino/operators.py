"""OpenVINO's operators in those of ONNX: a table, by type.

Most have a counterpart of another name. Differences are the place of attributes (in ONNX often an operand), the layout
of the weights of groups and transposed convolutions, and that OpenVINO decomposes normalizations.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensortriage_engines.openvino import convolutions, quantizers, recurrent, shaping
from tensortriage_engines.openvino.intermediate import TYPES, Layer
from tensortriage_engines.openvino.network import OnnxGraph, Untranslatable, onnx_type
from tensortriage_engines.openvino.operands import attribute_number, operand_names, rank_of, real_constant, scalar_of

Write = Callable[[OnnxGraph, Layer], None]

_SAME = (
    "Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cos Cosh Equal Erf Exp Floor "
    "Greater HSwish:HardSwish IsInf IsNaN Less Log Mish Sigmoid Sign Sin Sinh SoftSign:Softsign Sqrt Tan Tanh "
    "Ceiling:Ceil Divide:Div GreaterEqual:GreaterOrEqual LessEqual:LessOrEqual LogicalAnd:And LogicalNot:Not "
    "LogicalOr:Or LogicalXor:Xor Maximum:Max Minimum:Min Multiply:Mul Negative:Neg Power:Pow ReLU:Relu Select:Where "
    "SoftPlus:Softplus Subtract:Sub ConvertLike:CastLike GatherND Tile"
)
_RENAMED = {own: theirs or own for own, _, theirs in (word.partition(":") for word in _SAME.split())}
_REDUCTIONS = {
    "ReduceMax": "ReduceMax", "ReduceMean": "ReduceMean", "ReduceMin": "ReduceMin", "ReduceProd": "ReduceProd",
    "ReduceSum": "ReduceSum", "ReduceL1": "ReduceL1", "ReduceL2": "ReduceL2", "ReduceLogicalAnd": "ReduceMin",
    "ReduceLogicalOr": "ReduceMax",
}  # fmt: skip


def write(network: OnnxGraph, layer: Layer) -> None:
    """Write a layer as ONNX.

    Raises:
        Untranslatable: When it has no form there, or one that is not known here.
    """
    if not layer.plain or not layer.opset.startswith("opset"):
        raise Untranslatable(layer)
    if layer.kind in _RENAMED:
        _same(network, layer)
    elif layer.kind in TABLE:
        TABLE[layer.kind](network, layer)
    else:
        raise Untranslatable(layer)


def _same(network: OnnxGraph, layer: Layer) -> None:
    if layer.kind in ("Subtract", "Multiply") and quantizers.decompressed(network, layer):
        return
    if layer.kind == "Add" and convolutions.biased(network, layer):
        return
    attributes = {"batch_dims": int(layer.data["batch_dims"])} if layer.data.get("batch_dims", "0") != "0" else {}
    network.one(layer, _RENAMED[layer.kind], operand_names(network, layer), **attributes)


def _const(network: OnnxGraph, layer: Layer) -> None:
    from tensortriage_engines.openvino.stored import StoredConstant

    (port,) = layer.ports.values()
    network.keep(layer, StoredConstant((list(port.names) or [layer.name])[0], network.file.constant(layer)))


def _convert(network: OnnxGraph, layer: Layer) -> None:
    word, stored = layer.data["destination_type"], network.stored(layer, 0)
    if stored is not None and (stored.plain or stored.scale is not None):
        network.keep(layer, stored.then(layer.name, dtype=word))
    else:
        network.one(layer, "Cast", [network.value(layer, 0)], to=onnx_type(word))


def _reshape(network: OnnxGraph, layer: Layer) -> None:
    stored = network.stored(layer, 0)
    if stored is not None:
        moved = stored.reshaped(layer.name, [int(size) for size in network.constant(layer, 1).reshape(-1)])
        if moved is not None:
            network.keep(layer, moved)
            return
    network.one(layer, "Reshape", operand_names(network, layer), allowzero=int(not layer.flag("special_zero")))


def _axes(kind: str) -> Write:
    """Return a writer for operators that take axes as an operand, in ONNX as well."""

    def squeeze(network: OnnxGraph, layer: Layer) -> None:
        stored = network.stored(layer, 0)
        if stored is not None and stored.plain and kind == "Unsqueeze":
            axes = tuple(int(axis) for axis in network.constant(layer, 1).reshape(-1))
            network.keep(layer, stored.then(layer.name, array=np.expand_dims(stored.array, axes)))
            return
        inputs = [network.value(layer, 0)]
        if len(layer.sources) > 1:
            inputs.append(network.numbers(layer, "axes", network.constant(layer, 1).reshape(-1).tolist()))
        network.one(layer, kind, inputs)

    return squeeze


def _transpose(network: OnnxGraph, layer: Layer) -> None:
    axes = [int(axis) for axis in network.constant(layer, 1).reshape(-1)]
    axes = axes or list(range(rank_of(network, layer)))[::-1]
    stored = network.stored(layer, 0)
    if stored is not None and stored.array.ndim == len(axes):
        network.keep(layer, stored.transposed(layer.name, axes))
    else:
        network.one(layer, "Transpose", [network.value(layer, 0)], perm=axes)


def _matmul(network: OnnxGraph, layer: Layer) -> None:
    inputs = []
    for number, key in enumerate(("transpose_a", "transpose_b")):
        rank, stored = rank_of(network, layer, number), network.stored(layer, number)
        turned = layer.flag(key) and rank > 1
        axes = [*range(rank - 2), rank - 1, rank - 2]
        if turned and stored is not None and stored.array.ndim == rank:
            moved = stored.transposed(stored.name, axes)
            inputs.append(network.written(moved, network.fresh(moved.name)))
        elif turned:
            inputs.append(network.between(layer, "Transpose", [network.value(layer, number)], key, perm=axes))
        else:
            inputs.append(network.value(layer, number))
    network.one(layer, "MatMul", inputs)


def _reduce(network: OnnxGraph, layer: Layer) -> None:
    axes = [int(axis) for axis in network.constant(layer, 1).reshape(-1)]
    value = network.value(layer, 0)
    logical = layer.kind.startswith("ReduceLogical")
    if logical:
        value = network.between(layer, "Cast", [value], to=onnx_type("u8"))
    inputs, kept = [value, network.numbers(layer, "axes", axes)], int(layer.flag("keep_dims"))
    if not logical:
        network.one(layer, _REDUCTIONS[layer.kind], inputs, keepdims=kept)
        return
    made = network.between(layer, _REDUCTIONS[layer.kind], inputs, keepdims=kept)
    network.one(layer, "Cast", [made], to=onnx_type("boolean"))


def _attribute(kind: str, **keys: tuple[str, Callable[[str], Any], Any]) -> Write:
    """Return a writer for an operator with attributes: ONNX's key; OpenVINO's, its conversion, and its default."""

    def written(network: OnnxGraph, layer: Layer) -> None:
        read = {own: parse(layer.data.get(key, usual)) for own, (key, parse, usual) in keys.items()}
        network.one(layer, kind, operand_names(network, layer), **read)

    return written


def _clamp(network: OnnxGraph, layer: Layer) -> None:
    dtype = TYPES[network.dtype(layer)]
    lowest, highest = (-np.inf, np.inf) if dtype.kind == "f" else _ends(dtype)
    bounds = [float(np.clip(attribute_number(layer, key), lowest, highest)) for key in ("min", "max")]
    ends = [real_constant(network, layer, key, end) for key, end in zip(("min", "max"), bounds, strict=True)]
    network.one(layer, "Clip", [network.value(layer, 0), *ends])


def _ends(dtype: np.dtype) -> tuple[float, float]:
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _swish(network: OnnxGraph, layer: Layer) -> None:
    value = inner = network.value(layer, 0)
    if len(layer.sources) > 1:
        inner = network.between(
            layer, "Mul", [value, real_constant(network, layer, "beta", scalar_of(network, layer, 1))]
        )
    network.one(layer, "Mul", [value, network.between(layer, "Sigmoid", [inner])])


def _gelu(network: OnnxGraph, layer: Layer) -> None:
    kind = "tanh" if layer.data.get("approximation_mode", "ERF").upper() == "TANH" else "none"
    network.one(layer, "Gelu", [network.value(layer, 0)], approximate=kind)


def _prelu(network: OnnxGraph, layer: Layer) -> None:
    slope, rank = network.stored(layer, 1), rank_of(network, layer)
    name = network.value(layer, 1)
    if slope is not None and slope.plain and slope.array.ndim == 1 and slope.array.size > 1 and rank > 2:
        name = network.fixed(f"{layer.name}/slope", slope.array.reshape(-1, *[1] * (rank - 2)))
    network.one(layer, "PRelu", [network.value(layer, 0), name])


def _hard_sigmoid(network: OnnxGraph, layer: Layer) -> None:
    alpha, beta = (
        (1 / 6, 0.5) if layer.kind == "HSigmoid" else (scalar_of(network, layer, 1), scalar_of(network, layer, 2))
    )
    network.one(layer, "HardSigmoid", [network.value(layer, 0)], alpha=alpha, beta=beta)


def _opposite(network: OnnxGraph, layer: Layer) -> None:
    network.one(layer, "Not", [network.between(layer, "Equal", operand_names(network, layer))])


def _squared_difference(network: OnnxGraph, layer: Layer) -> None:
    made = network.between(layer, "Sub", operand_names(network, layer))
    network.one(layer, "Mul", [made, made])


def _mod(network: OnnxGraph, layer: Layer) -> None:
    real = TYPES[network.dtype(layer)].kind == "f"
    if layer.kind == "FloorMod" and real:
        one, other = operand_names(network, layer)
        whole = network.between(layer, "Floor", [network.between(layer, "Div", [one, other])])
        network.one(layer, "Sub", [one, network.between(layer, "Mul", [whole, other])])
    else:
        network.one(layer, "Mod", operand_names(network, layer), fmod=int(layer.kind == "Mod"))


def _mvn(network: OnnxGraph, layer: Layer) -> None:
    value = network.value(layer, 0)
    axes = network.numbers(layer, "axes", network.constant(layer, 1).reshape(-1).tolist())
    centred = network.between(layer, "Sub", [value, network.between(layer, "ReduceMean", [value, axes], keepdims=1)])
    if not layer.flag("normalize_variance"):
        network.one(layer, "Identity", [centred])
        return
    squares = network.between(layer, "Mul", [centred, centred])
    variance = network.between(layer, "ReduceMean", [squares, axes], "variance", keepdims=1)
    network.one(layer, "Div", [centred, _root(network, layer, variance)])


def _root(network: OnnxGraph, layer: Layer, variance: str) -> str:
    """Return the root of a variance with the epsilon of the layer, inside the root or next to it."""
    epsilon = real_constant(network, layer, "epsilon", attribute_number(layer, "eps"))
    if layer.data.get("eps_mode", "inside_sqrt").lower() == "inside_sqrt":
        return network.between(layer, "Sqrt", [network.between(layer, "Add", [variance, epsilon])])
    return network.between(layer, "Add", [network.between(layer, "Sqrt", [variance]), epsilon])


def _normalize_l2(network: OnnxGraph, layer: Layer) -> None:
    value = network.value(layer, 0)
    axes = network.numbers(layer, "axes", network.constant(layer, 1).reshape(-1).tolist())
    squares = network.between(layer, "ReduceSumSquare", [value, axes], keepdims=1)
    epsilon = real_constant(network, layer, "epsilon", attribute_number(layer, "eps"))
    kind = "Add" if layer.data.get("eps_mode") == "add" else "Max"
    size = network.between(layer, "Sqrt", [network.between(layer, kind, [squares, epsilon])])
    network.one(layer, "Div", [value, size])


def _batch_norm(network: OnnxGraph, layer: Layer) -> None:
    network.one(layer, "BatchNormalization", operand_names(network, layer), epsilon=attribute_number(layer, "epsilon"))


def _attention(network: OnnxGraph, layer: Layer) -> None:
    query, key, value = (network.value(layer, number) for number in range(3))
    rank, last = rank_of(network, layer, 1), network.shape(layer)[-1]
    if layer.flag("causal") or rank < 2 or (last is None and len(layer.sources) < 5):
        raise Untranslatable(layer)
    turned = network.between(layer, "Transpose", [key], perm=[*range(rank - 2), rank - 1, rank - 2])
    scale = (
        network.value(layer, 4)
        if len(layer.sources) > 4
        else real_constant(network, layer, "scale", float(last or 1) ** -0.5)
    )
    scores = network.between(layer, "Mul", [network.between(layer, "MatMul", [query, turned], "scores"), scale])
    if len(layer.sources) > 3:
        mask = network.value(layer, 3)
        if network.dtype(layer, 3) == "boolean":
            low = real_constant(network, layer, "low", -np.inf)
            mask = network.between(layer, "Where", [mask, real_constant(network, layer, "zero", 0.0), low])
        scores = network.between(layer, "Add", [scores, mask])
    network.one(layer, "MatMul", [network.between(layer, "Softmax", [scores], axis=-1), value])


def _nothing(network: OnnxGraph, layer: Layer) -> None:
    network.give(layer, [network.value(layer, 0)])


TABLE: Mapping[str, Write] = {
    "Const": _const,
    "Convert": _convert,
    "Reshape": _reshape,
    "Squeeze": _axes("Squeeze"),
    "Unsqueeze": _axes("Unsqueeze"),
    "Transpose": _transpose,
    "MatMul": _matmul,
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "Concat": _attribute("Concat", axis=("axis", int, "0")),
    "SoftMax": _attribute("Softmax", axis=("axis", int, "1")),
    "Softmax": _attribute("Softmax", axis=("axis", int, "1")),
    "LogSoftmax": _attribute("LogSoftmax", axis=("axis", int, "1")),
    "Elu": _attribute("Elu", alpha=("alpha", float, "1")),
    "GatherElements": _attribute("GatherElements", axis=("axis", int, "0")),
    "Einsum": _attribute("Einsum", equation=("equation", str, "")),
    "SpaceToDepth": _attribute("SpaceToDepth", blocksize=("block_size", int, "1")),
    "DepthToSpace": _attribute(
        "DepthToSpace",
        blocksize=("block_size", int, "1"),
        mode=("mode", lambda word: "DCR" if word == "blocks_first" else "CRD", "blocks_first"),
    ),
    "LRN": _attribute(
        "LRN",
        alpha=("alpha", float, "1"),
        beta=("beta", float, "0.5"),
        bias=("bias", float, "1"),
        size=("size", int, "1"),
    ),
    "GroupNormalization": _attribute(
        "GroupNormalization", num_groups=("num_groups", int, "1"), epsilon=("epsilon", float, "1e-5")
    ),
    "Clamp": _clamp,
    "Swish": _swish,
    "Gelu": _gelu,
    "PReLU": _prelu,
    "HSigmoid": _hard_sigmoid,
    "HardSigmoid": _hard_sigmoid,
    "NotEqual": _opposite,
    "SquaredDifference": _squared_difference,
    "Mod": _mod,
    "FloorMod": _mod,
    "Split": shaping.split,
    "VariadicSplit": shaping.split,
    "StridedSlice": shaping.strided_slice,
    "Slice": shaping.slice_of,
    "Gather": shaping.gather,
    "ScatterNDUpdate": shaping.scatter_elements,
    "ScatterElementsUpdate": shaping.scatter_elements,
    "ShapeOf": shaping.shape_of,
    "Broadcast": shaping.broadcast,
    "Pad": shaping.pad,
    "Interpolate": shaping.interpolate,
    "TopK": shaping.topk,
    "NonZero": shaping.cast_result("NonZero", "output_type"),
    "CumSum": shaping.cumsum,
    "Range": shaping.range_of,
    "MVN": _mvn,
    "NormalizeL2": _normalize_l2,
    "BatchNormInference": _batch_norm,
    "ScaledDotProductAttention": _attention,
    "Convolution": convolutions.convolution,
    "GroupConvolution": convolutions.convolution,
    "ConvolutionBackpropData": convolutions.transposed,
    "GroupConvolutionBackpropData": convolutions.transposed,
    "MaxPool": convolutions.pool,
    "AvgPool": convolutions.pool,
    "FakeQuantize": quantizers.fake_quantize,
    "LSTMSequence": recurrent.sequence,
    "GRUSequence": recurrent.sequence,
    "RNNSequence": recurrent.sequence,
}
"""Writers by type of a layer."""
