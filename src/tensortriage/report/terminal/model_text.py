"""A model as text: its contents on one screen, or every node on a few lines.

Plain text without Rich, which takes longer to import than a model of two thousand nodes takes to read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensortriage.model.inspect.node_listing import LayerFacts
from tensortriage.model.inspect.outline import ValueFacts
from tensortriage.model.inspect.repeated_blocks import RepeatedBlock
from tensortriage.model.inspect.summary import ModelSummary
from tensortriage.values.printable import printable
from tensortriage.values.text import count, magnitude, shorten

MOST_ROWS = 12
_LONGEST_NAME = 60


def summary_lines(summary: ModelSummary) -> Iterator[str]:
    """Yield the lines of a summary."""
    producer = f", by {printable(summary.producer)}" if summary.producer else ""
    opsets = ", ".join(f"{printable(domain)} {version}" for domain, version in summary.opsets.items())
    name = printable(summary.name) or "(unnamed)"
    yield f"{printable(summary.path)}: graph {name}, IR {summary.ir_version}{producer}"
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
        rows = [(printable(f.name), count(f.nodes, "node"), count(f.calls, "call")) for f in summary.functions]
        yield from table(rows[:MOST_ROWS])
        yield from _more(len(rows))


def layer_lines(layers: Iterable[LayerFacts], *, attributes: bool) -> Iterator[str]:
    """Yield the lines of a listing."""
    where = ""
    for layer in layers:
        if layer.where != where:
            where = layer.where
            yield f"in {printable(where)}" if where else "in the main graph"
        yield f"node {layer.index}  {printable(layer.op_type)}  {printable(layer.name) or '(unnamed)'}"
        if origin := layer.origin.beside(layer.name):
            yield f"     from {printable(origin)}"
        for arrow, values in (("<-", layer.inputs), ("->", layer.outputs)):
            for value in values:
                yield f"  {arrow} {value_text(value)}"
        if attributes:
            for name, text in layer.attributes.items():
                yield f"     {printable(name)} = {printable(text)}"


def value_text(value: ValueFacts) -> str:
    """Return name, type and shape of a value."""
    if not value.name:
        return "(omitted)"
    return " ".join(filter(None, (printable(value.name), value.type, shape_text(value.shape))))


def shape_text(shape: Sequence[int | str | None] | None) -> str:
    """Return a shape; ``?`` is an unknown dimension, nothing an unknown rank."""
    if shape is None:
        return ""
    return "[" + ", ".join("?" if dim is None else printable(str(dim)) for dim in shape) + "]"


def size(nbytes: int) -> str:
    """Return a size in bytes, e.g. ``512 B``, ``14.2 KB``, ``498 MB``, ``3.22 GB`` (powers of ten)."""
    if nbytes < 1000:
        return f"{nbytes} B"
    for unit, factor in (("KB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if nbytes < factor * 999.5 or unit == "GB":
            return f"{nbytes / factor:.3g} {unit}"
    raise AssertionError("the last unit takes everything")


def table(rows: Sequence[Sequence[str]], *, indent: str = "  ") -> Iterator[str]:
    """Yield aligned lines; cells that start with a digit are right-justified, long ones cut in the middle."""
    cells = [[shorten(cell, _LONGEST_NAME) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        yield (indent + "  ".join(padded)).rstrip()


def _dtypes(summary: ModelSummary) -> str:
    return ", ".join(f"{row.dtype} {size(row.nbytes)}" for row in summary.dtypes) or "none"


def _external(summary: ModelSummary) -> str:
    if not summary.external:
        return ""
    texts = [
        f"{printable(file.location)} {'MISSING' if file.file_bytes is None else size(file.file_bytes)}"
        for file in summary.external[:3]
    ]
    more = f" and {len(summary.external) - 3} more" if len(summary.external) > 3 else ""
    return f", weights in {', '.join(texts)}{more}"


def _values(title: str, values: Sequence[ValueFacts]) -> Iterator[str]:
    yield f"{title} ({len(values)})"
    yield from table(
        [(printable(v.name), v.type or "?", shape_text(v.shape) or "rank unknown") for v in values[:MOST_ROWS]]
    )
    yield from _more(len(values))


def _dims(summary: ModelSummary) -> Iterator[str]:
    if summary.symbols or summary.unknown_dims:
        yield "dynamic dimensions of the inputs"
        rows = [(printable(name), _listed(places)) for name, places in summary.symbols.items()]
        if summary.unknown_dims:
            rows.append(("?", _listed(summary.unknown_dims)))
        yield from table(rows[:MOST_ROWS])
        yield from _more(len(rows))


def _ops(summary: ModelSummary) -> Iterator[str]:
    yield "operators, with the parameters they are the first to compute with"
    heaviest = sorted(summary.ops, key=lambda row: -row.parameter_bytes)[:MOST_ROWS]
    shown = {row.op_type for row in (*summary.ops[:MOST_ROWS], *heaviest[:4])}
    rows = [
        (printable(row.op_type), f"{row.nodes:,}", size(row.parameter_bytes) if row.parameters else "")
        for row in summary.ops
        if row.op_type in shown
    ]
    yield from table(rows)
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
            yield f"      from {printable(label[0])} to {printable(label[1])}"


def _op_counts(op_counts: Mapping[str, int]) -> str:
    ranked = sorted(op_counts.items(), key=lambda item: -item[1])
    texts = [f"{number} {printable(op)}" for op, number in ranked[:7]]
    return ", ".join(texts) + (f", {sum(number for _, number in ranked[7:])} others" if len(ranked) > 7 else "")


def _bodies(summary: ModelSummary) -> Iterator[str]:
    if summary.bodies:
        yield f"bodies ({len(summary.bodies)})"
        rows = [
            (printable(body.op_type), printable(body.node), printable(body.attribute), count(body.nodes, "node"))
            for body in summary.bodies
        ]
        yield from table(rows[:MOST_ROWS])
        yield from _more(len(rows))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(map(printable, names[:4])) + more


def _more(number: int, shown: int = MOST_ROWS) -> Iterator[str]:
    if number > shown:
        yield f"  ... and {number - shown} more: --json has them all"


def weight_range(minimum: float | None, maximum: float | None, mean: float | None) -> str:
    """Return the range of a weight's numbers; empty when it has none."""
    if minimum is None:
        return ""
    return f"min {magnitude(minimum)}, max {magnitude(maximum)}, mean {magnitude(mean)}"
