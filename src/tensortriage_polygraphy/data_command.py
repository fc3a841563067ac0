"""``triage inspect data``: the contents of a file of feeds, saved outputs or accuracy results."""

from pathlib import Path

from tensortriage.sdk import argument, command, flag, option

EPILOG = """\b
Examples:
  triage inspect data inputs.npz
  triage inspect data golden.json --all
  triage inspect data layers.json --show-values --histogram -n 5
"""


@command(epilog=EPILOG)
def inspect_data(
    path: Path = argument("PATH"),
    everything: bool = flag("--all -a", "Show every iteration, not only the first.", group="What to show"),
    show_values: bool = flag("--show-values -s", "Show the values of every tensor."),
    histogram: bool = flag("--histogram", "Show the distribution of the values of every tensor."),
    num_items: int = option(
        "--num-items -n", "N", "Values at each end of a dimension, -1 for all.", default=3, least=-1
    ),
    line_width: int = option(
        "--line-width", "N", "Characters per line of values, -1 for no limit.", default=75, least=-1
    ),
    *,
    as_json: bool,
) -> None:
    """Show statistics and values of PATH: feeds or outputs in any format, or accuracy results."""
    from tensortriage.sdk import document_class, is_json, print_document, read_accuracy, show
    from tensortriage_polygraphy.data_view import DataView, data_lines, show_accuracy, to_document

    if is_json(path) and document_class(path) == "AccuracyResults":
        show_accuracy(read_accuracy(path), as_json=as_json)
        return
    view = DataView(path, everything, show_values, histogram, num_items, line_width)
    if as_json:
        print_document(to_document(view))
    else:
        show(data_lines(view))
