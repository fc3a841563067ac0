"""A data file as text and as JSON: one table per iteration, values and histograms where asked for."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensortriage.cli.inspect import accuracy_table
from tensortriage.inputs.files.accuracy_results import AccuracyResult
from tensortriage.inputs.files.data_file import Iteration, Series
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.statistics import Histogram, TensorSummary, histogram, summarize
from tensortriage.report.terminal.stream import StreamConsole
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_json
from tensortriage.values.text import count, magnitude, shape, shorten
from tensortriage.workflows.comparison.rejudge import rejudge
from tensortriage.workflows.comparison.saved_accuracy import SavedAccuracy

BAR_WIDTH = 40
_COLUMNS = ("tensor", "type", "shape", "min", "max", "mean", "std", "median", "p99", "NaN", "Inf")


@dataclasses.dataclass(frozen=True, slots=True)
class DataView:
    """What is asked of a file.

    Attributes:
        path: The file or directory.
        everything: Every iteration instead of the first.
        show_values: Values of every tensor.
        show_histogram: Histogram of every tensor.
        num_items: Values at each end of a dimension; -1 for all.
        line_width: Characters per line of values; -1 for no limit.
    """

    path: Path
    everything: bool
    show_values: bool
    show_histogram: bool
    num_items: int
    line_width: int


def show(view: DataView, stream: TextIO) -> None:
    """Print a file, tensor by tensor; no more than one tensor is in memory.

    Raises:
        DataError: When the file cannot be read.
    """
    file = open_data(view.path)
    console = StreamConsole(stream)
    for series in file.series:
        total = _count(series)
        who = f" of {printable(series.runner)}" if series.runner else ""
        title = (
            f"{printable(str(file.path))}: {count(total, 'iteration')} of {file.kind.value}{who} ({file.format.value})"
        )
        console.print(Text(title, style="bold"), soft_wrap=True)
        for index, iteration in _shown(series, view):
            if total > 1:
                spent = "" if iteration.seconds is None else f", {iteration.seconds:.3g} s"
                console.print(f"iteration {index}{spent}", soft_wrap=True)
            _show_iteration(console, iteration, view)
        if total > 1 and not view.everything:
            console.print("... the others with --all")


def to_document(view: DataView) -> str:
    """Return a file's statistics as one JSON document (``tensortriage.data/1``); values and histograms on request.

    Raises:
        DataError: When the file cannot be read.
    """
    file = open_data(view.path)
    return to_json({
        "format": "tensortriage.data/1", "path": file.path, "data_format": file.format, "kind": file.kind,
        "series": [_series_document(series, view) for series in file.series],
    })  # fmt: skip


def show_accuracy(results: Sequence[AccuracyResult], stream: TextIO, *, as_json: bool) -> None:
    """Print accuracy results with the verdicts that were saved."""
    rejudged = rejudge(SavedAccuracy(tuple(results), tuple(results)), ())
    if as_json:
        stream.write(accuracy_table.to_document(rejudged) + "\n")
    else:
        accuracy_table.show(rejudged, stream)


def _count(series: Series) -> int:
    return sum(1 for _ in series)


def _shown(series: Series, view: DataView) -> Iterator[tuple[int, Iteration]]:
    for index, iteration in enumerate(series):
        if index and not view.everything:
            return
        yield index, iteration


def _series_document(series: Series, view: DataView) -> dict[str, Any]:
    shown = []
    for _, iteration in _shown(series, view):
        tensors = [_tensor_document(name, iteration.tensors[name], view) for name in iteration.tensors]
        shown.append({"seconds": iteration.seconds, "tensors": tensors})
    return {"runner": series.runner, "iterations_in_file": _count(series), "iterations": shown}


def _tensor_document(name: str, array: np.ndarray, view: DataView) -> dict[str, Any]:
    summary = summarize(name, array)
    figures = summary.figures
    document = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    document["figures"] = figures
    if view.show_histogram:
        document["histogram"] = histogram(array)
    if view.show_values:
        document["values"] = _plain_values(array)
    return document


def _plain_values(array: np.ndarray) -> Any:
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).tolist()
    return array.tolist() if array.dtype.kind in "biufUSO" else array.astype(np.float64).tolist()


def _show_iteration(console: Console, iteration: Iteration, view: DataView) -> None:
    if view.show_values or view.show_histogram:
        for name in iteration.tensors:
            _show_tensor(console, summarize(name, iteration.tensors[name]), iteration.tensors[name], view)
        return
    table = Table(box=None, pad_edge=False, show_edge=False)
    for title in _COLUMNS:
        table.add_column(title, justify="left" if title in ("tensor", "type", "shape") else "right", no_wrap=True)
    for name in iteration.tensors:
        table.add_row(*_cells(summarize(name, iteration.tensors[name])))
    console.print(table)


def _cells(summary: TensorSummary) -> list[Text]:
    figures = summary.figures
    numbers: list[float | None] = [None] * 6
    if figures is not None:
        numbers = [figures.minimum, figures.maximum, figures.mean, figures.deviation, figures.median]
        numbers.append(figures.percentiles[2])
    return [
        Text(shorten(printable(summary.name), 44)),
        Text(summary.dtype),
        Text(shape(summary.shape)),
        *(Text(magnitude(number)) for number in numbers),
        _alarm(summary.nan),
        _alarm(summary.inf),
    ]


def _alarm(number: int) -> Text:
    return Text(str(number), style="bold red" if number else "")


def _show_tensor(console: Console, summary: TensorSummary, array: np.ndarray, view: DataView) -> None:
    head = f"{printable(summary.name)} [dtype={summary.dtype}, shape={summary.shape}]"
    console.print(Text(f"{head}{_statistics(summary)}"), soft_wrap=True)
    if view.show_histogram:
        found = histogram(array)
        if found is not None:
            console.print(Text(_histogram(found)), soft_wrap=True)
    if view.show_values:
        console.print(Text(_values(array, view)), soft_wrap=True)


def _statistics(summary: TensorSummary) -> str:
    figures = summary.figures
    bad = [f"NaN={summary.nan}"] * bool(summary.nan) + [f"Inf={summary.inf}"] * bool(summary.inf)
    if figures is None:
        return (" | " + ", ".join(bad)) if bad else ""
    p90, p95, p99 = figures.percentiles
    return " | " + ", ".join([
        *bad, f"mean={figures.mean:.5g}", f"std-dev={figures.deviation:.5g}", f"median={figures.median:.5g}",
        f"min={figures.minimum:.5g} at {figures.minimum_at}", f"max={figures.maximum:.5g} at {figures.maximum_at}",
        f"avg-magnitude={figures.mean_magnitude:.5g}", f"p90={p90:.5g}", f"p95={p95:.5g}", f"p99={p99:.5g}",
    ])  # fmt: skip


def _histogram(found: Histogram) -> str:
    most = max(found.counts)
    lines = []
    for low, high, number in zip(found.edges[:-1], found.edges[1:], found.counts, strict=True):
        lines.append(f"  {low:>10.3g} .. {high:<10.3g} {number:>10} {'#' * round(BAR_WIDTH * number / most)}")
    return "\n".join(lines)


def _values(array: np.ndarray, view: DataView) -> str:
    items = sys.maxsize if view.num_items < 0 else view.num_items
    width = sys.maxsize if view.line_width < 0 else view.line_width
    threshold = sys.maxsize if view.num_items < 0 else 1000
    text = np.array2string(array, edgeitems=items, max_line_width=width, threshold=threshold)
    return "\n".join("  " + printable(line) for line in text.splitlines())
