"""Syntax of the options of edits, the same as Polygraphy's: values with type and shape, bounds on sizes."""

from collections.abc import Iterable

from tensortriage.sdk import DType, UsageError, ValueSpec, parse_named, parse_shape, split_name, whole_number


def parse_metadata(words: Iterable[str]) -> dict[str, ValueSpec]:
    """Read ``NAME:SHAPE:DTYPE`` of `surgeon extract --inputs`; ``auto`` means an unknown shape or type.

    Returns:
        Name to spec; a shape or dtype written as ``auto`` is None.

    Raises:
        UsageError: For another form (slug ``shape-malformed``) or an unknown type (``dtype-unknown``).

    Example:
        >>> parse_metadata(["x:[1,3]:float16"])["x"].shape
        (1, 3)
    """
    specs = {}
    for word in words:
        rest, dtype = split_name(word)
        name, shape = split_name(rest)
        if not name:
            raise UsageError(
                f"'{word}' lacks a name, a shape or a type",
                slug="shape-malformed",
                cure="write NAME:[1,3,224,224]:float32, or auto for an unknown shape or type",
            )
        specs[name] = ValueSpec(
            name,
            None if dtype.lower() == "auto" else DType.parse(dtype),
            None if shape.lower() == "auto" else parse_shape(shape, word),
        )
    return specs


def parse_outputs(words: Iterable[str]) -> dict[str, DType | None]:
    """Read ``NAME:TYPE`` as `surgeon extract --outputs` takes it; None for the type ``auto``.

    Raises:
        UsageError: For a word without a type (slug ``output-malformed``) or an unknown type (``dtype-unknown``).
    """
    found: dict[str, DType | None] = {}
    for word in words:
        name, dtype = split_name(word)
        if not name or not dtype:
            raise UsageError(
                f"'{word}' lacks a name or a type",
                slug="output-malformed",
                cure=f"write {word.rstrip(':') or 'NAME'}:auto",
            )
        found[name] = None if dtype.lower() == "auto" else DType.parse(dtype)
    return found


def parse_bounds(words: Iterable[str]) -> dict[str, int]:
    """Read bounds on sizes ``[NAME:]N``; the empty name is the default.

    Raises:
        UsageError: For anything but a positive integer (slug ``value-malformed``).
    """
    return parse_named(words, _bound)


def _bound(text: str) -> int:
    if not (number := whole_number(text)):
        raise UsageError(
            f"'{text}' is not a bound on a size", slug="value-malformed", cure="write [NAME:]N, e.g. 1000 or boxes:300"
        )
    return number
