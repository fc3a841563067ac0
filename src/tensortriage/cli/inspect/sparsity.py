"""``triage inspect sparsity``: whether the weights of a model are 2:4 sparse."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer
from tensortriage.runs.request_fields import external_data_field
from tensortriage.values.options import argument

if TYPE_CHECKING:
    from tensortriage.model.inspect.sparsity import SparsityReport
    from tensortriage.report.terminal.lines import Line

EPILOG = """\b
Examples:
  triage inspect sparsity model.onnx

\b
Exit codes: 0 the weights were looked at (--json says what was found), 2 none could be 2:4 sparse.
"""


@command(epilog=EPILOG)
def inspect_sparsity(
    model: Path = argument("MODEL"),
    external_data_dir: Path | None = external_data_field(rare=False, group="Files"),
    *,
    as_json: bool,
) -> None:
    """Say whether the Conv, Gemm and MatMul weights of MODEL are 2:4 sparse.

    Of every four weights along the axis that is summed over, at most two may differ from zero.
    """
    from tensortriage.model.inspect.sparsity import check_sparsity
    from tensortriage.model.model import Model

    report = check_sparsity(Model.load(model, external_data_dir=external_data_dir))
    fields = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    answer(fields | {"is_sparse": report.is_sparse}, lines(report), as_json=as_json)


def lines(report: "SparsityReport") -> Iterator["Line"]:
    """Yield one line per weight, and how many are sparse."""
    from tensortriage.report.tables import Looks
    from tensortriage.report.terminal.model_text import shape_text
    from tensortriage.report.terminal.table_text import listing
    from tensortriage.values.text import count, percent

    rows = [
        (
            "2:4" if not weight.dense_groups else "dense",
            weight.weight,
            shape_text(weight.shape),
            f"axis {weight.axis}",
            f"{percent(weight.dense_groups / weight.groups)} of {count(weight.groups, 'group')} dense",
        )
        for weight in report.weights
    ]
    yield from listing(rows, *[Looks.TEXT] * 5, indent="")
    sparse = sum(weight.dense_groups == 0 for weight in report.weights)
    yield f"{sparse} of {len(report.weights)} weights are 2:4 sparse"
