"""The Python value of a request's field, converted to its type: text for a path, one word for several.

A request is checked when it is made, before anything runs. A field's ``accepts`` names the function that converts other
values (a model in memory, arrays, an engine's spec); fields without it go by their type.
"""

import dataclasses
import enum
import importlib
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

ACCEPTS = "tensortriage.accepts"
"""Key of a field's metadata: a function from the given value to the field's, or ``module:function``.

It raises a `TypeError` whose text is the cure.
"""


def resolved(named: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return the object that ``module:name`` names; anything else is returned unchanged."""
    if not isinstance(named, str):
        return named
    module, _, path = named.partition(":")
    found: Callable[..., Any] = operator.attrgetter(path)(importlib.import_module(module))
    return found


def field(accepts: Callable[..., Any] | str, **more: Any) -> Any:
    """Return a plain field of a request, converted by ``accepts``."""
    return dataclasses.field(metadata={ACCEPTS: accepts}, **more)


def take(request: Any) -> None:
    """Convert the given values of a new request's fields.

    Raises:
        TypeError: For a value that cannot be converted to the field's type.
    """
    kind: type = type(request)
    for name, optional, make in _makers(kind):
        found = getattr(request, name)
        if found is None and optional:
            continue
        try:
            made = make(found)
        except TypeError as problem:
            what = f"{kind.__name__}({name}=...) cannot be {_shown(found)}"
            raise TypeError(f"{what}: {problem}") from None
        if made is not found:
            object.__setattr__(request, name, made)


@cache
def _makers(kind: type) -> tuple[tuple[str, bool, Callable[[Any], Any]], ...]:
    """Return the fields that are checked: name, whether it may be None, and its conversion."""
    found = []
    for each in dataclasses.fields(kind):
        words = each.type.__name__ if type(each.type) is type else _MODULES.sub("", str(each.type))
        plain, _, rest = words.partition(" | ")
        if rest in ("", "None") and (make := _maker(each, plain)) is not None:
            found.append((each.name, rest == "None" or each.default is None, make))
    return tuple(found)


def _maker(each: "dataclasses.Field[Any]", plain: str) -> Callable[[Any], Any] | None:
    """Return the converter of a field: by its declaration, else by the words of its type; None for anything."""
    accepts = each.metadata.get(ACCEPTS)
    if accepts is not None:
        return resolved(accepts)
    if isinstance(each.type, type) and issubclass(each.type, enum.Enum):
        return partial(_member, each.type)
    if plain in _BY_TYPE:
        return _BY_TYPE[plain]
    container = next((make for words, make in _BY_CONTAINER.items() if plain.startswith(words)), None)
    if container is None and plain.isidentifier() and plain[0].isupper() and plain not in _PROTOCOLS:
        return partial(_instance, plain)
    return container


def _path(given: Any) -> Path:
    if isinstance(given, (str, os.PathLike)) and "\0" not in os.fspath(given):
        return given if isinstance(given, Path) else Path(given)
    raise TypeError("give a path, as text or Path, without a NUL")


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, Path):
        return str(given)
    raise TypeError("give text")


def _texts(given: Any) -> Sequence[str]:
    if isinstance(given, (str, os.PathLike)):
        return (_text(given),)
    if isinstance(given, (list, tuple)):
        return given if all(isinstance(each, str) for each in given) else tuple(_text(each) for each in given)
    raise TypeError("give text, or a list of texts")


def _truth(given: Any) -> bool:
    if isinstance(given, bool) or type(given).__name__ in ("bool", "bool_"):
        return bool(given)
    raise TypeError("give True or False")


def _whole(given: Any) -> int:
    try:
        if isinstance(given, bool):
            raise TypeError
        return given if type(given) is int else operator.index(given)
    except TypeError:
        raise TypeError("give a whole number") from None


def _number(given: Any) -> float:
    if isinstance(given, (str, bytes, bool)) or not hasattr(given, "__float__"):
        raise TypeError("give a number")
    return given if isinstance(given, (int, float)) else float(given)


def _member(kind: type[enum.Enum], given: Any) -> enum.Enum:
    if isinstance(given, kind):
        return given
    words = {str(each.value): each for each in kind}
    if isinstance(given, str) and given in words:
        return words[given]
    raise TypeError(f"give one of {', '.join(map(repr, words))}")


def _instance(name: str, given: Any) -> Any:
    """Return an object of a class that is known here by its name, which may be expensive to import."""
    if any(each.__name__ == name for each in type(given).__mro__):
        return given
    raise TypeError(f"give an object of {name}")


def _mapping(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    raise TypeError("give a dict")


def _several(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return given
    raise TypeError("give a list")


def _function(given: Any) -> Any:
    if callable(given):
        return given
    raise TypeError("give a function")


_MODULES = re.compile(r"(?:\w+\.)+(?=\w)")
"""The modules before the names in an annotation."""

_PROTOCOLS = frozenset({"Any", "EngineFlags", "Person"})
"""Types that any object may be of."""

_BY_CONTAINER: Mapping[str, Callable[[Any], Any]] = {
    "Mapping[": _mapping, "Sequence[": _several, "tuple[": _several, "Callable[": _function, "Metric": _function,
}  # fmt: skip
_BY_TYPE: Mapping[str, Callable[[Any], Any]] = {
    "Path": _path, "str": _text, "bool": _truth, "int": _whole, "float": _number,
    "tuple[str, ...]": _texts, "Sequence[str]": _texts,
}  # fmt: skip


def _shown(given: Any) -> str:
    """Return a value in short: its type, and the value itself where it is short text or a number."""
    text = repr(given) if isinstance(given, (str, int, float, type(None))) else ""
    return text if 0 < len(text) <= 40 else f"a {type(given).__name__}"
