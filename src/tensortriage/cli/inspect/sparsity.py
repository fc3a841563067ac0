"""``triage inspect sparsity``: whether the weights of a model are 2:4 sparse."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import READ, GuideCommand, common, external_data_option

if TYPE_CHECKING:
    from tensortriage.model.inspect.sparsity_report import SparsityReport

EPILOG = """\b
Examples:
  triage inspect sparsity model.onnx

\b
Exit codes: 0 the weights were looked at (--json says what was found), 2 none could be 2:4 sparse.
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("model", type=READ)
@external_data_option("Files", rare=False)
@common
def inspect_sparsity(model: Path, external_data_dir: Path | None, as_json: bool) -> None:
    """Say whether the Conv, Gemm and MatMul weights of MODEL are 2:4 sparse.

    Of every four weights along the axis that is summed over, at most two may differ from zero.
    """
    from tensortriage.model.inspect.sparsity_report import check_sparsity
    from tensortriage.model.model import Model

    report = check_sparsity(Model.load(model, external_data_dir=external_data_dir))
    if as_json:
        from tensortriage.values.serial import to_json

        fields = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
        print_document(to_json(fields | {"is_sparse": report.is_sparse}))
    else:
        tell(report)


def tell(report: "SparsityReport") -> None:
    """Print one line per weight, and how many are sparse."""
    from tensortriage.report.terminal.model_text import shape_text, table
    from tensortriage.values.printable import printable
    from tensortriage.values.text import count, percent

    rows = [
        (
            "2:4" if not weight.dense_groups else "dense",
            printable(weight.weight),
            shape_text(weight.shape),
            f"axis {weight.axis}",
            f"{percent(weight.dense_groups / weight.groups)} of {count(weight.groups, 'group')} dense",
        )
        for weight in report.weights
    ]
    for line in table(rows, indent=""):
        click.echo(line)
    sparse = sum(weight.dense_groups == 0 for weight in report.weights)
    click.echo(f"{sparse} of {len(report.weights)} weights are 2:4 sparse")
