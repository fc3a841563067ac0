"""``triage inspect data``: what a file of feeds, saved outputs or accuracy results holds."""

from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.workflows.requests import DataView

EPILOG = """\b
Examples:
  triage inspect data inputs.npz
  triage inspect data golden.json --all
  triage inspect data layers.json --show-values --histogram -n 5
"""


@command(epilog=EPILOG)
def inspect_data(view: DataView, *, as_json: bool) -> None:
    """Show statistics and values of PATH: feeds or outputs in any format, or accuracy results."""
    from tensortriage.cli.inspect.data_view import data_lines, show_accuracy, to_document
    from tensortriage.inputs.files.accuracy_results import read_accuracy
    from tensortriage.inputs.files.open_data import is_json
    from tensortriage.inputs.files.polygraphy import document_class
    from tensortriage.report.terminal.lines import show

    if is_json(view.path) and document_class(view.path) == "AccuracyResults":
        show_accuracy(read_accuracy(view.path), as_json=as_json)
        return
    if as_json:
        print_document(to_document(view))
    else:
        show(data_lines(view))
