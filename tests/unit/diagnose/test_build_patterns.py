"""An engine whose first five builds are right or wrong by a pattern, whatever is built, and later ones by chance.

Each pattern is asked about twice: with builds that cost nothing beside the rest, and with builds that are dear, where
only contradictions and builds of single ops tell. Chance is fixed: one in a hundred others looks like a steady fault.
"""

import itertools
import random
import sys
import types

import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain
from registered_engines import register
from tensortriage.diagnose.rungs.variation import intermittent
from tensortriage_testing import FaultyEngine

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

PATTERNS = ["".join(bits) for bits in itertools.product("01", repeat=5)]


@pytest.fixture
def verdict_on(tmp_path, monkeypatch):
    """Return a function that diagnoses an engine, in this process, whose first builds are wrong by a pattern."""

    def given(pattern):
        numbers = itertools.count()

        class Patterned(FaultyEngine):
            name = "patterned"

            def compile(self, path, options):
                number = next(numbers)
                by_chance = random.Random(f"later {pattern} {number}").choice("01")
                wrong = pattern[number] if number < len(pattern) else by_chance
                return super().compile(path, options if wrong == "1" else {})

        monkeypatch.setitem(sys.modules, "patterned_engine", types.SimpleNamespace(Patterned=Patterned))
        register(monkeypatch, tmp_path, patterned="patterned_engine:Patterned")
        target = "patterned:kind=scale,node=softmax,amount=1.05"
        return ask(tmp_path, softmax_chain(), CHAIN_FEED, target, random_too=False)[0]

    return given


@pytest.mark.parametrize("pattern", PATTERNS)
def test_builds_that_differ_are_told_whichever_differ_first(verdict_on, monkeypatch, pattern):
    monkeypatch.setattr(intermittent, "CHEAP_SECONDS", 1e6)
    verdict = verdict_on(pattern)
    assert verdict.verdict == "intermittent", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["softmax"]


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if pattern.startswith("1")])
def test_so_are_they_where_builds_are_dear(verdict_on, monkeypatch, pattern):
    monkeypatch.setattr(intermittent, "CHEAP_SECONDS", 0.0)  # as on an engine that takes minutes
    monkeypatch.setattr(intermittent, "TIME_SHARE", 0.0)
    verdict = verdict_on(pattern)
    assert verdict.verdict == "intermittent", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["softmax"]


@pytest.mark.parametrize(("pattern", "expected"), [("0", "match"), ("1", "local-fault")])
def test_builds_that_do_not_differ_are_not_said_to(verdict_on, pattern, expected):
    assert verdict_on(100 * pattern).verdict == expected
