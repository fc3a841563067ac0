"""One mistake in the nodes of a rewritten file: an attribute, an operator, an order."""

from collections.abc import Callable, Mapping

import onnx
from onnx import helper
from truth_files_mistakes import File, Mistake, Place


def _value(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _set(node: onnx.NodeProto, name: str, value: object) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def _on(*ops: str) -> Callable[[Callable[[File, onnx.NodeProto], bool]], Mistake]:
    def enter(change: Callable[[File, onnx.NodeProto], bool]) -> Mistake:
        def made(file: File) -> Place | None:
            return next((Place((node.name,)) for node in file.of(*ops) if change(file, node)), None)

        return made

    return enter


def _heads(count: int) -> Mistake:
    @_on("Attention", "MultiHeadAttention")
    def change(file: File, node: onnx.NodeProto) -> bool:
        _set(node, "num_heads", count)
        return True

    return change


@_on("LayerNormalization", "SkipLayerNormalization", "EmbedLayerNormalization")
def _epsilon(file: File, node: onnx.NodeProto) -> bool:
    _set(node, "epsilon", 1e-2)
    return True


@_on("Attention")
def _causal(file: File, node: onnx.NodeProto) -> bool:
    _set(node, "unidirectional", 1)
    return True


@_on("BiasGelu", "Gelu")
def _by_tanh(file: File, node: onnx.NodeProto) -> bool:
    """Compute GELU by its approximation."""
    node.op_type, node.domain = "FastGelu", "com.microsoft"
    del node.attribute[:]
    return True


@_on("FastGelu", "BiasGelu", "Gelu")
def _by_sigmoid(file: File, node: onnx.NodeProto) -> bool:
    """Compute GELU by the coarse approximation of CLIP, which takes no bias."""
    if len(node.input) > 1:
        return False
    node.op_type, node.domain = "QuickGelu", "com.microsoft"
    del node.attribute[:]
    return True


def _relu_missing(file: File) -> Place | None:
    for node in file.of("FusedConv", "FusedGemm"):
        if _value(node, "activation") is not None:
            node.attribute.remove(_value(node, "activation"))
            return Place((node.name,))
    for node in file.of("Relu", "Clip"):
        readers = tuple(reader.name for reader in file.readers(node.output[0]))
        producers = tuple(other.name for other in file.graph.node if node.input[0] in other.output)
        if readers and node.output[0] not in {output.name for output in file.graph.output}:
            for reader in file.readers(node.output[0]):
                for index, name in enumerate(reader.input):
                    if name == node.output[0]:
                        reader.input[index] = node.input[0]
            file.graph.node.remove(node)
            return Place((node.name, *producers, *readers))
    return None


@_on("Concat", "QLinearConcat")
def _order(file: File, node: onnx.NodeProto) -> bool:
    if node.op_type == "Concat" and len(node.input) == 2 and not set(node.input) & set(file.tensors):
        node.input[0], node.input[1] = node.input[1], node.input[0]
        return True
    if node.op_type == "QLinearConcat" and len(node.input) == 8:
        names = [*node.input]
        for index in range(3):
            node.input[2 + index], node.input[5 + index] = names[5 + index], names[2 + index]
        return True
    return False


@_on("Softmax")
def _softmax(file: File, node: onnx.NodeProto) -> bool:
    _set(node, "axis", -2)
    return True


@_on("Transpose")
def _perm(file: File, node: onnx.NodeProto) -> bool:
    """Leave the heads where they are when they are put together, as a wrong permutation does; the sizes still fit."""
    attribute = _value(node, "perm")
    readers = file.readers(node.output[0])
    joins = bool(readers) and all(reader.op_type == "Reshape" for reader in readers)
    if attribute is None or list(attribute.ints) != [0, 2, 1, 3] or not joins:
        return False
    _set(node, "perm", [0, 1, 2, 3])
    return True


@_on("Resize")
def _resampling(file: File, node: onnx.NodeProto) -> bool:
    if (mode := _value(node, "mode")) is None or mode.s != b"linear":
        return False
    _set(node, "coordinate_transformation_mode", "asymmetric")
    return True


@_on("FusedMatMul")
def _alpha(file: File, node: onnx.NodeProto) -> bool:
    if (alpha := _value(node, "alpha")) is None or alpha.f == 1:
        return False
    _set(node, "alpha", 1.0)
    return True


@_on("AveragePool", "QLinearAveragePool")
def _window(file: File, node: onnx.NodeProto) -> bool:
    """Shift the window of a pool by a padding at its beginning."""
    shape = _value(node, "kernel_shape")
    if shape is None or list(shape.ints) != [2, 2]:
        return False
    _set(node, "pads", [1, 1, 0, 0])
    _set(node, "count_include_pad", 0)
    return True


STRUCTURE: Mapping[str, Mistake] = {
    "heads-2": _heads(2), "heads-8": _heads(8), "epsilon": _epsilon, "causal": _causal, "gelu-tanh": _by_tanh,
    "gelu-quick": _by_sigmoid, "relu-missing": _relu_missing, "concat-order": _order, "softmax-axis": _softmax,
    "perm": _perm, "resampling": _resampling, "alpha": _alpha, "window": _window,
}  # fmt: skip
"""Mistakes in nodes."""
