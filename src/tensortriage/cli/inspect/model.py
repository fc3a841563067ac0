"""``triage inspect model``: what is in a model, on one screen or node by node."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.documents import print_document
from tensortriage.cli.options import (
    READ,
    GuideCommand,
    common,
    external_data_option,
    model_type_option,
    option,
    own_inference,
)

if TYPE_CHECKING:
    import numpy as np

    from tensortriage.model.inspect.node_listing import LayerFacts
    from tensortriage.model.inspect.summary import ModelSummary
    from tensortriage.model.inspect.weight_summary import WeightFacts
    from tensortriage.model.shape_inference.unbounded_sizes import UnboundedSize
    from tensortriage.values.spec import ValueSpec

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
    """What is shown beside the summary, where it was asked for."""

    layers: "Sequence[LayerFacts]"
    values: "Sequence[ValueSpec]"
    weights: "Iterable[WeightFacts]"
    unbounded_sizes: "Sequence[UnboundedSize]"


@click.command(cls=GuideCommand, value_lists=("--show",), epilog=EPILOG)
@click.argument("model", type=READ)
@option("--show", multiple=True, type=click.Choice(PARTS), metavar="PART...", heading=SHOWN,
        help="layers: every node; attrs: nodes with their attributes; weights: the values of every "
             "constant.")  # fmt: skip
@option("--list-unbounded-dds", "unbounded", is_flag=True, heading=SHOWN,
        help="List the tensors that decide a size, depend on data and are not bounded.")  # fmt: skip
@external_data_option(FILES, rare=False)
@option("--ignore-external-data", "unseen", is_flag=True, heading=FILES, rare=True,
        help="Do not read weights outside the file, not even for --show weights.")  # fmt: skip
@model_type_option(FILES)
@option("--shape-inference", "--do-shape-inference", "infer_shapes", is_flag=True, heading=SHOWN, rare=True,
        help="Infer types and shapes, and show them too.")  # fmt: skip
@own_inference(SHOWN)
@common
@click.pass_context
def inspect_model(
    context: click.Context,
    /,
    model: Path,
    show: tuple[str, ...],
    unbounded: bool,
    infer_shapes: bool,
    external_data_dir: Path | None,
    unseen: bool,
    as_json: bool,
) -> None:
    """Show what is in MODEL: operators, interface, parameters, dynamic dimensions, bodies, functions, repeated blocks.

    Nothing is run, and no weight is read unless asked for, so the size of the model does not matter.
    """
    from tensortriage.model.inspect.node_listing import list_layers
    from tensortriage.model.inspect.summary import summary_of
    from tensortriage.model.io.parse import read_message

    if context.meta.get(COMPATIBLE) and not as_json:
        as_polygraphy(model, show, external_data_dir, unbounded=unbounded, infer_shapes=infer_shapes, unseen=unseen)
        return
    message = read_message(model)
    summary = summary_of(message, model, external_data_dir or model.parent)
    details: Details = {}
    if {"layers", "attrs"} & {*show}:
        details["layers"] = list_layers(message.proto)
    if unbounded or infer_shapes or "weights" in show:
        details |= deeper(
            model, external_data_dir, unbounded=unbounded, weights="weights" in show and not unseen,
            infer_shapes=infer_shapes,
        )  # fmt: skip
    if as_json:
        print_document(document(summary, details))
    else:
        tell(summary, details, attributes="attrs" in show)


def as_polygraphy(
    path: Path, show: Collection[str], external_data_dir: Path | None, *, unbounded: bool, infer_shapes: bool,
    unseen: bool,
) -> None:  # fmt: skip
    """Print the model in Polygraphy's layout."""
    from tensortriage.errors import ModelError
    from tensortriage.model.inspect.outline import ValueFacts
    from tensortriage.model.inspect.polygraphy_listing import polygraphy_listing
    from tensortriage.model.io.load import read_model
    from tensortriage.model.io.parse import read_message
    from tensortriage.model.model import Model
    from tensortriage.model.shape_inference.unbounded_sizes import unbounded_sizes
    from tensortriage.model.shape_inference.value_specs import value_specs
    from tensortriage.values.printable import printable

    click.echo(f"[I] Loading model: {printable(str(path.absolute()))}")
    message = read_message(path).proto
    loaded: list[Model] = []
    if unbounded or infer_shapes or ("weights" in show and not unseen):
        loaded.append(Model.from_ir(read_model(path, external_data_dir=external_data_dir)))

    def weight(name: str) -> "np.ndarray":
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


def deeper(
    path: Path, external_data_dir: Path | None, *, unbounded: bool, weights: bool, infer_shapes: bool
) -> Details:
    """Return what needs the loaded model."""
    from tensortriage.model.inspect.weight_summary import weight_facts
    from tensortriage.model.model import Model
    from tensortriage.model.shape_inference.unbounded_sizes import unbounded_sizes
    from tensortriage.model.shape_inference.value_specs import value_specs

    found: Details = {}
    model = Model.load(path, external_data_dir=external_data_dir)
    if infer_shapes:
        specs = value_specs(model, refine=True)
        found["values"] = [specs[name] for node in model.graph.nodes for name in node.outputs if name in specs]
    if weights:
        found["weights"] = weight_facts(model)
    if unbounded:
        found["unbounded_sizes"] = unbounded_sizes(model.graph)
    return found


def document(summary: "ModelSummary", details: Details) -> str:
    """Return everything as one JSON document."""
    import dataclasses

    from tensortriage.values.serial import to_json

    rows_of = cast("dict[str, Iterable[object]]", details)
    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    return to_json(fields | {name: tuple(rows) for name, rows in rows_of.items()})


def tell(summary: "ModelSummary", details: Details, *, attributes: bool) -> None:
    """Print the summary and what else was asked for."""
    from tensortriage.report.terminal.model_text import layer_lines, shape_text, size, summary_lines, weight_range
    from tensortriage.values.printable import printable

    click.echo("\n".join(summary_lines(summary)))
    if "layers" in details:
        click.echo(f"layers ({len(details['layers'])})")
        for line in layer_lines(details["layers"], attributes=attributes):
            click.echo(f"  {line}")
    for weight in details.get("weights", ()):
        click.echo(f"weight {printable(weight.name)} {weight.dtype} {shape_text(weight.shape)}, {size(weight.nbytes)}")
        spread = weight_range(weight.minimum, weight.maximum, weight.mean)
        odd = f", {weight.nonfinite} not finite" if weight.nonfinite else ""
        if spread:
            click.echo(f"  {spread}, {weight.zeros} zeros{odd}")
        click.echo("\n".join("  " + printable(line) for line in weight.values.splitlines()))
    if "values" in details:
        click.echo(f"values ({len(details['values'])})")
        for value in details["values"]:
            dtype = value.dtype.label if value.dtype else "?"
            click.echo(f"  {printable(value.name)} {dtype} {shape_text(value.shape)}")
    if "unbounded_sizes" in details:
        rows = details["unbounded_sizes"]
        click.echo(f"sizes that depend on data and are not bounded ({len(rows)})")
        for row in rows:
            click.echo(f"  {printable(row.value)}  decides the size of {row.op_type} {printable(row.node)}")
