"""A model as text in the layout of ``polygraphy inspect model``, for scripts that read it.

The layout follows the output of Polygraphy 0.53.6: sections of the interface, initializers and nodes; tensors as
``{name [dtype=float32, shape=(1, 3)]}``; attributes behind the name of their node.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import click
import numpy as np
import onnx
from onnx import numpy_helper

from tensortriage.sdk import ModelError, TriageError, ValueFacts, declared_value, printable, stored_tensor

_UNREADABLE = "<error: failed to load weights>"
_GRAPH, _TENSOR, _STRING = onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR, onnx.AttributeProto.STRING
_STRINGS, _FLOATS, _INTS = onnx.AttributeProto.STRINGS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS


def print_listing(
    path: Path,
    show: Collection[str],
    external_data_dir: Path | None,
    *,
    unbounded: bool,
    infer_shapes: bool,
    unseen: bool,
) -> None:
    """Print the model in Polygraphy's layout."""
    from tensortriage.api import Model
    from tensortriage.sdk import read_message, unbounded_sizes, value_specs

    click.echo(f"[I] Loading model: {printable(str(path.absolute()))}")
    message = read_message(path).proto
    loaded: list[Model] = []
    if unbounded or infer_shapes or ("weights" in show and not unseen):
        loaded.append(Model.load(path, external_data_dir=external_data_dir))

    def weight(name: str) -> np.ndarray:
        if loaded and (array := loaded[0].graph.weight(name)) is not None:
            return array
        click.echo("[E] Failed to load weights.\n    Note: Error was: external data are ignored")
        raise ModelError(
            "external data are ignored", slug="external-data-missing", cure="leave out --ignore-external-data"
        )

    specs = value_specs(loaded[0], refine=True).values() if infer_shapes else ()
    inferred = [ValueFacts(spec.name, spec.dtype.label if spec.dtype else "", spec.shape) for spec in specs]
    lines = list(polygraphy_listing(message, show, weight, inferred))
    while not lines[-1].strip():
        lines.pop()
    click.echo("\n".join(["[I] " + lines[0], *map(printable, lines[1:])]))
    if unbounded:
        found = [row.value for row in unbounded_sizes(loaded[0].graph)]
        click.echo(f"[I] Found tensors with unbounded DDS: {found}")


def polygraphy_listing(
    proto: onnx.ModelProto,
    show: Collection[str],
    weight: Callable[[str], np.ndarray],
    inferred: Sequence[ValueFacts] = (),
) -> Iterator[str]:
    """Yield the lines, without line ends.

    Args:
        proto: The model.
        show: ``layers``, ``attrs`` and ``weights``, as of ``--show``.
        weight: Returns a weight that is stored outside the file; its `TriageError` replaces the numbers.
        inferred: Types and shapes of values that the file does not declare.
    """
    opsets = {each.domain: each.version for each in proto.opset_import}
    opset = opsets.pop("", None) or opsets.pop("ai.onnx", "")
    others = f" | Other Opsets: {opsets}" if opsets else ""
    yield "==== ONNX Model ===="
    yield f"    Name: {proto.graph.name} | ONNX Opset: {opset}{others}"
    yield "    "
    yield from _indented(
        _graph(proto.graph, "Graph", show, {value.name: _tensor(value) for value in inferred}, weight), 4
    )


def _graph(
    graph: onnx.GraphProto,
    word: str,
    show: Collection[str],
    outer: Mapping[str, str],
    weight: Callable[[str], np.ndarray],
) -> Iterator[str]:
    stored = {tensor.name: tensor for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in stored]
    known = dict(outer)
    known |= {info.name: _tensor(declared_value(info)) for info in (*graph.value_info, *graph.input, *graph.output)}
    known |= {name: f"Initializer | {_stored(tensor)}" for name, tensor in stored.items()}
    for title, infos in (("Input", inputs), ("Output", list(graph.output))):
        yield f"---- {len(infos)} {word} {title}(s) ----"
        yield from _set([_tensor(declared_value(info)) for info in infos])
        yield ""
    yield f"---- {len(stored)} Initializer(s) ----"
    if "weights" in show and stored:
        for tensor in stored.values():
            yield f"Initializer | {_stored(tensor, list)} | Values:"
            yield from _indented(_values(tensor, weight), 4)
            yield ""
    elif {"layers", "weights"} & {*show}:
        yield from _set([_stored(tensor) for tensor in stored.values()])
        yield ""
    else:
        yield ""
    yield f"---- {len(graph.node)} Node(s) ----"
    for index, node in enumerate(graph.node if "layers" in show else ()):
        yield f"Node {index:<4} | {node.name} [Op: {node.op_type}]"
        yield from _indented(_node(node, show, known, weight), 4)
        yield ""


def _node(
    node: onnx.NodeProto, show: Collection[str], known: Mapping[str, str], weight: Callable[[str], np.ndarray]
) -> Iterator[str]:
    operands = list(_set([known.get(name, name) for name in node.input]))
    made = list(_set([known.get(name, name) for name in node.output]))
    if not node.input:
        yield f"{{}} -> {made[0]}"
    else:
        yield from operands
        yield f" -> {made[0]}"
    yield from _indented(made[1:], 4)
    if "attrs" not in show or not node.attribute:
        return
    yield "---- Attributes ----"
    prefix = f"{node.name}." if node.name else ""
    for attribute in sorted(node.attribute, key=lambda each: each.name):
        head = f"{prefix}{attribute.name} = "
        if attribute.type == _GRAPH:
            yield head
            yield from _indented(_graph(attribute.g, "Subgraph", show, known, weight), 8)
        elif attribute.type == _TENSOR:
            facts = stored_tensor(attribute.t, "")
            ending = " | Values:" if "weights" in show else ""
            yield f"{head}Tensor: [dtype={facts.dtype.label}, shape={[*facts.shape]}]{ending}"
            yield from _indented(_values(attribute.t, weight) if ending else (), 4)
        else:
            yield f"{head}{_plain(attribute)}"


def _plain(attribute: onnx.AttributeProto) -> object:
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == _STRING:
        return value.decode("utf-8", "replace")
    if attribute.type == _STRINGS:
        return [each.decode("utf-8", "replace") for each in value]
    return list(value) if attribute.type in (_FLOATS, _INTS) else value


def _values(tensor: onnx.TensorProto, weight: Callable[[str], np.ndarray]) -> Sequence[str]:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return str(numpy_helper.to_array(tensor)).splitlines()
    try:
        return str(weight(tensor.name)).splitlines()
    except TriageError:
        return [_UNREADABLE]


def _tensor(value: ValueFacts) -> str:
    if not value.type:
        return value.name
    shape = tuple(-1 if size is None else size for size in value.shape or ())  # of an unknown rank as of a scalar
    return f"{value.name} [dtype={value.type}, shape={shape}]"


def _stored(tensor: onnx.TensorProto, brackets: type = tuple) -> str:
    facts = stored_tensor(tensor, tensor.name)
    return f"{facts.name} [dtype={facts.dtype.label}, shape={brackets(facts.shape)}]"


def _set(items: Sequence[str]) -> Iterator[str]:
    for index, item in enumerate(items or [""]):
        start = "{" if index == 0 else " "
        yield start + item + ("}" if index == max(len(items), 1) - 1 else ",")


def _indented(lines: Iterator[str] | Sequence[str], width: int) -> Iterator[str]:
    for line in lines:
        yield " " * width + line
