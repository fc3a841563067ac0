"""An option of a command line is declared once: on the field of the request that it fills, or on a command's parameter.

A declaration is plain data, which the command line makes parsers, checks, help and requests of; nothing of it is needed
to make a request in Python. A field that is itself a request, or that several options make together, is a `part`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, dataclass_transform, overload

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values import given
from tensortriage.values.given import ACCEPTS, resolved, take
from tensortriage.values.output_files import Place

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
DECLARED = "tensortriage.options"
"""Key of a field's metadata that holds its declaration."""


@frozen_dataclass
class Option:
    """The spelling and the meaning of one option.

    Attributes:
        names: Names of the option, the main one first; none for a positional argument.
        metavar: Placeholder of its value in help; ``NAME...`` takes values up to the next option. Empty for a flag.
        help: Its help text, one sentence.
        group: Heading in the help; empty for that of the option before it.
        rare: Whether only --help-all lists it.
        hidden: Whether nothing lists it.
        needed: Whether the command line is refused without it.
        several: Whether it may be given several times, each with one value.
        words: How many words each value has.
        choices: The words it takes; empty for any, or for those of the field's enum.
        least: Smallest number.
        most: Largest number.
        above: Number that it must exceed.
        below: Number that it must stay under.
        reads: Whether the option names a place to read; the value stays the word as given.
        writes: Kind of file that is written at the place; None where nothing is written.
        rewrites: Whether a file that is read may be written again.
        always: Whether the default place is written too.
        empty: Value of the option without a word; None where it needs one.
        value: Value of the field when a flag is given.
        slug: Slug of the error when another flag of the same field is given too; empty for ``usage``.
        read: Converts the words to the field's value, or ``module:function`` where that is expensive to import.
        each: Help of each of several words.
    """

    names: tuple[str, ...]
    metavar: str = ""
    help: str = ""
    group: str = ""
    rare: bool = False
    hidden: bool = False
    needed: bool = False
    several: bool = False
    words: int = 1
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    reads: bool = False
    writes: Place | None = None
    rewrites: bool = False
    always: bool = False
    empty: str | None = None
    value: Any = None
    slug: str = ""
    read: Callable[[Any], Any] | str | None = None
    each: Callable[[str], Any] | str | None = None

    @property
    def key(self) -> str:
        """The name under which the command line keeps its words."""
        name = self.names[0] if self.names else self.metavar.lower()
        return name.partition("/")[0].lstrip("-").replace("-", "_")

    @property
    def many(self) -> bool:
        """Whether the option may have several values."""
        return self.several or self.metavar.endswith("...")


class OptionSet(Protocol[T_co]):
    """A class whose fields are options that form one value together."""

    def value(self) -> T_co:
        """Return the value."""
        ...


@frozen_dataclass
class OptionPart:
    """A value that several options make together.

    Attributes:
        factory: The request, or `OptionSet`, whose fields declare the options; or ``module:class``, with the fields
            that are declared here and no others, for a class that is expensive to import.
        group: Heading for all of them; empty for their own.
        fields: Fields that are declared otherwise here; None, or any other value, for one without an option.
    """

    factory: Callable[..., Any] | str
    group: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def make(self, given: Mapping[str, Any]) -> Any:
        """Return the value of fields."""
        made = resolved(self.factory)(**given)
        return made.value() if hasattr(made, "value") else made

    def default(self) -> Any:
        """Return the value without any option."""
        given = {name: default_of(field) for name, field in self.fields.items() if field is not None}
        return self.make({name: value for name, value in given.items() if value is not dataclasses.MISSING})


