"""Putting data files together: side by side (merge) or one after the other (concat), without reading their arrays.

Merging is how tensors saved by a run become inputs of the next one: iteration by iteration the union of all names.
(Polygraphy 0.53.6's ``data merge`` makes every iteration a copy of the last; ours does not.)
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from tensortriage.sdk import DataError, DataFile, Iteration, Kind, LazyTensors, Series, UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class Combined:
    """The file to write.

    Attributes:
        kind: Inputs or outputs.
        series: Runner name and iterations.
        notices: Notices to the user, one sentence each.
    """

    kind: Kind
    series: tuple[tuple[str, Iterable[Iteration]], ...]
    notices: tuple[str, ...]


def selected(file: DataFile, runner: str | None) -> tuple[Series, ...]:
    """Return the series of a file, or the one of a runner.

    Raises:
        UsageError: When the file has no series of that runner (``runner-unknown``).
    """
    if runner is None or file.kind is Kind.INPUTS:
        return file.series
    found = tuple(series for series in file.series if series.runner == runner)
    if not found:
        raise UsageError(
            f"{file.path} has no runner '{runner}'",
            slug="runner-unknown",
            cure="it has " + ", ".join(f"'{series.runner}'" for series in file.series),
        )
    return found[:1]


def merge(files: Sequence[DataFile], *, runner: str | None = None) -> Combined:
    """Merge inputs and outputs into inputs: iteration i has every tensor of every file's iteration i.

    Of a name that is in several files the last one wins, with a notice.

    Args:
        files: Opened files; outputs must come from one runner each.
        runner: The runner to take from files with several.

    Raises:
        DataError: When a file has several runners and none is chosen (``several-runners``), or the numbers of
            iterations differ (``merge-lengths``).
        UsageError: When the chosen runner is unknown (``runner-unknown``).
    """
    sources = [(file, _only(file, runner)) for file in files]
    lengths = {str(file.path): sum(1 for _ in series) for file, series in sources}
    if len(set(lengths.values())) > 1:
        raise DataError(
            "the files have different numbers of iterations: "
            + ", ".join(f"{path} {count}" for path, count in lengths.items()),
            slug="merge-lengths",
            cure="merge files of the same run, or append one to the other with triage data concat",
        )
    notices = []
    owner: dict[str, str] = {}
    for file, series in sources:
        names = _first_names(series)
        twice = [name for name in names if name in owner]
        if twice:
            notices.append(f"'{twice[0]}' of {owner[twice[0]]} is replaced by that of {file.path}"
                           + (f" ({len(twice)} names in all)" if twice[1:] else ""))  # fmt: skip
        owner.update(dict.fromkeys(names, str(file.path)))
    merged = _Merged([series for _, series in sources])
    return Combined(Kind.INPUTS, (("", merged),), tuple(notices))


def concat(files: Sequence[DataFile]) -> Combined:
    """Append the iterations of files of one kind; outputs are appended runner by runner.

    Raises:
        DataError: When inputs meet outputs (``concat-kinds``).
    """
    kinds = {file.kind for file in files}
    if len(kinds) > 1:
        odd = next(file for file in files if file.kind is not files[0].kind)
        raise DataError(
            f"{files[0].path} holds {files[0].kind.value}, {odd.path} holds {odd.kind.value}",
            slug="concat-kinds",
            cure="append files of one kind; triage data merge turns outputs into inputs",
        )
    parts: dict[tuple[str, int], list[Series]] = {}
    notices = []
    for file in files:
        runners = [series.runner for series in file.series]
        for place, series in enumerate(file.series):
            known = parts.setdefault((series.runner, runners[:place].count(series.runner)), [])
            if known and _first_names(known[0]) != _first_names(series):
                notices.append(f"the tensors of {file.path} are not named like those before")
            known.append(series)
    return Combined(
        files[0].kind,
        tuple((runner, _Chained(members)) for (runner, _), members in parts.items()),
        tuple(dict.fromkeys(notices)),
    )


def _only(file: DataFile, runner: str | None) -> Series:
    found = selected(file, runner)
    if len(found) != 1:
        raise DataError(
            f"{file.path} has outputs of {len(found)} runners, which would overwrite each other",
            slug="several-runners",
            cure="choose one with --runner NAME: " + ", ".join(f"'{series.runner}'" for series in found),
        )
    return found[0]


def _first_names(series: Series) -> tuple[str, ...]:
    first = next(iter(series), None)
    return () if first is None else tuple(first.tensors)


@dataclasses.dataclass(frozen=True, slots=True)
class _Merged:
    """Iterations side by side."""

    series: Sequence[Series]

    def __iter__(self) -> Iterator[Iteration]:
        for row in zip(*self.series, strict=True):
            loaders = {}
            for iteration in row:
                tensors: Mapping[str, np.ndarray] = iteration.tensors
                loaders.update({name: partial(tensors.__getitem__, name) for name in tensors})
            yield Iteration(LazyTensors(loaders))


@dataclasses.dataclass(frozen=True, slots=True)
class _Chained:
    """Iterations one after the other."""

    series: Sequence[Series]

    def __iter__(self) -> Iterator[Iteration]:
        return chain.from_iterable(self.series)
