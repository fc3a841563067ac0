"""How a result depends on what ran before it; what is right is what the engine keeps, see `remembering_engine`."""

import numpy as np
import pytest

from registered_engines import register
from tensortriage.diagnose.rungs.variation.run_order import of_order, run_order
from tensortriage.diagnose.state.verdict import VerdictKind

NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y)
<float[4,3] w = {1, -2, 3, 4, 5, -6, 7, 8, 9, -1, 2, 1}> { [product] y = MatMul(x, w) }"""
X = {"x": np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)}


@pytest.fixture
def asked(investigate, monkeypatch, tmp_path):
    register(monkeypatch, tmp_path, remembering="remembering_engine:RememberingEngine")
    return lambda keeps: investigate(NET, X, target=f"remembering:keeps={keeps}")


@pytest.mark.parametrize(
    ("keeps", "words"),
    [
        ("first", "the first run of a session gives another result, and later ones are right"),
        ("first-two", "the first 2 runs of a session give other results, and later ones are right"),
        ("shape", "the first run after a run of another shape gives another result"),
        ("rows", "the first run after a run of another shape gives another result"),
        ("bound", "a run returns the results of the first feed of its session"),
        ("part", "something of the first feed of its session is left in the results of later ones"),
        ("before", "a run returns the results of the previous feed"),
        ("last-row", "the last row of the batch repeats the previous run"),
        ("count", "every run differs, in any session: a result depends on how many runs came before"),
        ("nothing", ""),
    ],
)
def test_what_is_kept_is_told(asked, keeps, words):
    inv = asked(keeps)
    found = run_order(inv, inv.question.feeds[0], {})
    assert found.words == words
    assert bool(found.cure) == bool(words)
    before = inv.lab.tally.checks
    assert run_order(inv, inv.question.feeds[0], {}) == found
    assert inv.lab.tally.checks == before


def test_chance_is_no_order(investigate):
    inv = investigate(NET, X, target="faulty:kind=nondeterministic,node=product")
    assert run_order(inv, inv.question.feeds[0], {}).words == ""


def test_a_first_run_is_to_be_warmed_up(asked):
    inv = asked("first")
    verdict = of_order(inv, run_order(inv, inv.question.feeds[0], {}), "output 'y' moves by 50 %")
    assert verdict.kind is VerdictKind.NONDETERMINISTIC_RUN
    assert "Cure: warm up: run it once" in verdict.summary
    assert verdict.next[0].startswith("triage check consistency")
