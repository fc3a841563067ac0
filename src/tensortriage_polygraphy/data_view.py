"""A data file as text and as JSON: one table per iteration, values and histograms on request."""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensortriage.sdk import (
    AccuracyResult,
    Column,
    Iteration,
    Line,
    Looks,
    SavedAccuracy,
    Series,
    Table,
    TableCell,
    Tone,
    accuracy_document,
    accuracy_lines,
    argument,
    count,
    flag,
    magnitude,
    open_data,
    option,
    print_document,
    rejudge,
    request,
    shape,
    show,
    table_lines,
    to_json,
    width,
)
from tensortriage_polygraphy.statistics import Figures, Histogram, TensorSummary, histogram, summarize

BAR_WIDTH = 40


@request
class DataView:
    """The parts of a file or a directory to show."""

    # fmt: off
    path: Path = argument("PATH")
    everything: bool = flag("--all -a", "Show every iteration, not only the first.", group="What to show")
    show_values: bool = flag("--show-values -s", "Show the values of every tensor.")
    histogram: bool = flag("--histogram", "Show the distribution of the values of every tensor.")
    num_items: int = option(
        "--num-items -n", "N", "Values at each end of a dimension, -1 for all.", default=3, least=-1)
    line_width: int = option(
        "--line-width", "N", "Characters per line of values, -1 for no limit.", default=75, least=-1)
    # fmt: on


def data_lines(view: DataView) -> Iterator[Line]:
    """Yield a file, tensor by tensor; no more than one tensor is in memory.

    Raises:
        DataError: When the file cannot be read.
    """
    file = open_data(view.path)
    for series in file.series:
        total = _count(series)
        who = f" of {series.runner}" if series.runner else ""
        yield [(f"{file.path}: {count(total, 'iteration')} of {file.kind.value}{who} ({file.format.value})", "bold")]
        for index, iteration in _shown(series, view):
            if total > 1:
                spent = "" if iteration.seconds is None else f", {iteration.seconds:.3g} s"
                yield f"iteration {index}{spent}"
            yield from _iteration_lines(iteration, view)
        if total > 1 and not view.everything:
            yield "... the others with --all"


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


def show_accuracy(results: Sequence[AccuracyResult], *, as_json: bool) -> None:
    """Print accuracy results with the verdicts that were saved."""
    rejudged = rejudge(SavedAccuracy(tuple(results), tuple(results)), ())
    if as_json:
        print_document(accuracy_document(rejudged))
    else:
        show(accuracy_lines(rejudged))


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
    if view.histogram:
        document["histogram"] = histogram(array)
    if view.show_values:
        document["values"] = _plain_values(array)
    return document


def _plain_values(array: np.ndarray) -> Any:
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).tolist()
    return array.tolist() if array.dtype.kind in "biufUSO" else array.astype(np.float64).tolist()


def _iteration_lines(iteration: Iteration, view: DataView) -> Iterator[Line]:
    if view.show_values or view.histogram:
        for name in iteration.tensors:
            yield from _tensor_lines(summarize(name, iteration.tensors[name]), iteration.tensors[name], view)
        return
    rows = (summarize(name, iteration.tensors[name]) for name in iteration.tensors)
    yield from table_lines(Table.of("Tensors", "tensor", _columns(), rows), width=width(), indent="")


def _columns() -> Sequence[Column[TensorSummary]]:
    def figure(of: Callable[[Figures], float]) -> Callable[[TensorSummary], str]:
        return lambda row: magnitude(None if row.figures is None else of(row.figures))

    def alarm(number: int) -> TableCell:
        return TableCell(str(number), Tone.PROBLEM if number else None)

    return (
        Column("tensor", lambda row: row.name, Looks.NAME),
        Column("type", lambda row: row.dtype),
        Column("shape", lambda row: shape(row.shape)),
        Column("min", figure(lambda figures: figures.minimum), Looks.NUMBER),
        Column("max", figure(lambda figures: figures.maximum), Looks.NUMBER),
        Column("mean", figure(lambda figures: figures.mean), Looks.NUMBER),
        Column("std", figure(lambda figures: figures.deviation), Looks.NUMBER),
        Column("median", figure(lambda figures: figures.median), Looks.NUMBER),
        Column("p99", figure(lambda figures: figures.percentiles[2]), Looks.NUMBER),
        Column("NaN", lambda row: alarm(row.nan), Looks.NUMBER),
        Column("Inf", lambda row: alarm(row.inf), Looks.NUMBER),
    )


def _tensor_lines(summary: TensorSummary, array: np.ndarray, view: DataView) -> Iterator[Line]:
    yield f"{summary.name} [dtype={summary.dtype}, shape={summary.shape}]{_statistics(summary)}"
    if view.histogram and (found := histogram(array)) is not None:
        yield from _histogram(found)
    if view.show_values:
        yield from _values(array, view)


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


def _histogram(found: Histogram) -> Iterator[str]:
    most = max(found.counts)
    for low, high, number in zip(found.edges[:-1], found.edges[1:], found.counts, strict=True):
        yield f"  {low:>10.3g} .. {high:<10.3g} {number:>10} {'#' * round(BAR_WIDTH * number / most)}"


def _values(array: np.ndarray, view: DataView) -> list[str]:
    items = sys.maxsize if view.num_items < 0 else view.num_items
    width = sys.maxsize if view.line_width < 0 else view.line_width
    threshold = sys.maxsize if view.num_items < 0 else 1000
    text = np.array2string(array, edgeitems=items, max_line_width=width, threshold=threshold)
    return ["  " + line for line in text.splitlines()]
