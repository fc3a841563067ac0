"""The difference of two files of inputs as text."""

from collections.abc import Iterator

from tensortriage.sdk import Line, error_size
from tensortriage_feeds.check.check import FeedDifference


def difference_lines(found: FeedDifference) -> Iterator[Line]:
    """Yield the difference, its remedy and its cost."""
    yield [(found.summary, "green" if found.same else "red")]
    if found.samples > 1 and not found.same:
        yield f"so in {found.alike} of {found.samples} samples"
    if found.cure:
        yield f"cure: {found.cure}"
    for name, error in found.costs.items():
        yield f"it costs {error_size(error)} at output '{name}'"
    if found.refused:
        yield f"its cost is unknown: {found.refused}"
