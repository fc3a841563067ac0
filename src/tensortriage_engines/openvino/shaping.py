"""Operators of OpenVINO that choose, move, pad, resample or order numbers, as ONNX."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensortriage_engines.openvino.intermediate import Layer
from tensortriage_engines.openvino.network import OnnxGraph, Untranslatable, onnx_type
from tensortriage_engines.openvino.operands import int64_operand, operand_names, rank_of, scalar_of

Write = Callable[[OnnxGraph, Layer], None]


def split(network: OnnxGraph, layer: Layer) -> None:
    """Write a Split into equal parts, or parts of given sizes."""
    axis = int(scalar_of(network, layer, 1))
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


def strided_slice(network: OnnxGraph, layer: Layer) -> None:
    """Write a StridedSlice as Slice, and Squeeze where axes shrink."""
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


def slice_of(network: OnnxGraph, layer: Layer) -> None:
    """Write a Slice."""
    data, start, stop, step, *axes = operand_names(network, layer)
    given = axes or [network.numbers(layer, "axes", range(int(network.shape(layer, 1)[0] or 0)))]
    network.one(layer, "Slice", [data, start, stop, *given, step])


def gather(network: OnnxGraph, layer: Layer) -> None:
    """Write a Gather."""
    axis = int(scalar_of(network, layer, 2)) if len(layer.sources) > 2 else 0
    if int(layer.data.get("batch_dims", "0")):
        raise Untranslatable(layer, "gathers by batch")
    network.one(layer, "Gather", [network.value(layer, 0), network.value(layer, 1)], axis=axis)


def scatter_elements(network: OnnxGraph, layer: Layer) -> None:
    """Write a ScatterElements or ScatterND."""
    kind = {"sum": "add", "prod": "mul"}.get(layer.data.get("reduction", "none"), layer.data.get("reduction", "none"))
    inputs = [network.value(layer, number) for number in range(3)]
    if layer.kind == "ScatterNDUpdate":
        network.one(layer, "ScatterND", inputs, reduction=kind)
    else:
        network.one(layer, "ScatterElements", inputs, axis=int(scalar_of(network, layer, 3)), reduction=kind)


def shape_of(network: OnnxGraph, layer: Layer) -> None:
    """Write a Shape."""
    word = layer.data.get("output_type", "i64")
    if word == "i64":
        network.one(layer, "Shape", [network.value(layer, 0)])
    else:
        network.one(layer, "Cast", [network.between(layer, "Shape", [network.value(layer, 0)])], to=onnx_type(word))


def broadcast(network: OnnxGraph, layer: Layer) -> None:
    """Write an Expand."""
    if layer.data.get("mode", "numpy") not in ("numpy", "bidirectional"):
        raise Untranslatable(layer, f"broadcasts in mode {layer.data.get('mode')}")
    network.one(layer, "Expand", [network.value(layer, 0), int64_operand(network, layer, 1)])


def pad(network: OnnxGraph, layer: Layer) -> None:
    """Write a Pad."""
    mode = layer.data.get("pad_mode", "constant")
    ends = [int64_operand(network, layer, number) for number in (1, 2)]
    inputs = [network.value(layer, 0), network.between(layer, "Concat", ends, "pads", axis=0)]
    if mode == "constant" and len(layer.sources) > 3:
        inputs.append(network.value(layer, 3))
    network.one(layer, "Pad", inputs, mode=mode)


_MODES = {"nearest": "nearest", "linear_onnx": "linear", "linear": "linear", "cubic": "cubic"}


def interpolate(network: OnnxGraph, layer: Layer) -> None:
    """Write a Resize."""
    mode, old = _MODES.get(layer.data.get("mode", "")), layer.opset == "opset4"
    padded = any(layer.numbers("pads_begin") + layer.numbers("pads_end"))
    if mode is None or padded or layer.flag("antialias") or layer.opset not in ("opset4", "opset11"):
        raise Untranslatable(layer, f"interpolates in mode {layer.data.get('mode')}")
    by_scales, place = layer.data["shape_calculation_mode"] == "scales", 3 if old else 2
    rank = rank_of(network, layer)
    axes = network.constant(layer, place).reshape(-1).tolist() if len(layer.sources) > place else list(range(rank))
    number = 2 if by_scales and old else 1
    inputs = [
        network.value(layer, 0),
        "",
        *([network.value(layer, number)] if by_scales else ["", int64_operand(network, layer, number)]),
    ]
    attributes: dict[str, object] = {"axes": axes, "cubic_coeff_a": float(layer.data.get("cube_coeff", "-0.75"))}
    if mode == "nearest":
        word = layer.data.get("nearest_mode", "round_prefer_floor")
        attributes["nearest_mode"] = "floor" if word == "simple" else word
    place_mode = layer.data.get("coordinate_transformation_mode", "half_pixel")
    network.one(layer, "Resize", inputs, mode=mode, coordinate_transformation_mode=place_mode, **attributes)


def topk(network: OnnxGraph, layer: Layer) -> None:
    """Write a TopK."""
    k = network.between(layer, "Reshape", [int64_operand(network, layer, 1), network.numbers(layer, "one", [1])], "k")
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


def cast_result(kind: str, key: str, **keys: Any) -> Write:
    """Return a writer for an operator whose whole numbers have a type of their own."""

    def written(network: OnnxGraph, layer: Layer) -> None:
        word = layer.data.get(key, "i64")
        made = network.between(layer, kind, operand_names(network, layer), **keys)
        network.one(layer, "Cast", [made], to=onnx_type(word))

    return written


def cumsum(network: OnnxGraph, layer: Layer) -> None:
    """Write a CumSum."""
    axis = network.fixed(f"{layer.name}/axis", np.asarray(int(scalar_of(network, layer, 1)), np.int64))
    given = {"exclusive": int(layer.flag("exclusive")), "reverse": int(layer.flag("reverse"))}
    network.one(layer, "CumSum", [network.value(layer, 0), axis], **given)


def range_of(network: OnnxGraph, layer: Layer) -> None:
    """Write a Range."""
    word, inputs = layer.data.get("output_type", network.dtype(layer)), operand_names(network, layer)
    if any(network.dtype(layer, number) != word for number in range(3)):
        inputs = [
            network.between(layer, "Cast", [each], f"operand_{n}", to=onnx_type(word)) for n, each in enumerate(inputs)
        ]
    network.one(layer, "Range", inputs)
