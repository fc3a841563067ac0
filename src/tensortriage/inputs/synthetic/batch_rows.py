"""Rows of a batch: along which axis of which input they lie, and batches composed of single rows.

A batch is the size that inputs leave open along their first axis (or that they share there, when a model fixes it).
Rows come from the feeds that were given; where these hold too few, sensible ones are made up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec

Tensors = Mapping[str, np.ndarray]


@frozen_dataclass
class BatchAxes:
    """Places of the rows in a model's inputs.

    Attributes:
        axes: Axis by the name of each input that has one.
        fixed: How many rows the model takes; None where it takes any number.
    """

    axes: Mapping[str, int]
    fixed: int | None

    def rows_in(self, feed: Feed) -> int:
        """Return how many rows a feed has; 0 when its inputs disagree."""
        sizes = {feed.tensors[name].shape[axis] for name, axis in self.axes.items()}
        return sizes.pop() if len(sizes) == 1 else 0


@frozen_dataclass
class Rows:
    """Single rows, and the inputs that they share.

    Attributes:
        axes: Where rows lie.
        rows: One array per input that has a batch, of size 1 along its axis, for each row.
        shared: Inputs without a batch.
        made_up: How many of the rows, the last ones, are made up.
        origin: Where the first of them came from.
    """

    axes: BatchAxes
    rows: Sequence[Tensors]
    shared: Tensors
    made_up: int
    origin: Origin

    def batch(self, picked: Sequence[int], name: str, *, blank: int = 0) -> Feed:
        """Return a feed of given rows, in this order, followed by a number of rows of zeros."""
        tensors = dict(self.shared)
        for tensor, axis in self.axes.axes.items():
            parts = [self.rows[index][tensor] for index in picked]
            parts += [np.zeros_like(parts[0])] * blank
            tensors[tensor] = np.ascontiguousarray(np.concatenate(parts, axis=axis))
        given = len(self.rows) - self.made_up
        return Feed(name, tensors, self.origin if all(index < given for index in picked) else Origin.RANDOM)


def batch_axes(specs: Sequence[ValueSpec], name: str = "") -> BatchAxes | None:
    """Return where the rows of a model's inputs lie; None when they have no batch.

    Args:
        specs: The model's inputs.
        name: Of the dimension, where the model leaves several open; empty to find it.

    Raises:
        UsageError: When no open dimension has that name (``batch-unknown``).
    """
    if name:
        found = {spec.name: (spec.shape or ()).index(name) for spec in specs if name in (spec.shape or ())}
        if not found:
            opened = dict.fromkeys(size for spec in specs for size in spec.shape or () if isinstance(size, str))
            raise UsageError(
                f"no dynamic dimension of the model is called '{name}'",
                slug="batch-unknown",
                cure=f"use one of: {', '.join(opened)}" if opened else "leave out --batch-dimension",
            )
        return BatchAxes(found, None)
    first = Counter(spec.shape[0] for spec in specs if spec.shape and not isinstance(spec.shape[0], int))
    if first:
        symbol = max(first, key=lambda symbol: (first[symbol], "batch" in str(symbol).lower()))
        axes = {spec.name: spec.shape.index(symbol) for spec in specs if spec.shape and symbol in spec.shape}
        return BatchAxes(axes if symbol is not None else _unnamed(specs), None)
    sizes = Counter(spec.shape[0] for spec in specs if spec.shape and len(spec.shape) > 1)
    if not sizes:
        return None
    size = max(sizes, key=lambda size: sizes[size])
    axes = {spec.name: 0 for spec in specs if spec.shape and spec.shape[0] == size}
    return BatchAxes(axes, size) if isinstance(size, int) and size > 1 else None


def _unnamed(specs: Sequence[ValueSpec]) -> dict[str, int]:
    return {spec.name: 0 for spec in specs if spec.shape and spec.shape[0] is None}


def gather_rows(model: Model, feeds: Sequence[Feed], axes: BatchAxes, wanted: int) -> Rows:
    """Return so many rows: those of the feeds first, then made-up ones; fewer where none can be made up.

    Args:
        model: The model.
        feeds: At least one.
        axes: Where rows lie.
        wanted: How many rows.
    """
    shared = {name: array for name, array in feeds[0].tensors.items() if name not in axes.axes}
    alike = [feed for feed in feeds if _same_rest(feed, feeds[0], axes)]
    rows = [row for feed in alike for row in _split(feed, axes)][:wanted]
    given = len(rows)
    if given < wanted:
        rows += _made_up(model, rows[0], axes, wanted - given)
    return Rows(axes, rows, shared, len(rows) - given, feeds[0].origin)


def _same_rest(feed: Feed, first: Feed, axes: BatchAxes) -> bool:
    """Return whether a feed has rows of the same shape as another, and equal inputs without a batch."""
    for name, array in first.tensors.items():
        other = feed.tensors[name]
        if name not in axes.axes:
            if not np.array_equal(array, other):
                return False
        elif np.delete(array.shape, axes.axes[name]).tolist() != np.delete(other.shape, axes.axes[name]).tolist():
            return False
    return axes.rows_in(feed) > 0


def _split(feed: Feed, axes: BatchAxes) -> Iterator[Tensors]:
    for index in range(axes.rows_in(feed)):
        yield {name: np.take(feed.tensors[name], [index], axis=axis) for name, axis in axes.axes.items()}


def _made_up(model: Model, like: Tensors, axes: BatchAxes, count: int) -> list[Tensors]:
    """Return sensible rows of the shape of another one; none where the model's inputs cannot be made up."""
    found: list[Tensors] = []
    size = axes.fixed or 1
    shapes = {
        name: tuple(size if at == axes.axes[name] else n for at, n in enumerate(a.shape)) for name, a in like.items()
    }
    try:
        for feed in random_feeds(model, seed=1, iterations=-(-count // size), shapes=shapes):
            found += _split(feed, axes)
    except UsageError:
        return []
    return found[:count]


def another_feed(model: Model, feed: Feed, feeds: Sequence[Feed]) -> Feed | None:
    """Return a feed of the same shapes and other numbers: one of those given, else a made-up one; None without any."""
    shapes = {name: array.shape for name, array in feed.tensors.items()}
    for other in feeds:
        if {name: array.shape for name, array in other.tensors.items()} == shapes and other.digest != feed.digest:
            return other
    try:
        return next(iter(random_feeds(model, seed=1, iterations=1, shapes=shapes)), None)
    except UsageError:
        return None
