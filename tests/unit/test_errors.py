"""Errors offer the word that was meant, all in the same way."""

from pathlib import Path

import pytest

import tensortriage
from tensortriage.errors import did_you_mean, nearest

SOURCES = sorted(Path(tensortriage.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("treads", ["threads", "device"], "did you mean 'threads'?"),
        ("CLIP", ["Clip", "Relu"], "did you mean 'Clip'?"),
        ("quite another", ["threads"], ""),
        ("anything", [], ""),
    ],
)
def test_the_nearest_known_word_is_offered_as_it_is_written(word, known, found):
    assert did_you_mean(word, known) == found


def test_several_are_offered_where_several_may_be_meant():
    assert did_you_mean("conv_1", ["conv_10", "conv_11", "relu"], most=3) == "did you mean 'conv_11' or 'conv_10'?"


def test_what_else_to_do_is_told_where_nothing_is_like_it():
    assert did_you_mean("x", ["threads"], otherwise="list them") == "list them"
    assert nearest("x", ["threads"]) == []


def test_only_one_place_looks_for_words_that_are_alike():
    users = [file.name for file in SOURCES if "get_close_matches" in file.read_text()]
    assert users == ["errors.py"]
