import pytest

from search_oracles import chain, converse
from tensortriage.search.passes.prefix_search import narrow


def run(core, items, **how):
    """Let the pass talk about a monotone fault; return where it ended and the sizes it asked about."""
    state, asked = converse(narrow, items, lambda candidate: core <= candidate, **how)
    return state, [len(candidate) for candidate, _ in asked]


@pytest.mark.parametrize("core", [{0}, {511}, {100, 101}, {100, 103, 108}, {7, 250, 300}, {0, 511}])
def test_a_core_is_found_exactly(core):
    state, sizes = run(core, 512, neighbours=chain(512).__getitem__)
    assert state.current == core == set(state.believed)
    # One item takes 9 answers and one that it is enough; neighbours few more; items anywhere 9 and 1 for each.
    assert len(sizes) <= {1: 11, 2: 22, 3: 32}[len(core)]


def test_neighbours_cost_less_than_items_far_apart():
    near, far = (
        len(run(core, 512, neighbours=chain(512).__getitem__)[1]) for core in ({200, 201, 203}, {20, 201, 403})
    )
    assert near + 10 <= far


def test_nothing_known_of_a_single_item():
    state, sizes = run({0}, 1)
    assert (state.current, sizes) == ({0}, [])


def test_the_most_suspect_item_is_asked_about_alone_first():
    state, sizes = run({300}, 512, suspicion={300: 5.0, 2: 4.0})
    assert (state.current, sizes) == ({300}, [1])


def test_a_wrong_suspect_stays_for_the_final_pass():
    state, _ = run({300}, 512, suspicion={2: 4.0})
    assert state.current == {2, 300}


def test_many_needed_items_are_left_to_the_next_pass():
    core = set(range(100, 200))
    state, sizes = run(core, 512, neighbours=chain(512).__getitem__)
    assert core <= state.current
    assert len(state.current) <= 110
    assert len(sizes) < 50
    assert len(state.believed) < len(state.current)
