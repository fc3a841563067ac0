import pytest

from search_oracles import converse, fault, problem_of
from tensortriage.search.dialogue import Care, Minimality, SearchState
from tensortriage.search.passes.deletion import block_minimal, blocks, one_minimal, sweep


@pytest.mark.parametrize(("core", "most"), [(set(range(60)), 75), (set(range(1, 60, 2)), 75), ({7}, 25), ({0, 30}, 40)])
def test_sweeping_once_through_all(core, most):
    state, asked = converse(sweep, 64, lambda candidate: core <= candidate)
    assert state.current == core
    assert len(asked) <= most


def test_blocks_are_cut_by_weight():
    problem = problem_of(fault(items=6), 6, weights={2: 4.0})
    assert list(blocks(problem, range(6), 1)) == [(0,), (1,), (2,), (3,), (4,), (5,)]
    assert list(blocks(problem, range(6), 2)) == [(0, 1), (2,), (3, 4, 5)]
    assert list(blocks(problem_of(fault(items=5), 5), range(5), 2)) == [(0, 1), (2, 3), (4,)]


def test_what_can_be_removed_singly_is_removed_together():
    state, asked = converse(one_minimal, 6, lambda candidate: {1, 4} <= candidate)
    assert state.current == {1, 4}
    assert state.minimality is Minimality.ONE_MINIMAL
    quick = [candidate for candidate, care in asked if care is Care.QUICK]
    assert len(quick) == 6 + 1 + 2  # every one, the four together, the two that are left
    assert [candidate for candidate, care in asked if care is Care.SURE] == [{4}, {1}]


def test_what_cannot_be_removed_together_is_removed_as_far_as_it_can():
    # Any two items are enough; each of the six can be removed, but not all of them.
    state, _ = converse(one_minimal, 6, lambda candidate: len(candidate) >= 2)
    assert len(state.current) == 2


def test_either_of_two_cores():
    state, _ = converse(one_minimal, 5, lambda candidate: {0, 1} <= candidate or {3, 4} <= candidate)
    assert state.current in ({0, 1}, {3, 4})


def test_a_single_item_is_minimal_without_asking():
    state, asked = converse(one_minimal, 1, lambda candidate: True)
    assert (state.current, state.minimality) == ({0}, Minimality.ONE_MINIMAL)
    assert {care for _, care in asked} == {Care.MEASURE}


def test_blocks_of_about_the_square_root():
    needed = set(range(40, 61))
    state, asked = converse(block_minimal, 100, lambda candidate: needed <= candidate)
    assert state.minimality is Minimality.BLOCK_MINIMAL
    assert state.block_items == 10
    assert needed <= state.current
    assert len(state.current) <= 21 + 2 * 9
    assert len(asked) < 50


def test_few_items_are_looked_at_one_by_one():
    state, _ = converse(block_minimal, 16, lambda candidate: {2, 9} <= candidate)
    assert (state.current, state.minimality, state.block_items) == ({2, 9}, Minimality.ONE_MINIMAL, 1)


def test_going_on_with_less_takes_back_what_was_shown_of_more():
    state = SearchState(problem_of(fault(items=3), 3), frozenset(range(3)), believed=[2, 0])
    state.minimality = Minimality.ONE_MINIMAL
    state.adopt(frozenset({0, 1}))
    assert (state.believed, state.minimality) == ([0], Minimality.BUDGET)
