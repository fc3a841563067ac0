"""``triage inspect data``: the contents of a file of feeds, saved outputs or accuracy results."""

from pathlib import Path

from tensortriage.sdk import command
from tensortriage_polygraphy.data_view import DataView

EPILOG = """\b
Examples:
  triage inspect data inputs.npz
  triage inspect data golden.json --all
  triage inspect data layers.json --show-values --histogram -n 5
"""


@command(epilog=EPILOG)
def inspect_data(view: DataView, *, as_json: bool) -> None:
    """Show statistics and values of PATH: feeds or outputs in any format, or accuracy results."""
    from tensortriage.sdk import document_class, print_document, read_accuracy, show
    from tensortriage_polygraphy.data_view import data_lines, show_accuracy, to_document

    if is_json(view.path) and document_class(view.path) == "AccuracyResults":
        show_accuracy(read_accuracy(view.path), as_json=as_json)
        return
    if as_json:
        print_document(to_document(view))
    else:
        show(data_lines(view))


def is_json(path: Path) -> bool:
    """Return whether a path is a file that is read as Polygraphy's JSON."""
    from tensortriage.sdk import DataError, DataFormat, detect

    try:
        return path.is_file() and detect(path) is DataFormat.POLYGRAPHY
    except DataError:
        return False
