"""Sweeping open dimensions: one feed of another shape for every combination of sizes.

The numbers of a feed are kept: along a swept axis they are repeated in turn when it grows and cut off when it shrinks.
So real data stay real. Repeated floating-point rows are shifted along the last axis: where all rows of a batch were
one, a result that is the first row's everywhere would be right.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import whole_number

"""Word of a sweep -> input name -> axis."""


@frozen_dataclass
class Shaped:
    """A feed of a sweep.

    Attributes:
        label: E.g. ``batch=8, seq=16``.
        feed: The feed, named by its label.
    """

    label: str
    feed: Feed


def parse_sweep(words: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return sizes by dimension from words like ``batch=1,2,8``.

    Raises:
        UsageError: For anything else (``sweep-malformed``).
    """
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, sizes = word.rpartition("=")
        try:
            numbers = tuple(dict.fromkeys(int(size) for size in sizes.split(",")))
        except ValueError:
            numbers = ()
        if not name or not numbers or min(numbers) < 1 or name in found:
            raise UsageError(
                f"'{word}' is not a sweep",
                slug="sweep-malformed",
                cure="write DIMENSION=SIZE,SIZE..., e.g. batch=1,2,8",
            )
        found[name] = numbers
    return found


def swept(feed: Feed, specs: Sequence[ValueSpec], sizes: Mapping[str, tuple[int, ...]]) -> list[Shaped]:
    """Return one feed for every combination of sizes.

    Args:
        feed: Where the numbers come from.
        specs: The model's inputs.
        sizes: Sizes by dimension: the name of an open dimension, ``INPUT:AXIS``, or ``batch`` for the first axis of all
            inputs that have it open.

    Raises:
        UsageError: For a dimension that the model does not leave open (``sweep-unknown``), or a size whose numbers do
            not fit into memory (``sweep-too-large``).
    """
    axes = {name: _axes(name, specs) for name in sizes}
    found = []
    for combination in itertools.product(*sizes.values()):
        chosen = dict(zip(sizes, combination, strict=True))
        label = ", ".join(f"{name}={size}" for name, size in chosen.items())
        tensors = dict(feed.tensors)
        for name, size in chosen.items():
            for tensor, axis in axes[name].items():
                try:
                    tensors[tensor] = _resized(tensors[tensor], axis, size)
                except (ValueError, MemoryError, OverflowError) as error:
                    raise UsageError(
                        f"input '{tensor}' does not fit into memory with {label}",
                        slug="sweep-too-large",
                        cure="sweep smaller sizes",
                    ) from error
        found.append(Shaped(label, Feed(f"{feed.name} with {label}", tensors, feed.origin)))
    return found


def _axes(name: str, specs: Sequence[ValueSpec]) -> dict[str, int]:
    """Return the axes of the inputs that a word of a sweep denotes."""
    owner, _, word = name.rpartition(":")
    axis = whole_number(word)
    if owner in {spec.name for spec in specs} and axis is not None:
        spec = next(spec for spec in specs if spec.name == owner)
        if spec.shape is not None and axis < len(spec.shape) and not isinstance(spec.shape[axis], int):
            return {owner: axis}
    found = {spec.name: axis for spec in specs for axis, size in enumerate(spec.shape or ()) if size == name}
    if not found and name == "batch":
        found = {spec.name: 0 for spec in specs if spec.shape and not isinstance(spec.shape[0], int)}
    sums = [s for spec in specs for s in spec.shape or () if isinstance(s, str) and "+" in s and name in s]
    if found and not sums:
        return found
    open_ones = dict.fromkeys(
        size if isinstance(size, str) else f"{spec.name}:{axis}"
        for spec in specs
        for axis, size in enumerate(spec.shape or ())
        if not isinstance(size, int)
    )
    raise UsageError(
        f"'{sums[0]}' depends on '{name}', so that '{name}' cannot be swept alone"
        if sums
        else f"no dynamic dimension is called '{name}'",
        slug="sweep-unknown",
        cure=f"sweep one of: {', '.join(open_ones)}"
        if open_ones and not sums
        else "give feeds of these shapes with --inputs; where all sizes are fixed, export with dynamic_shapes",
    )


def _resized(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    had = max(array.shape[axis], 1)
    found = np.ascontiguousarray(np.take(array, np.arange(size) % had, axis=axis))
    if array.dtype.kind == "f" and axis < array.ndim - 1:
        rows = np.moveaxis(found, axis, 0)
        for first in range(had, size, had):
            rows[first : first + had] = np.roll(rows[first : first + had], first // had, axis=-1)
    return found
