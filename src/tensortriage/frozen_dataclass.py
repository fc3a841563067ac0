"""`frozen_dataclass`: a frozen dataclass with slots that is made in a fraction of the time.

`dataclasses.dataclass` compiles the text of six methods for every class, half a millisecond in CPython 3.11, and a
command imports two hundred classes. Here five methods are closures over the fields, and ``__init__`` is compiled when
the first object is made, which never happens to most classes. All else comes from `dataclasses`: fields and their
defaults, ``__post_init__``, `dataclasses.replace`, patterns.
"""

import dataclasses
import functools
import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_ABSENT = object()


@overload
def frozen_dataclass(made: type[T], /) -> type[T]: ...
@overload
def frozen_dataclass(*, kw_only: bool = False, eq: bool = True, repr: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen_dataclass(made: Any = None, /, *, kw_only: bool = False, eq: bool = True, repr: bool = True) -> Any:
    """Make a class what ``dataclasses.dataclass(frozen=True, slots=True)`` makes of it.

    Fields with ``init=False`` are not supported.

    Args:
        made: The class.
        kw_only: Whether its fields are given by name only.
        eq: Whether objects with equal fields are equal and have the same hash.
        repr: Whether an object shows its fields.
    """
    finish = functools.partial(_finished, kw_only=kw_only, eq=eq, repr=repr)
    return finish if made is None else finish(made)


def _finished(made: Any, *, kw_only: bool, eq: bool, repr: bool) -> Any:
    own = dict(vars(made))
    made.__doc__ = made.__doc__ or made.__name__  # without one, dataclasses works out a signature to show
    parents = (vars(each).get("__dataclass_params__") for each in made.__mro__[1:])
    of_frozen = any(each.frozen for each in parents if each is not None)
    plain = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=True, frozen=of_frozen)
    made = plain(made)
    made.__dataclass_params__.frozen = True  # subclasses have to be frozen too
    fields = dataclasses.fields(made)
    methods = [_first_init(made), *_unchangeable(made, fields)]
    if repr:
        methods.append(_shown([each.name for each in fields if each.repr]))
    if eq:
        methods += _compared(fields)
    for method in methods:
        if own.get(method.__name__) is None:
            method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
            setattr(made, method.__name__, method)
    return made


def _first_init(made: Any) -> Callable[..., None]:
    """Return the ``__init__`` that puts the compiled one in its place, and calls that."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        made.__init__ = _compiled_init(made)
        made.__init__(self, *args, **kwargs)

    return __init__


def _compiled_init(made: Any) -> Callable[..., None]:
    names: dict[str, Any] = {"_put_": object.__setattr__, "_ABSENT_": _ABSENT}
    parameters, lines = ["self"], []
    for each in sorted(dataclasses.fields(made), key=lambda field: field.kw_only is True):
        name, default, value = each.name, f"_default_{each.name}", each.name
        if each.kw_only and "*" not in parameters:
            parameters.append("*")
        if each.default_factory is not dataclasses.MISSING:
            names[default], value = each.default_factory, f"{default}() if {name} is _ABSENT_ else {name}"
            parameters.append(f"{name}=_ABSENT_")
        elif each.default is not dataclasses.MISSING:
            names[default] = each.default
            parameters.append(f"{name}={default}")
        else:
            parameters.append(name)
        lines.append(f" _put_(self, {name!r}, {value})")
    lines.append(" self.__post_init__()" if hasattr(made, "__post_init__") else " pass")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *lines]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _shown(names: Sequence[str]) -> Callable[[Any], str]:
    @reprlib.recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _compared(fields: Sequence["dataclasses.Field[Any]"]) -> list[Callable[..., Any]]:
    """Return ``__eq__`` and ``__hash__``."""
    equal = _values([each.name for each in fields if each.compare])
    hashed = _values([each.name for each in fields if (each.compare if each.hash is None else each.hash)])

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return equal(self) == equal(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed(self))

    return [__eq__, __hash__]


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    return operator.attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, n) for n in names)


def _unchangeable(made: Any, fields: Sequence["dataclasses.Field[Any]"]) -> list[Callable[..., Any]]:
    """Return the methods that refuse changes, and those of pickle, which cannot set what is refused."""
    names = tuple(each.name for each in fields)

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return [__setattr__, __delattr__, __getstate__, __setstate__]
