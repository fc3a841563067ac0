import pytest

from search_oracles import converse, fault, problem_of
from tensortriage.search.passes.deletion import blocks, delta_debug, sweep


@pytest.mark.parametrize(("core", "most"), [(set(range(60)), 75), (set(range(1, 60, 2)), 75), ({7}, 25), ({0, 30}, 40)])
def test_sweeping_once_through_all(core, most):
    state, asked = converse(sweep, 64, lambda candidate: core <= candidate)
    assert state.current == core
    assert len(asked) <= most


@pytest.mark.parametrize("core", [{0}, {99}, {3, 4, 5}, {10, 50, 90}])
def test_delta_debugging_finds_the_core_of_a_monotone_fault(core):
    state, asked = converse(delta_debug, 100, lambda candidate: core <= candidate)
    assert state.current == core
    assert 40 <= len(asked[0][0]) <= 60
    assert len(asked) < 60


def test_blocks_are_cut_by_weight():
    problem = problem_of(fault(items=6), 6, weights={2: 4.0})
    assert list(blocks(problem, range(6), 1)) == [(0,), (1,), (2,), (3,), (4,), (5,)]
    assert list(blocks(problem, range(6), 2)) == [(0, 1), (2,), (3, 4, 5)]
    assert list(blocks(problem_of(fault(items=5), 5), range(5), 2)) == [(0, 1), (2, 3), (4,)]
