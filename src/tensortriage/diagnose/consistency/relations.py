"""What must be equal whatever the right answer is: pairs of rows in one run or in two, and runs of one feed.

A relation is a claim about the model, so it is put to the model's own evaluation first; only where that keeps it, an
engine that does not is wrong.
"""

import dataclasses
import enum
from collections.abc import Sequence

import numpy as np

from tensortriage.inputs.feed import Feed
from tensortriage.inputs.generated.batch_rows import Rows

ROWS = 8
"""Rows of a batch where the model takes any number: more than the 4 that vector kernels take at once."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class EqualityClaim:
    """Two runs (or one run twice looked at), and which of their rows must be equal.

    Attributes:
        kind: The claim.
        question: The claim in words, as a question.
        left: Inputs of the run that is taken as it is.
        right: Inputs of the run that is compared with it.
        pairs: Rows ``(of left, of right)`` that must be equal; empty where whole tensors are, or parts of them.
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


def row_relations(rows: Rows, *, whole: bool = True) -> list[EqualityClaim]:
    """Return the relations between rows of batches that can be put together from some rows.

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
            "does a row stay equal beside other rows?",
            base,
            twice,
            ((0, 0),),
            count,
            count,
        ),
        EqualityClaim(
            ClaimKind.MOVED,
            "do rows stay equal at other places of the batch?",
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
        return alone
    half, padded = count // 2, rows.batch(range(count), f"{count} rows and padding", blank=BLANK_ROWS)
    same = tuple((index, index) for index in range(count))
    fewer = EqualityClaim(
        ClaimKind.FEWER,
        f"are rows the same in a batch of {half}?",
        base,
        rows.batch(range(half), f"{half} rows"),
        same[:half],
        count,
        half,
    )
    more = EqualityClaim(
        ClaimKind.MORE,
        f"are rows the same with {BLANK_ROWS} rows of zeros after them?",
        base,
        padded,
        same,
        count,
        count + BLANK_ROWS,
    )
    return [*([fewer] if half > 1 else []), *alone, more]


def masked_relation(feed: Feed) -> EqualityClaim | None:
    """Return the claim that what a mask or a length hides has no effect; None where no input says what is hidden.

    A mask is an input of zeros and ones, two axes, that is called so; a length is an integer for each row. Inputs that
    share the first two axes hold other numbers in the right run where they are hidden. Where nothing is hidden, the
    last quarter of every row is, in both runs.
    """
    found = _hidden(feed)
    if found is None:
        return None
    name, hidden, left = found
    shape = hidden.shape
    changed = dict(left)
    for other, array in left.items():
        if other != name and array.ndim >= 2 and array.shape[:2] == shape:
            places = hidden.reshape(*shape, *[1] * (array.ndim - 2))
            changed[other] = np.where(places, np.flip(array, axis=1), array)
    if all(np.array_equal(changed[other], left[other]) for other in left):
        return None
    return EqualityClaim(
        ClaimKind.MASKED,
        f"are the positions that '{name}' hides without effect?",
        Feed(f"hidden by {name}", left, feed.origin),
        Feed(f"hidden by {name}, other numbers there", changed, feed.origin),
    )


def _hidden(feed: Feed) -> tuple[str, np.ndarray, dict[str, np.ndarray]] | None:
    """Return the input that hides positions, where (bool, rows by positions), and the feed with something hidden."""
    tensors = dict(feed.tensors)
    for name, array in feed.tensors.items():
        if "mask" in name.lower() and array.ndim == 2 and array.dtype.kind in "iufb" and np.isin(array, (0, 1)).all():
            mask = array.copy()
            if mask.all():
                mask[:, -max(1, mask.shape[1] // 4) :] = 0
            tensors[name] = mask
            return name, np.asarray(mask == 0), tensors
        steps = _steps(feed, name) if "len" in name.lower() else 0
        if steps:
            lengths = (
                array if (array < steps).any() else np.minimum(array, max(1, steps - steps // 4)).astype(array.dtype)
            )
            tensors[name] = lengths
            return name, np.arange(steps)[None, :] >= lengths.reshape(-1, 1), tensors
    return None


def _steps(feed: Feed, name: str) -> int:
    """Return along how many positions the numbers of an input can be lengths; 0 when they cannot."""
    lengths = feed.tensors[name]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not lengths.size:
        return 0
    sizes = [a.shape[1] for n, a in feed.tensors.items() if n != name and a.ndim >= 2 and len(a) == len(lengths)]
    return next((size for size in sizes if lengths.min() > 0 and lengths.max() <= size), 0)


def whole_relations(feed: Feed, *, streams: bool) -> Sequence[EqualityClaim]:
    """Return the claims that a feed gives the same again, and in two streams at once."""
    again = EqualityClaim(ClaimKind.AGAIN, "does a feed give the same outputs after other feeds?", feed, feed)
    both = EqualityClaim(ClaimKind.STREAMS, "do two streams that run one feed at once agree?", feed, feed)
    return [again, both] if streams else [again]
