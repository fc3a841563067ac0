"""A whole file as an ONNX model with the inputs and outputs of its source model."""

from collections.abc import Sequence

import onnx

from tensortriage.engines.sdk import DType, Model, ValueSpec
from tensortriage_engines.arrangement import Arrangement, Placed
from tensortriage_engines.openvino.intermediate import Intermediate, Layer, Port
from tensortriage_engines.openvino.network import OnnxGraph, onnx_type
from tensortriage_engines.openvino.operators import write

Side = Sequence[ValueSpec]


def ends_of(
    file: Intermediate, declared: tuple[Side, Side]
) -> tuple[tuple[Side, Side], tuple[Sequence[Layer], Sequence[Layer]]]:
    """Return inputs and outputs of a file, and the layers that they are.

    Args:
        file: The parsed file.
        declared: Inputs and outputs of the model, whose names are preferred.
    """
    by_number = {layer.number: layer for layer in file.layers}
    inputs = sorted((layer for layer in file.layers if layer.kind == "Parameter"), key=lambda layer: layer.number)
    outputs = sorted((layer for layer in file.layers if layer.kind == "Result"), key=lambda layer: layer.number)
    given = [_spec(layer.name, layer.ports[0], declared[0]) for layer in inputs]
    made = [
        _spec(by_number[number].name, by_number[number].ports[port], declared[1])
        for number, port in (layer.sources[0] for layer in outputs)
    ]
    return (given, made), (inputs, outputs)


def translated(file: Intermediate, model: Model, way: Arrangement, declared: tuple[Side, Side]) -> onnx.ModelProto:
    """Return a file as ONNX.

    Args:
        file: The parsed file.
        model: The model that it was made of.
        way: How its inputs and outputs are the model's.
        declared: Inputs and outputs of the model.

    Raises:
        Untranslatable: When a layer has no form in ONNX here.
    """
    (fed, given), (inputs, outputs) = ends_of(file, declared)
    ends = {spec.name: layer.sources[0] for spec, layer in zip(given, outputs, strict=True)}
    direct = [(each.spec.name, None) for each in way.inputs]
    reserved = [(each.spec.name, _direct(each, ends[each.held.name], file)) for each in way.outputs]
    network = OnnxGraph(file, frozenset(model.graph.values), [*direct, *reserved])
    placed = {layer.number: _placed(spec, way.inputs) for spec, layer in zip(fed, inputs, strict=True)}
    for layer in file.layers:
        if layer.kind == "Parameter":
            network.fed(layer, placed[layer.number])
        elif layer.kind != "Result":
            write(network, layer)
    return network.model(way, ends)


def _placed(spec: ValueSpec, inputs: Sequence[Placed]) -> Placed:
    return next(each for each in inputs if each.held.name == spec.name)


def _direct(each: Placed, source: tuple[int, int], file: Intermediate) -> tuple[int, int] | None:
    """Return the file's value of an output, unless it is rearranged or converted."""
    layer = next(layer for layer in file.layers if layer.number == source[0])
    moved = each.moved or (
        each.spec.dtype is not None and onnx_type(layer.ports[source[1]].dtype) != each.spec.dtype.value
    )
    return None if moved or layer.kind in ("Parameter", "Const") else source


def _spec(name: str, port: Port, declared: Side) -> ValueSpec:
    """Return an input or output by the model's name, where it has that, else by its own."""
    names = [*port.names, name]
    known = {spec.name for spec in declared}
    chosen = next((each for each in names if each in known), names[0])
    return ValueSpec(chosen, DType(onnx_type(port.dtype)), tuple(port.shape))
