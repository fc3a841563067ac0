"""Rows of tokens next to other ones: special tokens, cut ends, padding and its side, read off two feeds.

Both rows without their padding are laid next to each other. What one lacks at its ends or within tells the change; a
mask and numbers of segments that go with the tokens change with them.
"""

import dataclasses
import difflib

import numpy as np

from tensortriage_feeds.transforms import Tensors, Transform

_LEAST = 3
_SHARED = 0.5
"""Share of the longer row's tokens that both have, in their order, from which on they are one text."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """Tokens without padding."""

    tokens: tuple[int, ...]
    before: int
    behind: int


def other_rows(mine: Tensors, theirs: Tensors) -> Transform | None:
    """Return how rows of tokens, and what goes with them, became others; None where they are not one text.

    Args:
        mine: The right feed.
        theirs: The other one.
    """
    names = [n for n in mine if n in theirs and _is_rows(mine[n]) and mine[n].dtype == theirs[n].dtype]
    unlike = tuple(name for name in mine if name in theirs and not np.array_equal(mine[name], theirs[name]))
    if not set(unlike) <= set(names):
        return None
    ids = next((n for n in unlike if _of_tokens(n, mine[n])), None)
    mask = next((n for n in names if "mask" in n.lower()), None)
    if ids is None or len(mine[ids]) != len(theirs[ids]):
        return None
    both = [[_row(feed, ids, mask, at) for at in range(len(feed[ids]))] for feed in (mine, theirs)]
    words: list[str] = []
    numbers: dict[str, object] = {}
    for one, other in zip(*both, strict=True):
        told = _told(one, other)
        if told is None:
            return None
        words += [each for each in told[0] if each not in words]
        numbers = {**told[1], **numbers}
    if not words:
        return None
    kind = str(numbers.pop("kind"))
    others = [f"'{name}'" for name in unlike if name != ids]
    goes = f"; {' and '.join(others)} with it" if others else ""
    sides = {"left": "right", "right": "left"}
    cures = {
        "truncated": "tokenize with the max_length and the truncation of the reference",
        "padding-side": f"tokenizer.padding_side = '{sides.get(str(numbers.get('side')), 'right')}'",
        "tokens": "tokenize with the tokenizer of training, and its special tokens (add_special_tokens)",
    }
    return Transform(kind, (ids, *(n for n in unlike if n != ids)), f"{' and '.join(words)}{goes}",
                     lambda _: {name: theirs[name] for name in unlike}, cures[kind], numbers)  # fmt: skip


def _is_rows(array: np.ndarray) -> bool:
    return array.dtype.kind in "iub" and array.ndim == 2 and array.shape[1] >= _LEAST


def _of_tokens(name: str, array: np.ndarray) -> bool:
    return "mask" not in name.lower() and np.unique(array).size > _LEAST and bool((np.diff(array) != 1).any())


def _row(feed: Tensors, ids: str, mask: str | None, at: int) -> _Row:
    row = feed[ids][at]
    if mask is not None and feed[mask].shape == feed[ids].shape and feed[mask][at].any():
        shown = np.flatnonzero(feed[mask][at])
        first, end = int(shown[0]), int(shown[-1]) + 1
    else:
        first, end = _ends(row)
    return _Row(tuple(row[first:end].tolist()), first, row.size - end)


def _ends(row: np.ndarray) -> tuple[int, int]:
    """Return where a row begins and ends without a number that is repeated at an end."""

    def run(numbers: np.ndarray) -> int:
        unlike = np.flatnonzero(numbers != numbers[0])
        count = int(unlike[0]) if unlike.size else numbers.size
        return count if count > 1 else 0

    return run(row), row.size - run(row[::-1])


def _told(one: _Row, other: _Row) -> tuple[list[str], dict[str, object]] | None:
    """Return words and numbers of what one row is in place of another; None where they are not one text."""
    words: list[str] = []
    numbers: dict[str, object] = {}
    if one.tokens != other.tokens:
        found = _edited(one.tokens, other.tokens)
        if found is None:
            return None
        words, numbers = [found[0]], found[1]
    right, made = (each.before > each.behind for each in (one, other))
    if right != made and max(one.before, one.behind) and max(other.before, other.behind):
        side = "left" if made else "right"
        words.append(f"is padded on the {side}")
        numbers = {"kind": "padding-side", **numbers, "side": side}
    return words, numbers


def _edited(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[str, dict[str, object]] | None:
    """Return which tokens one row lacks or has more than another; None where that is no usual change."""
    length = len(other)
    if length == len(one):
        return None  # numbers in place of others are no change of the row
    if length < len(one):
        if one[:length] == other or (one[: length - 1], one[-1:]) == (other[:-1], other[-1:]):
            kept = "its last token kept" if one[-1:] == other[-1:] else "its last token cut off, too"
            if len(one) - length > 1 or one[:length] != other:
                return f"is cut to {length} tokens ({kept})", {"kind": "truncated", "length": length, "side": "right"}
        if len(one) - length > 1 and (one[-length:] == other or (one[0], *one[len(one) - length + 1 :]) == other):
            return f"is cut to its last {length} tokens", {"kind": "truncated", "length": length, "side": "left"}
    edits = difflib.SequenceMatcher(None, one, other, autojunk=False)
    lacks, has = [], []
    for tag, begin, end, start, stop in edits.get_opcodes():
        if tag in ("delete", "replace"):
            lacks += [(one[at], at) for at in range(begin, end)]
        if tag in ("insert", "replace"):
            has += [(other[at], at) for at in range(start, stop)]
    shared = max(len(one), len(other)) - max(len(lacks), len(has))
    ends = {*one[:1], *one[-1:], *other[:1], *other[-1:]}  # special tokens are at ends
    if not ends.issuperset(token for token, _ in (*lacks, *has)) or shared < _SHARED * max(len(one), len(other)):
        return None
    says = [f"{verb} {', '.join(f'{token} at {at}' for token, at in those)}"
            for verb, those in (("lacks", lacks), ("has", has)) if those]  # fmt: skip
    said = " and ".join(says) + " (special tokens, or another tokenizer)"
    return said, {"kind": "tokens", "lacks": [token for token, _ in lacks], "has": [token for token, _ in has]}
