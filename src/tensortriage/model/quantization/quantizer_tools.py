"""How to leave ops unquantized in the words of the tool that quantized a file: a line to put into its script.

Tools are told by what they write: the producer, metadata (NNCF's stand in OpenVINO's files), names of quantizers.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model


@frozen_dataclass
class QuantizerTool:
    """A tool that quantizes.

    Attributes:
        title: Its name.
        made: Whether it made a file.
        line: What leaves nodes out, of their names.
    """

    title: str
    made: Callable[[Model], bool]
    line: Callable[[Sequence[str]], str]


def _named(pattern: str) -> Callable[[Model], bool]:
    """Return whether a quantizer of a file has a name in which a pattern is found."""
    found = re.compile(pattern)
    return lambda model: any(
        node.op_type == "QuantizeLinear" and found.search(node.name) is not None for node in model.graph.nodes
    )


def _noted(word: str) -> Callable[[Model], bool]:
    """Return whether a file's producer, or a key of its metadata, begins with a word."""
    return lambda model: any(
        each.startswith(word) for each in ((model.ir.producer_name or "").lower(), *model.ir.metadata_props)
    )


def _any(*ways: Callable[[Model], bool]) -> Callable[[Model], bool]:
    return lambda model: any(way(model) for way in ways)


def _modules(names: Sequence[str]) -> list[str]:
    """Return the modules of the source network that nodes are of, by the names that PyTorch's exporters give."""
    return list(
        dict.fromkeys(name.strip("/").rpartition("/")[0].replace("/", ".") or name.strip("/") for name in names)
    )


TOOLS: tuple[QuantizerTool, ...] = (
    QuantizerTool(
        "NNCF's weight compression",
        _noted("nncf/weight_compression"),
        lambda names: f"nncf.compress_weights(..., ignored_scope=nncf.IgnoredScope(names={list(names)}))",
    ),
    QuantizerTool(
        "NNCF",
        _any(_noted("nncf"), _named(r"^QuantizeLinear_.+_\d+$")),
        lambda names: f"nncf.quantize(..., ignored_scope=nncf.IgnoredScope(names={list(names)}))",
    ),
    QuantizerTool(
        "AIMET",
        _any(_noted("aimet"), lambda model: any(node.op_type == "QcQuantizeOp" for node in model.graph.nodes)),
        lambda names: (
            f"sim.exclude_layers_from_quantization([{', '.join(f'model.{each}' for each in _modules(names))}])"
        ),
    ),
    QuantizerTool(
        "Model Optimizer",
        _any(_noted("modelopt"), _named(r"_quantizer/")),
        lambda names: "; ".join(f"mtq.disable_quantizer(model, '*{each}*')" for each in _modules(names)),
    ),
    QuantizerTool(
        "ONNX Runtime's dynamic quantization",
        lambda model: any(node.op_type == "DynamicQuantizeLinear" for node in model.graph.nodes),
        lambda names: f"quantize_dynamic(..., nodes_to_exclude={list(names)})",
    ),
    QuantizerTool(
        "ONNX Runtime",
        _any(_noted("onnx.quantize"), _named(r"_QuantizeLinear(_\d+)?$")),
        lambda names: f"quantize_static(..., nodes_to_exclude={list(names)})",
    ),
)
"""Tools, the surest signs first."""

_STEPS = ("QuantizeLinear", "DequantizeLinear")


def excluding(file: Model, nodes: Iterable[str]) -> tuple[str, ...]:
    """Return the line that leaves nodes of a quantized file in float; none where the tool is unknown.

    Args:
        file: The file.
        nodes: Names of nodes that quantizers round the operands or results of, or of these quantizers.
    """
    tool = next((each for each in TOOLS if each.made(file)), None)
    names = list(dict.fromkeys(_meant(file, name) for name in nodes))
    return (tool.line(names),) if tool is not None and names else ()


def corrects_biases(file: Model) -> bool:
    """Return whether the quantizing tool declares in the file that it corrected the biases for rounding."""
    return file.ir.metadata_props.get("nncf/quantization/fast_bias_correction", "") != ""


def _meant(file: Model, name: str) -> str:
    """Return the op whose result a quantizer rounds; of one that rounds an input or a weight, the op that reads it."""
    graph = file.graph
    if name not in graph or graph.node(name).op_type not in _STEPS:
        return name
    node = graph.node(name)
    made = graph.producer(node.inputs[0])
    while made is not None and made.op_type in _STEPS:
        made = graph.producer(made.inputs[0])
    if made is not None:
        return made.name
    while node.op_type in _STEPS and (readers := graph.consumers(node.outputs[0])):
        node = readers[0]
    return node.name
