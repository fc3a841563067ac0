"""A model as text: its contents on one screen, or every node on a few lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensortriage.sdk import Line, Looks, RepeatedBlock, ValueFacts, count, listing, magnitude, size, some
from tensortriage_inspect.node_listing import LayerFacts
from tensortriage_inspect.summary import ModelSummary

MOST_ROWS = 12


def summary_lines(summary: ModelSummary) -> Iterator[Line]:
    """Yield the lines of a summary."""
    producer = f", by {summary.producer}" if summary.producer else ""
    opsets = ", ".join(f"{domain} {version}" for domain, version in summary.opsets.items())
    name = summary.name or "(unnamed)"
    yield f"{summary.path}: graph {name}, IR {summary.ir_version}{producer}"
    inner = f" ({summary.all_nodes:,} with bodies and functions)" if summary.all_nodes != summary.nodes else ""
    yield f"  opset       {opsets}"
    yield f"  nodes       {summary.nodes:,}{inner}, {count(len(summary.ops), 'operator')}"
    yield f"  parameters  {summary.parameters:,} in {size(summary.parameter_bytes)}: {_dtypes(summary)}"
    yield f"  file        {size(summary.file_bytes)}{_external(summary)}"
    yield from _values("inputs", summary.inputs)
    yield from _values("outputs", summary.outputs)
    yield from _dims(summary)
    yield from _ops(summary)
    yield from _blocks(summary.blocks)
    yield from _bodies(summary)
    if summary.functions:
        yield f"functions ({len(summary.functions)})"
        rows = [(f.name, count(f.nodes, "node"), count(f.calls, "call")) for f in summary.functions]
        yield from _listing(rows, Looks.TEXT, Looks.NUMBER, Looks.NUMBER)


def layer_lines(layers: Iterable[LayerFacts], *, attributes: bool) -> Iterator[str]:
    """Yield the lines of a listing."""
    where = ""
    for layer in layers:
        if layer.where != where:
            where = layer.where
            yield f"in {where}" if where else "in the main graph"
        yield f"node {layer.index}  {layer.op_type}  {layer.name or '(unnamed)'}"
        if origin := layer.origin.beside(layer.name):
            yield f"     from {origin}"
        for arrow, values in (("<-", layer.inputs), ("->", layer.outputs)):
            for value in values:
                yield f"  {arrow} {value_text(value)}"
        if attributes:
            for name, text in layer.attributes.items():
                yield f"     {name} = {text}"


def value_text(value: ValueFacts) -> str:
    """Return name, type and shape of a value."""
    if not value.name:
        return "(omitted)"
    return " ".join(filter(None, (value.name, value.type, shape_text(value.shape))))


def shape_text(shape: Sequence[int | str | None] | None) -> str:
    """Return a shape; ``?`` is an unknown dimension, nothing an unknown rank."""
    if shape is None:
        return ""
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"


def _dtypes(summary: ModelSummary) -> str:
    return ", ".join(f"{row.dtype} {size(row.nbytes)}" for row in summary.dtypes) or "none"


def _external(summary: ModelSummary) -> str:
    if not summary.external:
        return ""
    texts = [
        f"{file.location} {'MISSING' if file.file_bytes is None else size(file.file_bytes)}"
        for file in summary.external
    ]
    return f", weights in {some(texts, 3)}"


def _values(title: str, values: Sequence[ValueFacts]) -> Iterator[Line]:
    yield f"{title} ({len(values)})"
    rows = [(v.name, v.type or "?", shape_text(v.shape) or "rank unknown") for v in values]
    yield from _listing(rows, Looks.TEXT, Looks.TEXT, Looks.TEXT)


def _dims(summary: ModelSummary) -> Iterator[Line]:
    if summary.symbols or summary.unknown_dims:
        yield "dynamic dimensions of the inputs"
        rows = [*summary.symbols.items(), *([("?", summary.unknown_dims)] if summary.unknown_dims else [])]
        yield from _listing([(name, some(places, 4)) for name, places in rows], Looks.TEXT, Looks.TEXT)


def _ops(summary: ModelSummary) -> Iterator[Line]:
    yield "operators, with the parameters they are the first to compute with"
    heaviest = sorted(summary.ops, key=lambda row: -row.parameter_bytes)[:MOST_ROWS]
    shown = {row.op_type for row in (*summary.ops[:MOST_ROWS], *heaviest[:4])}
    rows = [
        (row.op_type, f"{row.nodes:,}", size(row.parameter_bytes) if row.parameters else "")
        for row in summary.ops
        if row.op_type in shown
    ]
    yield from listing(rows, Looks.TEXT, Looks.NUMBER, Looks.NUMBER)
    yield from _more(len(summary.ops), len(rows))


def _blocks(blocks: Sequence[RepeatedBlock]) -> Iterator[str]:
    if blocks:
        yield "repeated blocks"
    for block in blocks:
        shapes = "" if block.same_parameter_shapes else ", parameters of different shapes"
        yield f"  {block.copies} x {count(block.nodes_per_copy, 'node')}{shapes}: {_op_counts(block.op_counts)}"
        ends = (block.scopes[0], block.scopes[-1])
        label = ends if all(ends) and ends[0] != ends[1] else (block.first_nodes[0], block.first_nodes[-1])
        if all(label):
            yield f"      from {label[0]} to {label[1]}"


def _op_counts(op_counts: Mapping[str, int]) -> str:
    ranked = sorted(op_counts.items(), key=lambda item: -item[1])
    texts = [f"{number} {op}" for op, number in ranked[:7]]
    return ", ".join(texts) + (f", {sum(number for _, number in ranked[7:])} others" if len(ranked) > 7 else "")


def _bodies(summary: ModelSummary) -> Iterator[Line]:
    if summary.bodies:
        yield f"bodies ({len(summary.bodies)})"
        rows = [(body.op_type, body.node, body.attribute, count(body.nodes, "node")) for body in summary.bodies]
        yield from _listing(rows, Looks.TEXT, Looks.TEXT, Looks.TEXT, Looks.NUMBER)


def _listing(rows: Sequence[Sequence[str]], *looks: Looks) -> Iterator[Line]:
    yield from listing(rows[:MOST_ROWS], *looks)
    yield from _more(len(rows), MOST_ROWS)


def _more(number: int, shown: int) -> Iterator[str]:
    if number > shown:
        yield f"  ... and {number - shown} more: --json has them all"


def weight_range(minimum: float | None, maximum: float | None, mean: float | None) -> str:
    """Return the range of a weight's numbers; empty when it has none."""
    if minimum is None:
        return ""
    return f"min {magnitude(minimum)}, max {magnitude(maximum)}, mean {magnitude(mean)}"
