"""An engine whose first five builds are right or wrong by a pattern, whatever is built, and later ones by chance.

Each pattern is asked about twice: with builds that cost nothing beside the rest, and with builds that are dear, where
only contradictions and builds of single ops tell. Chance is fixed: one in a hundred others looks like a steady fault.
"""

import itertools

import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain
from tensortriage.diagnose.rungs.variation import intermittent

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

ENGINE = """
import random
from pathlib import Path
from tensortriage_testing import FaultyEngine

COUNT, PATTERN = (Path(__file__).with_name(name) for name in ("count", "pattern"))

class Patterned(FaultyEngine):
    def compile(self, path, options):
        number, pattern = COUNT.stat().st_size if COUNT.exists() else 0, PATTERN.read_text()
        COUNT.write_bytes(b"x" * (number + 1))
        by_chance = random.Random(f"later {pattern} {number}").choice("01")
        wrong = pattern[number] if number < len(pattern) else by_chance
        return super().compile(path, options if wrong == "1" else {})
"""
PATTERNS = ["".join(bits) for bits in itertools.product("01", repeat=5)]


@pytest.fixture
def verdict_on(tmp_path):
    def given(pattern):
        (tmp_path / "engine.py").write_text(ENGINE)
        (tmp_path / "pattern").write_text(pattern)
        target = f"script:{tmp_path / 'engine.py'}:Patterned,kind=scale,node=softmax,amount=1.05"
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
