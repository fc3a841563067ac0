"""Results that must be equal, whatever the right answer is: pairs of rows in one run or in two, and runs of one feed.

A relation is a claim about the model, so it is put to the model's own evaluation first; only where that keeps it, an
engine that does not is wrong.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tensortriage.api import EngineSpec, Feed
from tensortriage.envelope.sdk import Rows
from tensortriage_worker.feeding import HELD, KEPT, MISALIGNED, STRIDED

ROWS = 8
"""Rows of a batch where the model takes any number: more than the 4 that vector kernels take at once."""

ODD_ROWS = (7, 5, 3)
"""Smaller batches next to one row: the remainders of tiles of two, four and eight rows."""

BLANK_ROWS = 3
"""Rows of zeros behind a batch: with 8 rows 11, which no tile of a power of two divides."""


class ClaimKind(enum.Enum):
    """The relations; the value is the word in files."""

    TWICE = "same-row-twice"
    NEIGHBOURS = "other-neighbours"
    MOVED = "rows-permuted"
    FEWER = "smaller-batch"
    ALONE = "batch-of-one"
    MORE = "rows-of-padding"
    MASKED = "masked-positions"
    AGAIN = "same-feed-again"
    STREAMS = "two-streams"
    THREADS = "other-threads"
    MISALIGNED = "misaligned-inputs"
    STRIDED = "strided-inputs"
    KEPT = "same-buffers-again"
    HELD = "results-kept"

    @property
    def whole(self) -> bool:
        """Whether the claim is about two runs of one feed, and not about rows or positions of it."""
        return self in _WHOLE


_WHOLE = frozenset(
    {
        ClaimKind.AGAIN,
        ClaimKind.STREAMS,
        ClaimKind.THREADS,
        ClaimKind.MISALIGNED,
        ClaimKind.STRIDED,
        ClaimKind.KEPT,
        ClaimKind.HELD,
    }
)
LAID_OUT = {
    ClaimKind.MISALIGNED: MISALIGNED,
    ClaimKind.STRIDED: STRIDED,
    ClaimKind.KEPT: KEPT,
    ClaimKind.HELD: HELD,
}
"""How inputs, or results that are kept, lie in memory in the right run of a claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class EqualityClaim:
    """Two runs (or one run twice looked at), and which of their rows must be equal.

    Attributes:
        question: The claim in words, as a question.
        left: Inputs of the run that stays unchanged.
        right: Inputs of the run that is compared with it.
        pairs: Rows ``(of left, of right)`` that must be equal; empty where whole tensors are, or parts of them.
        beside: The other stream's feeds, or the buffers' former contents; None for claims without.
        engine: The engine of the right run, with other options; None for the same one.
        rows_left: Rows of the left batch; 0 without pairs.
        rows_right: Rows of the right one.
    """

    kind: ClaimKind
    question: str
    left: Feed
    right: Feed
    pairs: tuple[tuple[int, int], ...] = ()
    rows_left: int = 0
    rows_right: int = 0
    beside: Feed | None = None
    engine: EngineSpec | None = None


def row_relations(rows: Rows, *, whole: bool = True) -> list[EqualityClaim]:
    """Return the relations between rows of batches that can be composed of some rows.

    Args:
        rows: At least two.
        whole: Whether all are wanted; otherwise those that need three runs.
    """
    count = len(rows.rows)
    base = rows.batch(range(count), f"{count} rows")
    twice = rows.batch([0] * count, f"row 0, {count} times")
    moved = rows.batch([(index - 1) % count for index in range(count)], f"{count} rows, moved by one")
    found = [
        EqualityClaim(
            ClaimKind.TWICE,
            f"are {count} equal rows of a batch equal?",
            twice,
            twice,
            tuple((0, index) for index in range(1, count)),
            count,
            count,
        ),
        EqualityClaim(
            ClaimKind.NEIGHBOURS,
            "does a row stay equal next to other rows?",
            base,
            twice,
            ((0, 0),),
            count,
            count,
        ),
        EqualityClaim(
            ClaimKind.MOVED,
            "do rows stay equal at other positions in the batch?",
            base,
            moved,
            tuple((index, (index + 1) % count) for index in range(count)),
            count,
            count,
        ),
    ]
    if rows.axes.fixed is None:
        found += _other_sizes(rows, base, whole=whole)
    return found


def _other_sizes(rows: Rows, base: Feed, *, whole: bool) -> list[EqualityClaim]:
    """Return the relations between batches of different sizes."""
    count = len(rows.rows)
    same = tuple((index, index) for index in range(count))
    sizes = sorted({count - 1, *([count // 2] if whole else []), *ODD_ROWS} - {0, 1}, reverse=True)
    fewer = [
        EqualityClaim(
            ClaimKind.FEWER,
            f"are rows the same in a batch of {size}?",
            base,
            rows.batch(range(size), f"{size} rows"),
            same[:size],
            count,
            size,
        )
        for size in sizes
        if size < count
    ]
    alone = [
        EqualityClaim(
            ClaimKind.ALONE,
            f"is row {index} the same in a batch of 1?",
            base,
            rows.batch([index], f"row {index} alone"),
            ((index, 0),),
            count,
            1,
        )
        for index in dict.fromkeys((0, count - 1) if whole else (count - 1,))
    ]
    if not whole:
        return [*fewer, *alone]
    padded = rows.batch(range(count), f"{count} rows and padding", blank=BLANK_ROWS)
    more = EqualityClaim(
        ClaimKind.MORE,
        f"are rows the same with {BLANK_ROWS} rows of zeros after them?",
        base,
        padded,
        same,
        count,
        count + BLANK_ROWS,
    )
    return [*fewer, *alone, more]


def whole_relations(
    feed: Feed,
    *,
    other: Feed | None = None,
    layouts: Sequence[str] = (),
    threads: Mapping[str, EngineSpec] = MappingProxyType({}),
    streams: bool = False,
) -> list[EqualityClaim]:
    """Return the claims that a feed gives the same result however it is run, expensive ones last.

    Args:
        feed: The feed; it runs last of all, to show the effects of runs of other feeds.
        other: Another one of the same shapes; None where there is none.
        layouts: How the engine's inputs may lie in memory.
        threads: The engine with other numbers of threads, by the option that sets it.
        streams: Whether to run both feeds at once.
    """
    words = {
        ClaimKind.MISALIGNED: "does a feed give the same result from unaligned memory?",
        ClaimKind.STRIDED: "does a feed give the same result from every other element of a buffer?",
        ClaimKind.KEPT: "does a feed give the same result from reused buffers, and again from unchanged ones?",
        ClaimKind.HELD: "are earlier results unchanged after the next run?",
    }
    laid_out = [kind for kind, layout in LAID_OUT.items() if layout in layouts]
    found = [EqualityClaim(ClaimKind.AGAIN, "does a feed give the same outputs after other feeds?", feed, feed)]
    found += [EqualityClaim(kind, words[kind], feed, feed, beside=other) for kind in laid_out]
    found += [
        EqualityClaim(ClaimKind.THREADS, f"does a feed give the same result with {words}?", feed, feed, engine=engine)
        for words, engine in threads.items()
    ]
    if other is not None and streams:
        question = "does a feed give the same result while another runs in a second stream?"
        found += [
            EqualityClaim(ClaimKind.STREAMS, question, feed, feed, beside=other),
            EqualityClaim(ClaimKind.STREAMS, "does that other feed?", other, other, beside=feed),
        ]
    return found
