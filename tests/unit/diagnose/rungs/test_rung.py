"""Rungs read of the evidence, and give to it, what they declare: their source, and that of what they call, is read."""

import ast
import dataclasses
import inspect
import runpy
import textwrap
from functools import cache
from pathlib import Path

import pytest

from tensortriage.diagnose import ladder
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.rung import Rung
from tensortriage.values.registered import registered

ROOT = Path(__file__).resolve().parents[4]
FIELDS = frozenset(field.name for field in dataclasses.fields(Evidence))
BY_NAME = [item for item in vars(ladder).values() if isinstance(item, Rung)]
REGISTERED = [point.load() for point in registered(ladder.GROUP).values()]
RUNGS = {item.title: item for item in (*BY_NAME, *REGISTERED)}


@dataclasses.dataclass(frozen=True)
class Touched:
    """Fields of the evidence that a function reads, and those that it fills."""

    reads: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()

    def __or__(self, other):
        return Touched(self.reads | other.reads, self.gives | other.gives)


@cache
def tree_of(function):
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]


@cache
def behind(name):
    """Return the fields that an attribute of the evidence is made of: itself, or what a property or method reads."""
    if name in FIELDS:
        return frozenset({name})
    made = inspect.getattr_static(Evidence, name)
    tree = tree_of(made.fget if isinstance(made, property) else made)
    own = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_name(node.value, {"self"})]
    return frozenset().union(*map(behind, own))


def is_name(node, names):
    return isinstance(node, ast.Name) and node.id in names


def takes_evidence(argument):
    return argument.annotation is not None and "Evidence" in ast.unparse(argument.annotation)


def named(node):
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def touched(function, seen=None):
    """Return what a function, and every function of ours that it names, reads of the evidence, and its findings."""
    seen = set() if seen is None else seen
    if function in seen:
        return Touched()
    seen.add(function)
    tree = tree_of(function)
    names = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg) and takes_evidence(each)}
    found = Touched()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_name(node.value, names) and node.attr != "with_":
            found |= Touched(behind(node.attr))
        elif named(node) == "Findings":
            found |= Touched(gives=frozenset(each.arg for each in node.keywords if each.arg))
        elif isinstance(node, ast.Dict) and None in node.keys:  # findings and more of them: {**findings, "name": ...}
            found |= Touched(gives=frozenset(key.value for key in node.keys if isinstance(key, ast.Constant)) & FIELDS)
        elif isinstance(node, ast.Name) and node.id in function.__globals__:
            called = function.__globals__[node.id]
            called = called.ask if isinstance(called, Rung) else called
            if inspect.isfunction(called) and called.__module__.startswith(("tensortriage.diagnose", "tensortriage_")):
                found |= touched(called, seen)
    return found


@pytest.mark.parametrize("title", RUNGS)
def test_a_rung_reads_and_gives_what_it_declares(title):
    rung = RUNGS[title]
    done = touched(rung.ask)
    assert (sorted(rung.reads), sorted(rung.gives)) == (sorted(done.reads), sorted(done.gives))


def test_every_rung_has_a_title_of_its_own_that_is_a_question():
    assert len(RUNGS) == len(BY_NAME) + len(REGISTERED)
    assert all(title.endswith("?") for title in RUNGS)


def test_the_page_shows_the_ladder_as_it_is():
    make = runpy.run_path(str(ROOT / "docs/make_ladder.py"))
    assert make["PAGE"].read_text() == make["page"](), "run docs/make_ladder.py again"
    told = make["how"]()
    assert all(told[rung.title] for rung in ladder.ladder())


def test_every_question_is_on_the_ladder():
    assert {rung.title for rung in ladder.ladder()} == set(RUNGS)
