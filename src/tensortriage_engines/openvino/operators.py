"""OpenVINO's operators in those of ONNX: a table, by type.

Most have a counterpart of another name. What differs is where attributes stand (in ONNX often an operand), how weights
of groups and transposed convolutions are laid out, and that OpenVINO breaks down what normalizes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensortriage_engines.openvino import convolutions, quantizers, recurrent
from tensortriage_engines.openvino.intermediate import TYPES, Layer
from tensortriage_engines.openvino.network import Network, Untranslatable, onnx_type

Write = Callable[[Network, Layer], None]

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


def write(network: Network, layer: Layer) -> None:
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


def _same(network: Network, layer: Layer) -> None:
    if layer.kind in ("Subtract", "Multiply") and quantizers.decompressed(network, layer):
        return
    if layer.kind == "Add" and convolutions.biased(network, layer):
        return
    attributes = {"batch_dims": int(layer.data["batch_dims"])} if layer.data.get("batch_dims", "0") != "0" else {}
    network.one(layer, _RENAMED[layer.kind], _values(network, layer), **attributes)


def _values(network: Network, layer: Layer) -> list[str]:
    return [network.value(layer, number) for number in range(len(layer.sources))]


def _number(layer: Layer, key: str, default: float | None = None) -> float:
    text = layer.data.get(key)
    if text is None and default is None:
        raise Untranslatable(layer, f"has no {key}")
    return float(text) if text is not None else float(default or 0.0)


def _scalar(network: Network, layer: Layer, number: int) -> float:
    return float(network.constant(layer, number).reshape(-1)[0])


def _rank(network: Network, layer: Layer, number: int = 0) -> int:
    return len(network.shape(layer, number))


def _real(network: Network, layer: Layer, what: str, value: float) -> str:
    return network.fixed(f"{layer.name}/{what}", np.asarray(value, TYPES[network.dtype(layer)]))


def _const(network: Network, layer: Layer) -> None:
    from tensortriage_engines.openvino.stored import Stored

    (port,) = layer.ports.values()
    network.keep(layer, Stored((list(port.names) or [layer.name])[0], network.file.constant(layer)))


def _convert(network: Network, layer: Layer) -> None:
    word, stored = layer.data["destination_type"], network.stored(layer, 0)
    if stored is not None and (stored.plain or stored.scale is not None):
        network.keep(layer, stored.then(layer.name, dtype=word))
    else:
        network.one(layer, "Cast", [network.value(layer, 0)], to=onnx_type(word))


def _reshape(network: Network, layer: Layer) -> None:
    stored = network.stored(layer, 0)
    if stored is not None:
        moved = stored.reshaped(layer.name, [int(size) for size in network.constant(layer, 1).reshape(-1)])
        if moved is not None:
            network.keep(layer, moved)
            return
    network.one(layer, "Reshape", _values(network, layer), allowzero=int(not layer.flag("special_zero")))


def _axes(kind: str) -> Write:
    """Return a writer for what takes axes as an operand, in ONNX as well."""

    def squeeze(network: Network, layer: Layer) -> None:
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


def _transpose(network: Network, layer: Layer) -> None:
    axes = [int(axis) for axis in network.constant(layer, 1).reshape(-1)]
    axes = axes or list(range(_rank(network, layer)))[::-1]
    stored = network.stored(layer, 0)
    if stored is not None and stored.array.ndim == len(axes):
        network.keep(layer, stored.transposed(layer.name, axes))
    else:
        network.one(layer, "Transpose", [network.value(layer, 0)], perm=axes)


def _matmul(network: Network, layer: Layer) -> None:
    inputs = []
    for number, key in enumerate(("transpose_a", "transpose_b")):
        rank, stored = _rank(network, layer, number), network.stored(layer, number)
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


def _reduce(network: Network, layer: Layer) -> None:
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
    """Return a writer for an operator with attributes: ONNX's key; OpenVINO's, how it is read, and what is usual."""

    def written(network: Network, layer: Layer) -> None:
        read = {own: parse(layer.data.get(key, usual)) for own, (key, parse, usual) in keys.items()}
        network.one(layer, kind, _values(network, layer), **read)

    return written


def _clamp(network: Network, layer: Layer) -> None:
    dtype = TYPES[network.dtype(layer)]
    lowest, highest = (-np.inf, np.inf) if dtype.kind == "f" else _ends(dtype)
    bounds = [float(np.clip(_number(layer, key), lowest, highest)) for key in ("min", "max")]
    ends = [_real(network, layer, key, end) for key, end in zip(("min", "max"), bounds, strict=True)]
    network.one(layer, "Clip", [network.value(layer, 0), *ends])


def _ends(dtype: np.dtype) -> tuple[float, float]:
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _swish(network: Network, layer: Layer) -> None:
    value = inner = network.value(layer, 0)
    if len(layer.sources) > 1:
        inner = network.between(layer, "Mul", [value, _real(network, layer, "beta", _scalar(network, layer, 1))])
    network.one(layer, "Mul", [value, network.between(layer, "Sigmoid", [inner])])


def _gelu(network: Network, layer: Layer) -> None:
    kind = "tanh" if layer.data.get("approximation_mode", "ERF").upper() == "TANH" else "none"
    network.one(layer, "Gelu", [network.value(layer, 0)], approximate=kind)


def _prelu(network: Network, layer: Layer) -> None:
    slope, rank = network.stored(layer, 1), _rank(network, layer)
    name = network.value(layer, 1)
    if slope is not None and slope.plain and slope.array.ndim == 1 and slope.array.size > 1 and rank > 2:
        name = network.fixed(f"{layer.name}/slope", slope.array.reshape(-1, *[1] * (rank - 2)))
    network.one(layer, "PRelu", [network.value(layer, 0), name])


def _hard_sigmoid(network: Network, layer: Layer) -> None:
    alpha, beta = (1 / 6, 0.5) if layer.kind == "HSigmoid" else (_scalar(network, layer, 1), _scalar(network, layer, 2))
    network.one(layer, "HardSigmoid", [network.value(layer, 0)], alpha=alpha, beta=beta)


def _opposite(network: Network, layer: Layer) -> None:
    network.one(layer, "Not", [network.between(layer, "Equal", _values(network, layer))])


def _squared_difference(network: Network, layer: Layer) -> None:
    made = network.between(layer, "Sub", _values(network, layer))
    network.one(layer, "Mul", [made, made])


def _mod(network: Network, layer: Layer) -> None:
    real = TYPES[network.dtype(layer)].kind == "f"
    if layer.kind == "FloorMod" and real:
        one, other = _values(network, layer)
        whole = network.between(layer, "Floor", [network.between(layer, "Div", [one, other])])
        network.one(layer, "Sub", [one, network.between(layer, "Mul", [whole, other])])
    else:
        network.one(layer, "Mod", _values(network, layer), fmod=int(layer.kind == "Mod"))


def _split(network: Network, layer: Layer) -> None:
    axis = int(_scalar(network, layer, 1))
    if layer.kind == "Split":
        network.one(layer, "Split", [network.value(layer, 0)], axis=axis, num_outputs=int(layer.data["num_splits"]))
        return
    sizes = network.constant(layer, 2).reshape(-1).astype(int).tolist()
    whole = network.shape(layer)[axis]
    if -1 in sizes:
        if whole is None:
            raise Untranslatable(layer, "splits an open axis")
        sizes[sizes.index(-1)] = whole - sum(size for size in sizes if size >= 0)
    network.one(layer, "Split", [network.value(layer, 0), network.numbers(layer, "sizes", sizes)], axis=axis)


def _strided_slice(network: Network, layer: Layer) -> None:
    if any(layer.numbers("ellipsis_mask")):
        raise Untranslatable(layer, "has an ellipsis")
    begin, end = (network.stored(layer, number) for number in (1, 2))
    count = network.shape(layer, 1)[0]
    if count is None:
        raise Untranslatable(layer, "slices an unknown number of axes")
    masks = {
        key: (layer.numbers(f"{key}_mask") + [0] * count)[:count] for key in ("begin", "end", "new_axis", "shrink_axis")
    }
    if any(masks["new_axis"]):
        raise Untranslatable(layer, "adds axes")
    far = np.iinfo(np.int64).max
    steps = network.constant(layer, 3).reshape(-1).astype(int).tolist() if len(layer.sources) > 3 else [1] * count
    bounds = []
    for key, stored, number in (("begin", begin, 1), ("end", end, 2)):
        if stored is not None and stored.plain:
            given = stored.array.reshape(-1).astype(int).tolist()
            open_ends = [(far if step > 0 else -far) if key == "end" else (0 if step > 0 else far) for step in steps]
            values = [way if mask else own for own, mask, way in zip(given, masks[key], open_ends, strict=True)]
            if key == "end" and begin is not None:
                first = begin.array.reshape(-1).astype(int).tolist()
                values = [
                    (at + 1 if at != -1 else far) if shrunk else own
                    for own, at, shrunk in zip(values, first, masks["shrink_axis"], strict=True)
                ]
            bounds.append(network.numbers(layer, key, values))
        elif any(masks[key]) or any(masks["shrink_axis"]):
            raise Untranslatable(layer, "has bounds that are computed")
        else:
            bounds.append(network.between(layer, "Cast", [network.value(layer, number)], key, to=onnx_type("i64")))
    inputs = [
        network.value(layer, 0),
        *bounds,
        network.numbers(layer, "axes", range(count)),
        network.numbers(layer, "steps", steps),
    ]
    shrunk = [axis for axis, mask in enumerate(masks["shrink_axis"]) if mask]
    if shrunk:
        made = network.between(layer, "Slice", inputs)
        network.one(layer, "Squeeze", [made, network.numbers(layer, "shrunk", shrunk)])
    else:
        network.one(layer, "Slice", inputs)


def _slice(network: Network, layer: Layer) -> None:
    data, start, stop, step, *axes = _values(network, layer)
    given = axes or [network.numbers(layer, "axes", range(int(network.shape(layer, 1)[0] or 0)))]
    network.one(layer, "Slice", [data, start, stop, *given, step])


def _gather(network: Network, layer: Layer) -> None:
    axis = int(_scalar(network, layer, 2)) if len(layer.sources) > 2 else 0
    if int(layer.data.get("batch_dims", "0")):
        raise Untranslatable(layer, "gathers by batch")
    network.one(layer, "Gather", [network.value(layer, 0), network.value(layer, 1)], axis=axis)


def _scatter_elements(network: Network, layer: Layer) -> None:
    kind = {"sum": "add", "prod": "mul"}.get(layer.data.get("reduction", "none"), layer.data.get("reduction", "none"))
    inputs = [network.value(layer, number) for number in range(3)]
    if layer.kind == "ScatterNDUpdate":
        network.one(layer, "ScatterND", inputs, reduction=kind)
    else:
        network.one(layer, "ScatterElements", inputs, axis=int(_scalar(network, layer, 3)), reduction=kind)


def _shape_of(network: Network, layer: Layer) -> None:
    word = layer.data.get("output_type", "i64")
    if word == "i64":
        network.one(layer, "Shape", [network.value(layer, 0)])
    else:
        network.one(layer, "Cast", [network.between(layer, "Shape", [network.value(layer, 0)])], to=onnx_type(word))


def _broadcast(network: Network, layer: Layer) -> None:
    if layer.data.get("mode", "numpy") not in ("numpy", "bidirectional"):
        raise Untranslatable(layer, f"broadcasts in mode {layer.data.get('mode')}")
    network.one(layer, "Expand", [network.value(layer, 0), _wide(network, layer, 1)])


def _wide(network: Network, layer: Layer, number: int) -> str:
    """Return an operand in int64, as ONNX wants shapes."""
    name = network.value(layer, number)
    if network.dtype(layer, number) == "i64":
        return name
    return network.between(layer, "Cast", [name], f"operand_{number}", to=onnx_type("i64"))


def _pad(network: Network, layer: Layer) -> None:
    mode = layer.data.get("pad_mode", "constant")
    ends = [_wide(network, layer, number) for number in (1, 2)]
    inputs = [network.value(layer, 0), network.between(layer, "Concat", ends, "pads", axis=0)]
    if mode == "constant" and len(layer.sources) > 3:
        inputs.append(network.value(layer, 3))
    network.one(layer, "Pad", inputs, mode=mode)


_MODES = {"nearest": "nearest", "linear_onnx": "linear", "linear": "linear", "cubic": "cubic"}


def _interpolate(network: Network, layer: Layer) -> None:
    mode, old = _MODES.get(layer.data.get("mode", "")), layer.opset == "opset4"
    padded = any(layer.numbers("pads_begin") + layer.numbers("pads_end"))
    if mode is None or padded or layer.flag("antialias") or layer.opset not in ("opset4", "opset11"):
        raise Untranslatable(layer, f"interpolates in mode {layer.data.get('mode')}")
    by_scales, place = layer.data["shape_calculation_mode"] == "scales", 3 if old else 2
    rank = _rank(network, layer)
    axes = network.constant(layer, place).reshape(-1).tolist() if len(layer.sources) > place else list(range(rank))
    number = 2 if by_scales and old else 1
    inputs = [
        network.value(layer, 0),
        "",
        *([network.value(layer, number)] if by_scales else ["", _wide(network, layer, number)]),
    ]
    attributes: dict[str, object] = {"axes": axes, "cubic_coeff_a": float(layer.data.get("cube_coeff", "-0.75"))}
    if mode == "nearest":
        word = layer.data.get("nearest_mode", "round_prefer_floor")
        attributes["nearest_mode"] = "floor" if word == "simple" else word
    place_mode = layer.data.get("coordinate_transformation_mode", "half_pixel")
    network.one(layer, "Resize", inputs, mode=mode, coordinate_transformation_mode=place_mode, **attributes)


def _topk(network: Network, layer: Layer) -> None:
    k = network.between(layer, "Reshape", [_wide(network, layer, 1), network.numbers(layer, "one", [1])], "k")
    values, places = network.results(layer)
    word = layer.data.get("index_element_type", "i32")
    wide = places if word == "i64" else network.fresh(f"{layer.name}/wide")
    largest, ordered = int(layer.data.get("mode", "max") == "max"), int(layer.data.get("sort", "value") != "none")
    if layer.data.get("sort") == "index":
        raise Untranslatable(layer, "sorts by index")
    network.node(
        "TopK",
        layer.name,
        [network.value(layer, 0), k],
        [values, wide],
        axis=int(layer.data["axis"]),
        largest=largest,
        sorted=ordered,
    )
    if wide != places:
        network.node("Cast", f"{layer.name}/places", [wide], [places], to=onnx_type(word))
    network.give(layer, [values, places])


def _cast_result(kind: str, key: str, **keys: Any) -> Write:
    """Return a writer for an operator whose whole numbers have a type of their own."""

    def written(network: Network, layer: Layer) -> None:
        word = layer.data.get(key, "i64")
        made = network.between(layer, kind, _values(network, layer), **keys)
        network.one(layer, "Cast", [made], to=onnx_type(word))

    return written


def _cumsum(network: Network, layer: Layer) -> None:
    axis = network.fixed(f"{layer.name}/axis", np.asarray(int(_scalar(network, layer, 1)), np.int64))
    given = {"exclusive": int(layer.flag("exclusive")), "reverse": int(layer.flag("reverse"))}
    network.one(layer, "CumSum", [network.value(layer, 0), axis], **given)


def _range(network: Network, layer: Layer) -> None:
    word, inputs = layer.data.get("output_type", network.dtype(layer)), _values(network, layer)
    if any(network.dtype(layer, number) != word for number in range(3)):
        inputs = [
            network.between(layer, "Cast", [each], f"operand_{n}", to=onnx_type(word)) for n, each in enumerate(inputs)
        ]
    network.one(layer, "Range", inputs)


def _mvn(network: Network, layer: Layer) -> None:
    value = network.value(layer, 0)
    axes = network.numbers(layer, "axes", network.constant(layer, 1).reshape(-1).tolist())
    centred = network.between(layer, "Sub", [value, network.between(layer, "ReduceMean", [value, axes], keepdims=1)])
    if not layer.flag("normalize_variance"):
        network.one(layer, "Identity", [centred])
        return
    squares = network.between(layer, "Mul", [centred, centred])
    variance = network.between(layer, "ReduceMean", [squares, axes], "variance", keepdims=1)
    network.one(layer, "Div", [centred, _root(network, layer, variance)])


def _root(network: Network, layer: Layer, variance: str) -> str:
    """Return the root of a variance with the epsilon of the layer, inside the root or beside it."""
    epsilon = _real(network, layer, "epsilon", _number(layer, "eps"))
    if layer.data.get("eps_mode", "inside_sqrt").lower() == "inside_sqrt":
        return network.between(layer, "Sqrt", [network.between(layer, "Add", [variance, epsilon])])
    return network.between(layer, "Add", [network.between(layer, "Sqrt", [variance]), epsilon])


def _normalize_l2(network: Network, layer: Layer) -> None:
    value = network.value(layer, 0)
    axes = network.numbers(layer, "axes", network.constant(layer, 1).reshape(-1).tolist())
    squares = network.between(layer, "ReduceSumSquare", [value, axes], keepdims=1)
    epsilon = _real(network, layer, "epsilon", _number(layer, "eps"))
    kind = "Add" if layer.data.get("eps_mode") == "add" else "Max"
    size = network.between(layer, "Sqrt", [network.between(layer, kind, [squares, epsilon])])
    network.one(layer, "Div", [value, size])


def _batch_norm(network: Network, layer: Layer) -> None:
    network.one(layer, "BatchNormalization", _values(network, layer), epsilon=_number(layer, "epsilon"))


def _attention(network: Network, layer: Layer) -> None:
    query, key, value = (network.value(layer, number) for number in range(3))
    rank, last = _rank(network, layer, 1), network.shape(layer)[-1]
    if layer.flag("causal") or rank < 2 or (last is None and len(layer.sources) < 5):
        raise Untranslatable(layer)
    turned = network.between(layer, "Transpose", [key], perm=[*range(rank - 2), rank - 1, rank - 2])
    scale = (
        network.value(layer, 4) if len(layer.sources) > 4 else _real(network, layer, "scale", float(last or 1) ** -0.5)
    )
    scores = network.between(layer, "Mul", [network.between(layer, "MatMul", [query, turned], "scores"), scale])
    if len(layer.sources) > 3:
        mask = network.value(layer, 3)
        if network.dtype(layer, 3) == "boolean":
            low = _real(network, layer, "low", -np.inf)
            mask = network.between(layer, "Where", [mask, _real(network, layer, "zero", 0.0), low])
        scores = network.between(layer, "Add", [scores, mask])
    network.one(layer, "MatMul", [network.between(layer, "Softmax", [scores], axis=-1), value])


def _nothing(network: Network, layer: Layer) -> None:
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
    "Split": _split,
    "VariadicSplit": _split,
    "StridedSlice": _strided_slice,
    "Slice": _slice,
    "Gather": _gather,
    "ScatterNDUpdate": _scatter_elements,
    "ScatterElementsUpdate": _scatter_elements,
    "ShapeOf": _shape_of,
    "Broadcast": _broadcast,
    "Pad": _pad,
    "Interpolate": _interpolate,
    "TopK": _topk,
    "NonZero": _cast_result("NonZero", "output_type"),
    "CumSum": _cumsum,
    "Range": _range,
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
"""By type of a layer, what writes it."""
