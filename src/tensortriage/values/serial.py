"""Frozen dataclasses to JSON and back, exactly: a NaN stays a NaN, a wrong type is named with its place in the file.

JSON has no NaN or Infinity, and a debugger of numbers has many; they are the strings ``"NaN"``, ``"Infinity"`` and
``"-Infinity"`` here, as in the JSON mapping of protocol buffers. Every dataclass that becomes a file has a field
``format`` with a default such as ``tensortriage.run/1``; reading a file of another format is an error, not a guess.
"""

import dataclasses
import enum
import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from tensortriage.errors import StoreError
from tensortriage.values.files import read_regular, write_text

T = TypeVar("T")


def to_json(obj: object, *, compact: bool = False) -> str:
    """Return JSON text of dataclasses, mappings, sequences, sets, enums, paths, numbers (numpy's too) and strings.

    Args:
        obj: The object.
        compact: One line without blanks instead of lines to read.

    Raises:
        TypeError: For anything else (arrays belong into a tensor store).
    """
    text = json.dumps(to_plain(obj), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text if compact else indented(text)


def indented(text: str) -> str:
    """Return JSON text in lines to read, as the standard library does with ``indent=1``, in a tenth of the time."""
    try:
        return msgspec.json.format(text, indent=1)
    except UnicodeEncodeError:  # half of a surrogate pair, from a file name of any bytes
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)


def from_json(text: str | bytes, kind: type[T], *, source: str = "") -> T:
    """Read a document that `to_json` wrote.

    Args:
        text: JSON document.
        kind: Dataclass (or other type that msgspec can convert to) expected at the top.
        source: Source of the text, for the message.

    Raises:
        StoreError: For bad JSON or a wrong type, with the place inside (``json-invalid``), or for a file of another
            format or a newer version (``format-unknown``).
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(source, f"not JSON: {error}") from error
    expected = _format_of(kind)
    found = data.get("format") if isinstance(data, dict) else None
    if expected and found != expected:
        raise StoreError(
            f"{source or 'this text'} has format {found!r}, expected '{expected}'",
            slug="format-unknown",
            cure="use the version of TensorTriage that wrote it, or create the file again",
        )
    try:
        return msgspec.convert(data, kind, strict=False, dec_hook=_decode_hook)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _invalid(source, str(error)) from error


def dump(obj: object, path: Path) -> None:
    """Write `to_json` of an object to a file that is replaced in one step, so a reader never sees half of it.

    Raises:
        StoreError: When the file cannot be written (``file-unwritable``).
    """
    write_text(Path(path), to_json(obj) + "\n")


def load(path: Path, kind: type[T]) -> T:
    """Read a file that `dump` wrote.

    Raises:
        StoreError: When the file cannot be read (``file-unreadable``), and as `from_json`.
    """
    try:
        text = read_regular(Path(path))
    except OSError as error:
        raise StoreError(
            f"cannot read {path}: {error.strerror or error}", slug="file-unreadable", cure="check the path"
        ) from error
    return from_json(text, kind, source=str(path))


def to_plain(obj: object) -> object:
    """Return the JSON counterpart of an object: numbers, words, lists and dictionaries alone; see `to_json`.

    Raises:
        TypeError: For an object of a type that has no JSON form.
    """
    kind = type(obj)
    if kind is float:
        return obj if math.isfinite(obj) else _number(obj)  # type: ignore[arg-type]  # a float by its exact type
    if obj is None or kind in _AS_THEY_ARE:
        return obj
    if isinstance(obj, enum.Enum):
        return to_plain(obj.value)
    if isinstance(obj, str):
        return str(obj)
    if isinstance(obj, int):
        return int(obj)
    if isinstance(obj, float):
        return _number(float(obj))
    if isinstance(obj, np.generic):
        return _plain_scalar(obj)
    if dataclasses.is_dataclass(kind):
        return {name: to_plain(getattr(obj, name)) for name in _fields(kind)}
    if isinstance(obj, Mapping):
        return {str(to_plain(key)): to_plain(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [to_plain(item) for item in obj]
    if isinstance(obj, set | frozenset):
        return [to_plain(item) for item in sorted(obj)]
    if isinstance(obj, Path):
        return str(obj)
    raise TypeError(f"{kind.__name__} has no JSON form")


_AS_THEY_ARE = (str, int, bool)


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _plain_scalar(scalar: np.generic) -> object:
    item = scalar.item()
    if isinstance(item, np.generic) or not isinstance(item, bool | int | float | str):  # ml_dtypes, complex
        return _number(float(scalar)) if not np.iscomplexobj(scalar) else to_plain([scalar.real, scalar.imag])
    return to_plain(item)


def _number(value: float) -> object:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _format_of(kind: Any) -> str:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    default = next((field.default for field in fields if field.name == "format"), "")
    return default if isinstance(default, str) else ""


def _decode_hook(kind: type, value: Any) -> Any:
    if issubclass(kind, Path):
        return kind(value)
    raise NotImplementedError(f"{kind.__name__} is not a type that files hold")


def _invalid(source: str, reason: str) -> StoreError:
    return StoreError(
        f"{source or 'this text'} is damaged: {reason}", slug="json-invalid", cure="delete it and run the command again"
    )
