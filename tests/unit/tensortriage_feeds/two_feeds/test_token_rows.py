"""Rows of tokens next to other ones; what is right is what was written into the rows here."""

import numpy as np
import pytest

from tensortriage_feeds.two_feeds.differences import difference

LENGTH = 16


def rows(*tokens: int, left: bool = False, segments: int = 0) -> dict[str, np.ndarray]:
    """Return one row of tokens, its mask, and segments of which the last tokens are the second."""
    pads = [0] * (LENGTH - len(tokens))
    ids = [*pads, *tokens] if left else [*tokens, *pads]
    shown = [0] * len(pads) + [1] * len(tokens) if left else [1] * len(tokens) + [0] * len(pads)
    second = [0] * (len(tokens) - segments) + [1] * segments
    types = [*pads, *second] if left else [*second, *pads]
    named = {"input_ids": ids, "attention_mask": shown, "token_type_ids": types}
    return {name: np.array([row]) for name, row in named.items()}


TEXT = (101, 7, 8, 9, 15, 102, 21, 22, 23, 102)
RIGHT = rows(*TEXT, segments=4)
MADE = {
    "padding-side": rows(*TEXT, segments=4, left=True),
    "truncated": rows(*TEXT[:6], segments=0),
    "tokens": rows(7, 8, 9, 15, 21, 22, 23, segments=3),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_change_of_rows_is_told_with_what_goes_with_it(kind):
    (step,) = difference(RIGHT, MADE[kind]).steps
    assert step.kind == kind
    assert {"input_ids", "attention_mask"} <= set(step.inputs)


def test_numbers_of_the_change_are_told():
    assert difference(RIGHT, MADE["truncated"]).steps[0].parameters["length"] == 6
    assert difference(RIGHT, MADE["tokens"]).steps[0].parameters["lacks"] == [101, 102, 102]
    more = difference(rows(7, 8, 9, 15), rows(1, 7, 8, 9, 15, 2)).steps[0]
    assert more.parameters["has"] == [1, 2]


@pytest.mark.parametrize("other", [(101, 7, 8, 400, 15, 102, 21, 500, 23, 102), (101, 60, 61, 62, 63, 64, 102)])
def test_another_text_is_no_mistake(other):
    assert not difference(RIGHT, rows(*other)).is_known
