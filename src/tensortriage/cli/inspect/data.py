"""``triage inspect data``: what a file of feeds, saved outputs or accuracy results holds."""

import sys
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import READ, GuideCommand, common, option

EPILOG = """\b
Examples:
  triage inspect data inputs.npz
  triage inspect data golden.json --all
  triage inspect data layers.json --show-values --histogram -n 5
"""
SHOWN = "What to show"


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("path", type=READ)
@option("--all", "-a", "everything", is_flag=True, heading=SHOWN, help="Show every iteration, not only the first.")
@option("--show-values", "-s", is_flag=True, heading=SHOWN, help="Show the values of every tensor.")
@option("--histogram", is_flag=True, heading=SHOWN, help="Show the distribution of the values of every tensor.")
@option("--num-items", "-n", type=click.IntRange(-1), default=3, metavar="N", heading=SHOWN,
        help="Values at each end of a dimension, -1 for all  [default: 3].")  # fmt: skip
@option("--line-width", type=click.IntRange(-1), default=75, metavar="N", heading=SHOWN,
        help="Characters per line of values, -1 for no limit  [default: 75].")  # fmt: skip
@common
def inspect_data(
    path: Path, everything: bool, show_values: bool, histogram: bool, num_items: int, line_width: int, as_json: bool
) -> None:
    """Show statistics and values of PATH: feeds or outputs in any format, or accuracy results."""
    from tensortriage.cli.inspect.data_view import DataView, show, show_accuracy, to_document
    from tensortriage.inputs.files.accuracy_results import read_accuracy
    from tensortriage.inputs.files.open_data import is_json
    from tensortriage.inputs.files.polygraphy import document_class

    if is_json(path) and document_class(path) == "AccuracyResults":
        show_accuracy(read_accuracy(path), sys.stdout, as_json=as_json)
        return
    view = DataView(path, everything, show_values, histogram, num_items, line_width)
    if as_json:
        print_document(to_document(view))
    else:
        show(view, sys.stdout)