def default_of(field: Any) -> Any:
    """Return the default of a field; a plain value is its own default."""
    if not isinstance(field, dataclasses.Field):
        return field
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _field(
    declared: object, default: Any, default_factory: Any, accepts: Callable[..., Any] | str | None = None
) -> Any:
    metadata: dict[str, object] = {DECLARED: declared} | ({ACCEPTS: accepts} if accepts is not None else {})
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@overload
def option(names: str, metavar: str, help: str, *, default: T, **more: Any) -> T: ...
@overload
def option(names: str, metavar: str, help: str, *, default_factory: Callable[[], T], **more: Any) -> T: ...
@overload
def option(names: str, metavar: str, help: str, **more: Any) -> Any: ...
def option(
    names: str,
    metavar: str,
    help: str,
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    accepts: Callable[..., Any] | str | None = None,
    **more: Any,
) -> Any:
    """Declare an option that takes a value.

    Args:
        names: Names of the option, separated by spaces.
        metavar: Placeholder of its value in help; with ``...`` for several.
        help: Its help text.
        default: The field's value without it; without a default the option is needed.
        default_factory: Makes the default anew.
        accepts: Converts a value that is given in Python; see `tensortriage.values.given`.
        **more: See `Option`.
    """
    more.setdefault("needed", default is dataclasses.MISSING and default_factory is dataclasses.MISSING)
    return _field((Option(tuple(names.split()), metavar, help, **more),), default, default_factory, accepts)


@overload
def flag(names: str, help: str, *, default: T, **more: Any) -> T: ...
@overload
def flag(names: str, help: str, *, default: bool = False, **more: Any) -> bool: ...
def flag(names: str, help: str, *, default: Any = False, **more: Any) -> Any:
    """Declare an option without a value: of a truth it is the other one than the default."""
    value = more.pop("value", not default)
    return _field((Option(tuple(names.split()), "", help, value=value, **more),), default, dataclasses.MISSING)


def flags(*each: tuple[str, Any, str], default: T, **more: Any) -> T:
    """Declare options without values that exclude each other, each as ``(names, value, help)``."""
    declared = tuple(Option(tuple(names.split()), "", text, value=value, **more) for names, value, text in each)
    made: T = _field(declared, default, dataclasses.MISSING)
    return made


@overload
def argument(metavar: str, *, default: T, accepts: str | None = None) -> T: ...
@overload
def argument(metavar: str, *, accepts: str | None = None) -> Any: ...
def argument(metavar: str, *, default: Any = dataclasses.MISSING, accepts: str | None = None) -> Any:
    """Declare a positional argument; with ``...`` it takes all words there. See `option` for the rest."""
    return _field((Option((), metavar, needed=default is dataclasses.MISSING),), default, dataclasses.MISSING, accepts)


@overload
def part(*, factory: Callable[..., OptionSet[T]], group: str = "", **fields: Any) -> T: ...
@overload
def part(*, factory: Callable[..., T], group: str = "", **fields: Any) -> T: ...
@overload
def part(*, factory: str, group: str = "", **fields: Any) -> Any: ...
def part(*, factory: Callable[..., Any] | str, group: str = "", **fields: Any) -> Any:
    """Declare a field built from several options.

    Args:
        factory: The request, or `OptionSet`, that declares them; see `OptionPart`.
        group: Heading for all of them.
        **fields: Fields that are declared otherwise here; None, or any other value, for one without an option.
    """
    declared = OptionPart(factory, group, fields)
    return _field(declared, dataclasses.MISSING, declared.default, getattr(factory, "of", None))


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(option, argument, part, given.field, dataclasses.field)
)
def request(made: type[T]) -> type[T]:
    """Make a frozen dataclass of a class whose fields may be options, and whose values may be given in other types.

    Its docstring continues with the help of the options, so that it explains every field.
    """
    checked = getattr(made, "__post_init__", None)

    def filled(self: Any) -> None:
        take(self)
        if checked is not None:
            checked(self)

    made.__post_init__ = filled  # type: ignore[attr-defined] # called by dataclasses
    found = frozen_dataclass(kw_only=True)(made)
    found.__doc__ = _documented(found)
    return found


def _documented(made: Any) -> str:
    """Return the docstring of a request, with a line for each option that it does not explain."""
    text = (made.__doc__ or "").rstrip()
    lines = [] if "Attributes:" in text else ["", "    Attributes:"]
    for field in dataclasses.fields(made):
        declared = field.metadata.get(DECLARED)
        if isinstance(declared, tuple) and declared[0].help and f" {field.name}:" not in text:
            texts = [each.help if each.metavar else f"{each.value}: {each.help}" for each in declared]
            lines.append(f"        {field.name}: {' '.join(texts)}")
    return "\n".join([text, *lines, "    "])
