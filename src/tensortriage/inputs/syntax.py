"""The small value languages of the command line, the same ones as Polygraphy's: ``[NAME:]VALUE``, shapes, ranges.

A per-name option is split at its *last* colon, because ONNX names may hold colons themselves and values never do; an
empty name means "every one that is not named". The parsers know nothing of models: whether a name exists is checked by
whoever uses the result.
"""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from tensortriage.errors import UsageError

T = TypeVar("T")
Shape = tuple[int | str | None, ...]
Range = tuple[int | float, int | float]


def split_name(text: str) -> tuple[str, str]:
    """Split ``[NAME:]VALUE`` at the last colon outside brackets.

    Returns:
        Name (empty when not given) and value, both stripped.

    Example:
        >>> split_name("encoder:0:[1,3]")
        ('encoder:0', '[1,3]')
    """
    name, _, value = text.rpartition(":")
    return name.strip(), value.strip()


def parse_named(words: Iterable[str], cast: Callable[[str], T]) -> dict[str, T]:
    """Read words of the form ``[NAME:]VALUE``; the empty name is the default. A later word wins over an earlier one.

    Args:
        words: As given on the command line.
        cast: Turns the text of a value into the value; its `UsageError` passes through.

    Example:
        >>> parse_named(["1e-3", "logits:0.1"], parse_number)
        {'': 0.001, 'logits': 0.1}
    """
    return {name: cast(value) for name, value in map(split_name, words)}


def parse_number(text: str) -> int | float:
    """Read an int or float (``inf``, ``nan`` and ``1e-3`` included); an int stays an int.

    Raises:
        UsageError: For anything else (slug ``value-malformed``).
    """
    word = text.strip()
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    raise UsageError(f"'{text}' is not a number", slug="value-malformed", cure="write a number such as 1e-3 or inf")


def parse_numbers(words: Iterable[str]) -> dict[str, int | float]:
    """Read numbers ``[NAME:]NUMBER``; the empty name is the default."""
    return parse_named(words, parse_number)


def parse_words(words: Iterable[str]) -> dict[str, str]:
    """Read words ``[NAME:]WORD``; the empty name is the default."""
    return parse_named(words, str)


def parse_places(words: Iterable[str]) -> dict[str, float]:
    """Read whole numbers of places ``[NAME:]NUMBER``; the empty name is the default.

    Raises:
        UsageError: For anything else (``index-tolerance-invalid``).
    """
    found: dict[str, float] = {**parse_numbers(words)}
    for number in found.values():
        if number < 0 or number != int(number):
            raise UsageError(
                f"{number} is not a number of places", slug="index-tolerance-invalid", cure="give 0, 1, 2, ..."
            )
    return found


def parse_shapes(words: Iterable[str]) -> dict[str, Shape]:
    """Read shapes ``NAME:[1,3,224,224]`` (also ``NAME:1x3x224x224``, as trtexec has it).

    Returns:
        Name to shape. ``-1`` becomes None (unknown), a word becomes the name of a symbolic dimension.

    Raises:
        UsageError: When a word has another form or names no input (slug ``shape-malformed``).

    Example:
        >>> parse_shapes(["x:[1,3]", "a:b:[batch,-1]", "s:[]"])
        {'x': (1, 3), 'a:b': ('batch', None), 's': ()}
    """
    shapes = {}
    for word in words:
        name, value = split_name(word)
        if not name:
            raise _malformed_shape(word)
        shapes[name] = parse_shape(value, word)
    return shapes


def parse_shape(text: str, word: str = "") -> Shape:
    """Read one shape, ``[1,3]`` or ``1x3``; see `parse_shapes`.

    Args:
        text: The shape alone.
        word: The user's word, for the message.

    Raises:
        UsageError: When it is no shape (``shape-malformed``).
    """
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        items = inner.split(",") if inner else []
    elif text and all(part.isdigit() for part in text.split("x")):
        items = text.split("x")
    else:
        raise _malformed_shape(word or text)
    return tuple(_dimension(item, word or text) for item in items)


def _dimension(item: str, word: str) -> int | str | None:
    item = item.strip().strip("'\"")
    try:
        size = int(item)
    except ValueError:
        if item.lower() in ("none", "?"):
            return None
        if not item or any(c in "[]," or c.isspace() for c in item):
            raise _malformed_shape(word) from None
        return item
    if size < -1:
        raise _malformed_shape(word)
    return None if size == -1 else size


def _malformed_shape(word: str) -> UsageError:
    return UsageError(
        f"'{word}' is not an input shape",
        slug="shape-malformed",
        cure="write NAME:[1,3,224,224], without spaces or in quotes",
    )


def parse_ranges(words: Iterable[str]) -> dict[str, Range]:
    """Read value ranges ``[NAME:][min,max]``; the empty name is the default.

    Returns:
        Name to (min, max), both inclusive; ints stay ints; infinities are allowed.

    Raises:
        UsageError: For another form, or min above max (slug ``range-malformed``).

    Example:
        >>> parse_ranges(["[0,1]", "ids:[2,50]"])
        {'': (0, 1), 'ids': (2, 50)}
    """
    return {name: _range(value, word) for word in words for name, value in [split_name(word)]}


def _range(value: str, word: str) -> Range:
    items = value[1:-1].split(",") if value.startswith("[") and value.endswith("]") else []
    try:
        low, high = (parse_number(item) for item in items)
    except (ValueError, UsageError):
        low, high = math.nan, math.nan
    if math.isnan(low) or math.isnan(high) or low > high:
        raise UsageError(
            f"'{word}' is not a value range",
            slug="range-malformed",
            cure="write [NAME:][min,max] with min <= max, e.g. [0,1] or input_ids:[0,30521]",
        )
    return low, high


def parse_script(text: str, default: str) -> tuple[Path, str]:
    """Read ``FILE.py[:FUNCTION]``.

    Returns:
        Path of the script, and the function's name (``default`` when not given).

    Example:
        >>> parse_script("loader.py:batches", "load_data")[1]
        'batches'
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or len(file) == 1:  # A single letter before the colon is a drive.
        return Path(text), default
    return Path(file), name
