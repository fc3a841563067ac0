"""Options as they are declared on fields: plain data, with defaults that need no command line."""

import dataclasses
import math
from pathlib import Path

import pytest

from tensortriage.values.options import (
    DECLARED,
    Option,
    OptionPart,
    argument,
    default_of,
    flag,
    flags,
    option,
    part,
    request,
    resolved,
)


def declared(field):
    """Return what is declared of a field."""
    return field.metadata[DECLARED]


@pytest.mark.parametrize(
    ("one", "key", "many"),
    [
        (Option(("--load-inputs", "-i"), "PATH..."), "load_inputs", True),
        (Option(("--verify/--no-verify",)), "verify", False),
        (Option(("--sweep",), "DIM", several=True), "sweep", True),
        (Option((), "PATHS..."), "paths...", True),
        (Option((), "MODEL"), "model", False),
    ],
)
def test_the_name_under_which_words_are_kept(one, key, many):
    assert (one.key, one.many) == (key, many)


def test_an_option_without_a_default_is_needed():
    (needed,), (usual,) = declared(option("--a", "A", "text")), declared(option("--a -b", "A", "text", default=None))
    assert (needed.needed, usual.needed, usual.names, usual.help) == (True, False, ("--a", "-b"), "text")
    (made,) = declared(option("--a", "A", "text", default_factory=list))
    assert not made.needed
    (excused,) = declared(option("--a", "A", "text", needed=False))
    assert not excused.needed


def test_a_flag_stands_for_the_other_than_the_default_or_for_what_it_says():
    assert [declared(flag("--a", "", default=default))[0].value for default in (True, False)] == [False, True]
    (named,) = declared(flag("--low-memory", "", default=None, value=64, rare=True))
    assert (named.value, named.rare, named.metavar) == (64, True, "")


def test_flags_of_one_field_each_stand_for_a_value():
    field = flags(("--fp16 --half", 16, "one"), ("--int8", 8, "other"), default=None, group="G")
    assert [(one.names, one.value, one.help, one.group) for one in declared(field)] == [
        (("--fp16", "--half"), 16, "one", "G"),
        (("--int8",), 8, "other", "G"),
    ]
    assert field.default is None


def test_an_argument_stands_at_its_place():
    (needed,), (usual,) = declared(argument("MODEL")), declared(argument("MODEL", default=None))
    assert (needed.names, needed.needed, usual.needed) == ((), True, False)


@request
class Inner:
    """Two options that make one number together."""

    size: int = option("--size", "N", "", default=2)
    times: list = option("--times", "N...", "", default_factory=list)

    def value(self):
        return self.size * (len(self.times) + 1)


@request
class Outer:
    """A request with another in it, one of whose fields is declared otherwise."""

    model: str = argument("MODEL")
    number: int = part(factory=Inner, group="G", size=option("--size", "N", "", default=5), times=[0])
    same: Path = part(factory="pathlib:Path")


def test_a_part_has_the_default_that_its_options_make():
    assert Outer(model="m").number == 10
    assert Outer(model="m").same == Path()
    assert Outer(model="m", number=3).number == 3
    found = declared(Outer.__dataclass_fields__["number"])
    assert (found.group, set(found.fields)) == ("G", {"size", "times"})
    assert found.make({"size": 7, "times": []}) == 7


def test_a_field_without_option_and_one_that_is_needed_have_no_default_in_a_part():
    assert OptionPart(Inner, fields={"times": None}).default() == 2
    with pytest.raises(TypeError):
        OptionPart(Outer, fields={"model": argument("MODEL")}).default()
    assert OptionPart(dict, fields={"a": option("--a", "A", "")}).default() == {}


def test_what_is_dear_to_import_is_named():
    assert resolved("math:sqrt") is math.sqrt
    assert resolved("pathlib:Path.cwd")() == Path.cwd()
    assert resolved(len) is len


def test_defaults_are_made_anew():
    field = dataclasses.field(default_factory=list)
    assert default_of(field) == []
    assert default_of(field) is not default_of(field)
    assert (default_of(dataclasses.field(default=3)), default_of("as it is")) == (3, "as it is")


def test_a_request_takes_names_alone_and_cannot_be_changed():
    with pytest.raises(TypeError):
        Outer("m")
    made = Outer(model="m")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.model = "n"
    assert not hasattr(made, "__dict__")
