"""A sample of the benchmark of planted faults, in smaller models; the benchmark measures 200 cases of 500 nodes."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "reduce_planted.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("reduce_planted", SOURCE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in (spec.name, "bench_search"):
        del sys.modules[name]


@pytest.mark.parametrize("shape", ["chain", "residual", "branchy", "transformer"])
def test_a_check(bench, shape):
    with bench.planted(shape, 2, adjacent=False, seed=1, nodes=60) as case:
        result = bench.by_check(case)
    assert bench.is_right(case, result)
    assert bench.shown_minimal(result)
    assert result.checks <= 20  # log2 C(60, 2) = 10.8 bits, 3 runs of the premise, 2 confirmations, 1 wasted an op


@pytest.mark.parametrize(("needed", "adjacent", "most"), [(1, True, 4), (2, True, 14), (3, False, 24)])
def test_an_engine(bench, needed, adjacent, most):
    with bench.planted("transformer", needed, adjacent=adjacent, seed=2, nodes=60) as case:
        result = bench.by_engine(case)
    assert bench.is_right(case, result)
    assert bench.shown_minimal(result)
    assert result.checks <= most


def test_cuts_that_hide_the_fault_and_faults_that_come_and_go(bench):
    with bench.planted("residual", 3, adjacent=True, seed=3, nodes=60) as case:
        hidden = bench.by_check(case, hiding=0.1)
        flaky = bench.by_check(case, rate=0.5, premise=16)
    assert set(case.needed) <= bench.node_names_of(hidden)
    assert bench.shown_minimal(hidden)
    assert bench.is_right(case, flaky)
    assert flaky.confidence >= 0.95
