"""Feeds from files: every sample of every path in turn, checked against the model before anyone runs it."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.errors import DataError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.files.data_file import DataFile, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.values.spec import ValueSpec

__all__ = ["Casting", "FeedSource", "check_feed", "load_feeds"]


def load_feeds(
    paths: Sequence[Path], specs: Sequence[ValueSpec], *, casting: Casting = Casting.EXACT
) -> Iterator[Feed]:
    """Yield the feeds of files, one at a time; see `FeedSource`."""
    return iter(FeedSource(paths, specs, casting=casting))


class FeedSource:
    """The samples of data files; iterating reads one at a time and may be done any number of times.

    Args:
        paths: Files and directories of any format, see `docs/feeds.md`.
        specs: The model's inputs; every feed is checked against them.
        casting: How far numbers may change to fit the model's element types.

    Raises:
        DataError: At once, when a path cannot be opened or holds saved outputs (``feed-is-outputs``). While iterating,
            when a file is damaged, a feed does not fit the model (see `check_feed`), or a path holds no sample
            (``feed-empty``).

    Example:
        >>> for feed in FeedSource([Path("digits.npz")], model.inputs):  # doctest: +SKIP
        ...     print(feed.name, list(feed.tensors))
    """

    def __init__(self, paths: Sequence[Path], specs: Sequence[ValueSpec], *, casting: Casting = Casting.EXACT) -> None:
        self._specs = tuple(specs)
        self._casting = casting
        self._files = [_inputs_only(open_data(Path(path), self._specs)) for path in paths]

    def __iter__(self) -> Iterator[Feed]:
        names = [file.path.name for file in self._files]
        for file in self._files:
            label = file.path.name if names.count(file.path.name) == 1 else str(file.path)
            index = -1
            for index, iteration in enumerate(itertools.chain.from_iterable(file.series[:1])):
                feed = Feed(f"{label}[{index}]", iteration.tensors, Origin.REAL)
                yield check_feed(feed, self._specs, casting=self._casting)
            if index < 0:
                raise DataError(f"{file.path} holds no sample", slug="feed-empty", cure="give a file with samples")


def _inputs_only(file: DataFile) -> DataFile:
    if file.kind is Kind.OUTPUTS:
        raise DataError(
            f"{file.path} holds saved outputs, not inputs",
            slug="feed-is-outputs",
            cure=f"turn them into inputs: triage data merge {file.path} -o inputs.json",
        )
    return file
