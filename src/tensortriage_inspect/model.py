"""``triage inspect model``: the contents of a model, on one screen or node by node."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from tensortriage.sdk import (
    argument,
    command,
    dialect,
    external_data_field,
    flag,
    model_type_option,
    option,
    own_inference,
    print_document,
    request,
)

if TYPE_CHECKING:
    from tensortriage.envelope.sdk import ValueSpec
    from tensortriage.model.sdk import UnboundedSize
    from tensortriage.sdk import Line
    from tensortriage_inspect.node_listing import LayerFacts
    from tensortriage_inspect.summary import ModelSummary
    from tensortriage_inspect.weights import WeightFacts

EPILOG = """\b
Examples:
  triage inspect model model.onnx
  triage inspect model model.onnx --show layers attrs
  triage inspect model model.onnx --show weights
  triage inspect model model.onnx --json
"""
SHOWN, FILES = "What to show", "Files"
PARTS = ("layers", "attrs", "weights")


class Details(TypedDict, total=False):
    """The parts to show in addition to the summary."""

    layers: "Sequence[LayerFacts]"
    values: "Sequence[ValueSpec]"
    weights: "Iterable[WeightFacts]"
    unbounded_sizes: "Sequence[UnboundedSize]"


@request
class ModelView:
    """The request of an inspection."""

    # fmt: off
    model: Path = argument("MODEL")
    show: tuple[str, ...] = option(
        "--show", "PART...", "layers: every node; attrs: nodes with their attributes; weights: the values of every "
        "constant.", default=(), choices=PARTS, group=SHOWN)
    unbounded: bool = flag(
        "--list-unbounded-dds", "List the tensors that decide a size, depend on data and are not bounded.")
    infer_shapes: bool = flag(
        "--shape-inference --do-shape-inference", "Infer types and shapes, and show them too.", rare=True)
    external_data_dir: Path | None = external_data_field(rare=False, group=FILES)
    unseen: bool = flag(
        "--ignore-external-data", "Do not read weights outside the file, not even for --show weights.", rare=True)
    # fmt: on


@command(epilog=EPILOG, accepted=[model_type_option(FILES), own_inference(SHOWN)])
def inspect_model(view: ModelView, *, as_json: bool) -> None:
    """Show what is in MODEL: operators, interface, parameters, dynamic dimensions, bodies, functions, repeated blocks.

    Nothing is run, and no weight is read unless asked for, so the size of the model does not matter.
    """
    from tensortriage.sdk import read_message
    from tensortriage_inspect.node_listing import list_layers
    from tensortriage_inspect.summary import summary_of

    if not as_json and dialect().list_model(
        view.model,
        view.show,
        view.external_data_dir,
        unbounded=view.unbounded,
        infer_shapes=view.infer_shapes,
        unseen=view.unseen,
    ):
        return
    message = read_message(view.model)
    summary = summary_of(message, view.model, view.external_data_dir or view.model.parent)
    details: Details = {}
    if {"layers", "attrs"} & {*view.show}:
        details["layers"] = list_layers(message.proto)
    if view.unbounded or view.infer_shapes or "weights" in view.show:
        details |= deeper(view)
    if as_json:
        print_document(document(summary, details))
    else:
        from tensortriage.sdk import show as show_lines

        show_lines(lines(summary, details, attributes="attrs" in view.show))


def deeper(view: ModelView) -> Details:
    """Return the parts that need the loaded model."""
    from tensortriage.engines.sdk import Model
    from tensortriage.sdk import unbounded_sizes, value_specs
    from tensortriage_inspect.weights import weight_facts

    found: Details = {}
    model = Model.load(view.model, external_data_dir=view.external_data_dir)
    if view.infer_shapes:
        specs = value_specs(model, refine=True)
        found["values"] = [specs[name] for node in model.graph.nodes for name in node.outputs if name in specs]
    if "weights" in view.show and not view.unseen:
        found["weights"] = weight_facts(model)
    if view.unbounded:
        found["unbounded_sizes"] = unbounded_sizes(model.graph)
    return found


def document(summary: "ModelSummary", details: Details) -> str:
    """Return everything as one JSON document."""
    import dataclasses

    from tensortriage.sdk import to_json

    rows_of = cast("dict[str, Iterable[object]]", details)
    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    return to_json(fields | {name: tuple(rows) for name, rows in rows_of.items()})


def lines(summary: "ModelSummary", details: Details, *, attributes: bool) -> Iterator["Line"]:
    """Yield the summary and the requested parts."""
    from tensortriage.sdk import size
    from tensortriage_inspect.model_text import layer_lines, shape_text, summary_lines, weight_range

    yield from summary_lines(summary)
    if "layers" in details:
        yield f"layers ({len(details['layers'])})"
        yield from (f"  {line}" for line in layer_lines(details["layers"], attributes=attributes))
    for weight in details.get("weights", ()):
        yield f"weight {weight.name} {weight.dtype} {shape_text(weight.shape)}, {size(weight.nbytes)}"
        if spread := weight_range(weight.minimum, weight.maximum, weight.mean):
            odd = f", {weight.nonfinite} not finite" if weight.nonfinite else ""
            yield f"  {spread}, {weight.zeros} zeros{odd}"
        yield from (f"  {line}" for line in weight.values.splitlines())
    if "values" in details:
        yield f"values ({len(details['values'])})"
        for value in details["values"]:
            yield f"  {value.name} {value.dtype.label if value.dtype else '?'} {shape_text(value.shape)}"
    if "unbounded_sizes" in details:
        rows = details["unbounded_sizes"]
        yield f"sizes that depend on data and are not bounded ({len(rows)})"
        yield from (f"  {row.value}  decides the size of {row.op_type} {row.node}" for row in rows)
