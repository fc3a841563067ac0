"""What is shown cannot act, and nothing that is harmless changes."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.values.printable import printable


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain/name_1", "plain/name_1"),
        ("名前/слой/é", "名前/слой/é"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x00", "\\x00"),
        ("a\u202eb", "a\\u202eb"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_printable_shows_what_would_act(raw: str, shown: str) -> None:
    assert printable(raw) == shown


@given(st.text())
def test_printable_leaves_no_character_that_acts_and_changes_nothing_twice(raw: str) -> None:
    shown = printable(raw)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    assert printable(shown) == shown
