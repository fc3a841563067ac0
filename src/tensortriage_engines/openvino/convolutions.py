"""Convolutions and poolings of OpenVINO as ONNX: weights of groups have an axis more, biases are added behind."""

from collections.abc import Sequence

from tensortriage_engines.openvino.intermediate import Layer
from tensortriage_engines.openvino.network import OnnxGraph, Untranslatable

_AUTO = {"same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def convolution(network: OnnxGraph, layer: Layer) -> None:
    """Write a Conv."""
    weight, group = _weight(network, layer)
    spatial = len(network.shape(layer)) - 2
    network.one(
        layer,
        "Conv",
        [network.value(layer, 0), weight],
        group=group,
        **_window(layer, network.shape(layer, 1)[-spatial:]),
    )


def transposed(network: OnnxGraph, layer: Layer) -> None:
    """Write a ConvTranspose."""
    weight, group = _weight(network, layer)
    attributes = _window(layer, network.shape(layer, 1)[2 - len(network.shape(layer)) :])
    if any(added := layer.numbers("output_padding")):
        attributes["output_padding"] = added
    if len(layer.sources) > 2:
        attributes["output_shape"] = network.constant(layer, 2).reshape(-1).tolist()
    network.one(layer, "ConvTranspose", [network.value(layer, 0), weight], group=group, **attributes)


def biased(network: OnnxGraph, layer: Layer) -> bool:
    """Return whether an Add is the bias of a convolution, and became a part of it."""
    for number in (0, 1):
        bias, rank = network.stored(layer, number), len(network.shape(layer, 1 - number))
        if bias is None or bias.scale is not None or network.stored(layer, 1 - number) or rank < 3:
            continue
        conv = network.makers.get(network.value(layer, 1 - number))
        sizes = [1] * (rank - bias.array.ndim) + list(bias.array.shape)
        if conv is None or conv.op_type not in ("Conv", "ConvTranspose") or len(conv.input) != 2:
            continue
        if not network.read_once(layer, 1 - number) or any(size != 1 for axis, size in enumerate(sizes) if axis != 1):
            continue
        channels = network.shape(layer, 1 - number)[1]
        if sizes[1] != channels:
            continue
        flat = bias.then(bias.name, array=bias.array.reshape(-1))
        network.joined(layer, conv, network.written(flat, network.fresh(flat.name)))
        return True
    return False


def pool(network: OnnxGraph, layer: Layer) -> None:
    """Write a MaxPool or an AveragePool."""
    attributes = _window(layer, layer.numbers("kernel"))
    attributes["ceil_mode"] = int(layer.data.get("rounding_type", "floor").startswith("ceil"))
    value = network.value(layer, 0)
    if layer.kind == "AvgPool":
        attributes.pop("dilations")
        counted = int(not layer.flag("exclude-pad"))
        network.one(layer, "AveragePool", [value], count_include_pad=counted, **attributes)
        return
    made, *places = network.results(layer)
    network.node("MaxPool", layer.name, [value], [made], **attributes)
    network.give(layer, [made, *places])  # whoever reads the places finds that no node makes them


def _window(layer: Layer, kernel: Sequence[int | None]) -> dict[str, object]:
    strides = layer.numbers("strides")
    found: dict[str, object] = {"strides": strides, "dilations": layer.numbers("dilations", [1] * len(strides))}
    if None not in kernel:
        found["kernel_shape"] = list(kernel)
    auto = _AUTO.get(layer.data.get("auto_pad", "explicit").lower())
    if auto is None:
        found["pads"] = [*layer.numbers("pads_begin"), *layer.numbers("pads_end")]
    else:
        found["auto_pad"] = auto
    return found


def _weight(network: OnnxGraph, layer: Layer) -> tuple[str, int]:
    """Return the name of a convolution's weight, and the number of groups."""
    if not layer.kind.startswith("Group"):
        return network.value(layer, 1), 1
    shape = network.shape(layer, 1)
    groups, first, *rest = shape
    if groups is None or first is None:
        raise Untranslatable(layer, "has groups of unknown number")
    wanted = [int(size or -1) for size in (groups * first, *rest)]
    stored = network.stored(layer, 1)
    joined = stored.reshaped(stored.name, wanted) if stored is not None else None
    if joined is not None:
        return network.written(joined, network.fresh(joined.name)), groups
    return network.between(
        layer, "Reshape", [network.value(layer, 1), network.numbers(layer, "shape", wanted)], "weight"
    ), groups
