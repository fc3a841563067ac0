"""The reference of `frozen_dataclass` is the standard library: ``dataclasses.dataclass(frozen=True, slots=True)``."""

import builtins
import copy
import dataclasses
import pickle
import sys
from typing import Any

import pytest

from tensortriage.frozen_dataclass import frozen_dataclass


def standard(**options):
    return dataclasses.dataclass(frozen=True, slots=True, **options)


MAKERS = pytest.mark.parametrize("maker", [standard, frozen_dataclass])


def point(maker, **options):
    """A class with every kind of field."""

    @maker(**options)
    class Point:
        x: int
        y: Any = 2
        tags: list[str] = dataclasses.field(default_factory=list)
        note: str = dataclasses.field(default="", compare=False, repr=False)
        last: int = dataclasses.field(default=0, kw_only=True)

    return Point


@frozen_dataclass
class Stored:
    """One at the top of a module, as pickle wants it."""

    numbers: tuple[int, ...]
    parent: "Stored | None" = None


@frozen_dataclass
class Named(Stored):
    """A subclass with a field of its own and a method that the decorator leaves alone."""

    name: str = "none"

    def __repr__(self):
        return f"<{self.name}>"


@MAKERS
def test_arguments(maker):
    kind = point(maker)
    assert kind(1) == kind(x=1, y=2, tags=[], last=0) == kind(1, 2, [], note="other")
    assert kind(1, last=3).last == 3
    assert kind(1).tags is not kind(1).tags
    for args, named in [((), {}), ((1, 2, [], "", 0), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]:
        for _ in range(2):  # before and after the first object
            with pytest.raises(TypeError, match=r"Point\.__init__\(\) "):
                kind(*args, **named)


@MAKERS
def test_fields_by_name_only(maker):
    kind = point(maker, kw_only=True)
    assert kind(x=1).x == 1
    with pytest.raises(TypeError, match="positional"):
        kind(1)


@MAKERS
def test_equal_and_hash(maker):
    kind, other = point(maker), point(maker)
    one, same = kind(1, tags=()), kind(1, tags=(), note="not compared")
    assert one == same
    assert hash(one) == hash(same) == hash((1, 2, (), 0))
    assert one != kind(2, tags=())
    assert one != other(1, tags=())
    identical = point(maker, eq=False)
    assert identical(1) != identical(1)


@MAKERS
def test_shown(maker):
    kind = point(maker)
    assert repr(kind(1, "a")).endswith("Point(x=1, y='a', tags=[], last=0)")
    endless = kind(1, [])
    endless.y.append(endless)
    assert "y=[...]" in repr(endless)
    assert "object at" in repr(point(maker, repr=False)(1))


@MAKERS
def test_nothing_changes(maker):
    made = point(maker)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del made.x
    with pytest.raises(
        (dataclasses.FrozenInstanceError, TypeError)
    ):  # the latter from CPython 3.11, which means the class without slots
        made.unknown = 2
    assert not hasattr(made, "__dict__")
    assert made.x == 1


@MAKERS
def test_functions_of_dataclasses(maker):
    kind = point(maker)
    assert [field.name for field in dataclasses.fields(kind)] == ["x", "y", "tags", "note", "last"]
    assert kind.__match_args__ == ("x", "y", "tags", "note")
    assert dataclasses.replace(kind(1), y=5, last=6) == kind(1, 5, last=6)
    assert dataclasses.asdict(kind(1)) == {"x": 1, "y": 2, "tags": [], "note": "", "last": 0}
    assert copy.deepcopy(kind(1, [3])) == kind(1, [3])
    match kind(7):
        case kind(x):
            assert x == 7


@MAKERS
def test_after_init(maker):
    @maker()
    class Checked:
        x: int

        def __post_init__(self):
            if self.x < 0:
                raise ValueError("negative")
            object.__setattr__(self, "x", self.x + 1)

    assert Checked(1).x == 2
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


@MAKERS
def test_methods_of_the_class_stay(maker):
    @maker()
    class Own:
        x: int

        def __init__(self):
            object.__setattr__(self, "x", 4)

        def __eq__(self, other):
            return True

    assert Own().x == 4
    assert Own() == 5
    assert hash(Own()) == hash((4,))


def test_pickled_and_inherited():
    made = Named((1, 2), Stored((3,)), "leaf")
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.copy(made) == made
    assert repr(made) == "<leaf>"
    assert made != Stored((1, 2), Stored((3,)))
    assert repr(Stored(())) == "Stored(numbers=(), parent=None)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.numbers = ()


def test_subclasses_may_be_made_by_dataclasses():
    @standard()
    class Labelled(Stored):
        label: str = ""

    @frozen_dataclass
    class Marked(Labelled):
        mark: int = 0

    assert Labelled((1,), label="a") == Labelled((1,), None, "a")
    assert Marked((1,), mark=2) == dataclasses.replace(Marked((1,)), mark=2)
    assert pickle.loads(pickle.dumps(Stored((1,)))) == Stored((1,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Marked((1,)).label = "b"
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(Stored.__class__("Loose", (Stored,), {}))


def test_no_text_is_compiled_before_the_first_object(monkeypatch):
    texts = []
    compiled = builtins.exec

    def noted(text, *rest):
        texts.append(text)
        compiled(text, *rest)

    monkeypatch.setattr(builtins, "exec", noted)
    kind = point(frozen_dataclass)
    assert not texts
    assert kind(1) == kind(1)
    assert len(texts) == 1


def test_init_is_named_as_the_class_is():
    assert Stored.__init__.__qualname__ == "Stored.__init__"
    assert sys.modules[Stored.__module__].Stored is Stored
