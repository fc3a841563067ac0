"""What fields of requests are given in Python."""

import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tensortriage.values.given import field
from tensortriage.values.options import argument, flag, option, request


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Ink:
    pass


def doubled(given: int) -> int:
    if not isinstance(given, int):
        raise TypeError("give a number to double")
    return 2 * given


@request
class Asked:
    """What is asked.

    Attributes:
        model: The model.
    """

    model: Path = argument("MODEL")
    word: str = option("--word", "WORD", "The word.", default="")
    count: int | None = option("--count", "N", "How many.", default=None)
    share: float = option("--share", "X", "Which part.", default=0.5)
    quiet: bool = flag("--quiet", "Say nothing.")
    colour: Colour = option("--colour", "", "Which.", default=Colour.RED)
    words: Sequence[str] = ()
    sizes: Mapping[str, int] = option("--size", "N=S", "Sizes.", default_factory=dict)
    ink: "Ink | None" = None
    judge: Callable[[int], int] | None = None
    twice: int = field(doubled, default=1)
    either: "Ink | Colour" = Colour.RED


def test_values_become_what_fields_hold():
    numbers = {"count": np.int64(3), "share": np.float32(0.25), "quiet": np.True_, "twice": 4}
    asked = Asked(model="m.onnx", word=Path("w"), colour="blue", words="one", **numbers)
    assert (asked.model, asked.word, asked.count, asked.share) == (Path("m.onnx"), "w", 3, 0.25)
    assert (asked.quiet, asked.colour, asked.words, asked.twice) == (True, Colour.BLUE, ("one",), 8)


def test_values_of_the_right_type_stay_the_same_objects():
    ink, words = Ink(), ["a", "b"]
    asked = Asked(model=Path("m"), ink=ink, words=words, judge=doubled, either=ink)
    assert asked.ink is ink
    assert asked.words is words
    assert asked.judge is doubled


@pytest.mark.parametrize(
    ("name", "value", "cure"),
    [
        ("model", 3, "3: give a path"),
        ("word", 3, "give text"),
        ("count", "3", "'3': give a whole number"),
        ("count", 2.5, "give a whole number"),
        ("count", True, "give a whole number"),
        ("share", "half", "give a number"),
        ("quiet", 1, "give True or False"),
        ("colour", "green", "give one of 'red', 'blue'"),
        ("words", 3, "a list of texts"),
        ("words", [3], "give text"),
        ("sizes", ["a=1"], "a list: give a dict"),
        ("ink", "blue", "give an object of Ink"),
        ("judge", "f", "give a function"),
        ("twice", "4", "give a number to double"),
        ("model", None, "None: give a path"),
    ],
)
def test_another_type_is_an_error_with_its_cure(name, value, cure):
    with pytest.raises(TypeError, match=rf"Asked\({name}=\.\.\.\) cannot be") as caught:
        Asked(**{"model": "m", name: value})
    assert cure in str(caught.value)


def test_the_docstring_explains_every_option():
    text = Asked.__doc__
    assert "        model: The model.\n" in text
    assert "        count: How many.\n" in text
    assert "        quiet: True: Say nothing.\n" in text
    assert text.count("Attributes:") == 1
