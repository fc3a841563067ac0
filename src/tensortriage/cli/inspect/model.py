"""``triage inspect model``: what is in a model, on one screen or node by node."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    from tensortriage.model.inspect.summary import ModelSummary

EPILOG = """\b
Examples:
  triage inspect model model.onnx
  triage inspect model model.onnx --show layers attrs
  triage inspect model model.onnx --show weights
  triage inspect model model.onnx --json
"""
SHOWN, FILES = "What to show", "Files"
PARTS = ("layers", "attrs", "weights")


@click.command(cls=GuideCommand, value_lists=("--show",), epilog=EPILOG)
@click.argument("model", type=READ)
@option("--show", multiple=True, type=click.Choice(PARTS), metavar="PART...", heading=SHOWN,
        help="layers: every node; attrs: with their attributes; weights: the numbers of every constant.")  # fmt: skip
@option("--list-unbounded-dds", "unbounded", is_flag=True, heading=SHOWN,
        help="Tensors that decide a size, depend on data and are not bounded.")  # fmt: skip
@external_data_option(FILES, rare=False)
@option("--ignore-external-data", is_flag=True, expose_value=False, heading=FILES, rare=True,
        help="Accepted; weights are read for --show weights only.")  # fmt: skip
@model_type_option(FILES)
@option("--shape-inference", "--do-shape-inference", "infer_shapes", is_flag=True, heading=SHOWN, rare=True,
        help="Infer types and shapes, and show them too.")  # fmt: skip
@own_inference(SHOWN)
@common
def inspect_model(
    model: Path,
    show: tuple[str, ...],
    unbounded: bool,
    infer_shapes: bool,
    external_data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show what is in MODEL: operators, interface, parameters, dynamic dimensions, bodies, functions, repeated blocks.

    Nothing is run, and no weight is read unless asked for, so the size of the model does not matter.
    """
    from tensortriage.model.inspect.node_listing import list_layers
    from tensortriage.model.inspect.summary import summary_of
    from tensortriage.model.io.parse import read_message

    message = read_message(model)
    summary = summary_of(message, model, external_data_dir or model.parent)
    extra: dict[str, Any] = {}
    if {"layers", "attrs"} & {*show}:
        extra["layers"] = list_layers(message.proto)
    if unbounded or infer_shapes or "weights" in show:
        extra |= deeper(
            model, external_data_dir, unbounded=unbounded, weights="weights" in show, infer_shapes=infer_shapes
        )
    if as_json:
        click.echo(document(summary, extra))
    else:
        tell(summary, extra, attributes="attrs" in show)


def deeper(
    path: Path, external_data_dir: Path | None, *, unbounded: bool, weights: bool, infer_shapes: bool
) -> dict[str, Any]:
    """Return what needs the loaded model."""
    from tensortriage.model.inspect.weight_summary import weight_facts
    from tensortriage.model.model import Model
    from tensortriage.model.shape_inference.unbounded_sizes import unbounded_sizes
    from tensortriage.model.shape_inference.value_specs import value_specs

    found: dict[str, Any] = {}
    model = Model.load(path, external_data_dir=external_data_dir)
    if infer_shapes:
        specs = value_specs(model, refine=True)
        found["values"] = [specs[name] for node in model.graph.nodes for name in node.outputs if name in specs]
    if weights:
        found["weights"] = weight_facts(model)
    if unbounded:
        found["unbounded_sizes"] = unbounded_sizes(model.graph)
    return found


def document(summary: "ModelSummary", extra: dict[str, Any]) -> str:
    """Return everything as one JSON document."""
    import dataclasses

    from tensortriage.values.serial import to_json

    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    return to_json(fields | {name: tuple(rows) for name, rows in extra.items()})


def tell(summary: "ModelSummary", extra: dict[str, Any], *, attributes: bool) -> None:
    """Print the summary and what else was asked for."""
    from tensortriage.report.terminal.model_text import layer_lines, shape_text, size, summary_lines, weight_range
    from tensortriage.report.text import printable

    click.echo("\n".join(summary_lines(summary)))
    if "layers" in extra:
        click.echo(f"layers ({len(extra['layers'])})")
        for line in layer_lines(extra["layers"], attributes=attributes):
            click.echo(f"  {line}")
    for weight in extra.get("weights", ()):
        click.echo(f"weight {printable(weight.name)} {weight.dtype} {shape_text(weight.shape)}, {size(weight.nbytes)}")
        spread = weight_range(weight.minimum, weight.maximum, weight.mean)
        odd = f", {weight.nonfinite} not finite" if weight.nonfinite else ""
        if spread:
            click.echo(f"  {spread}, {weight.zeros} zeros{odd}")
        click.echo("\n".join("  " + printable(line) for line in weight.values.splitlines()))
    if "values" in extra:
        click.echo(f"values ({len(extra['values'])})")
        for value in extra["values"]:
            dtype = value.dtype.label if value.dtype else "?"
            click.echo(f"  {printable(value.name)} {dtype} {shape_text(value.shape)}")
    if "unbounded_sizes" in extra:
        rows = extra["unbounded_sizes"]
        click.echo(f"sizes that depend on data and are not bounded ({len(rows)})")
        for row in rows:
            click.echo(f"  {printable(row.value)}  decides the size of {row.op_type} {printable(row.node)}")
