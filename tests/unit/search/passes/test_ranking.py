import math

import pytest

from search_oracles import chain, fault, problem_of
from tensortriage.search.passes import ranking as ranking_module
from tensortriage.search.passes.ranking import FIRST_SHARES, LEAST_SHARE, PointerReading, distances, rank


def test_without_any_knowledge_items_keep_their_order_and_equal_chances():
    ranking = rank(problem_of(fault(items=4), 4), {3, 1, 0}, [])
    assert ranking.items == (0, 1, 3)
    assert ranking.chances == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert set(ranking.parts) == {PointerReading.ANYWHERE}


def test_chances_follow_weights_but_the_order_does_not():
    problem = problem_of(fault(items=3), 3, weights={1: 2.0})
    ranking = rank(problem, range(3), [])
    assert ranking.items == (0, 1, 2)
    assert ranking.chances == pytest.approx((0.25, 0.5, 0.25))


def test_near_items_come_first():
    ranking = rank(problem_of(fault(items=9), 9, neighbours=chain(9).__getitem__), set(range(9)) - {4}, [4])
    assert ranking.items[:4] == (3, 5, 2, 6)
    assert sum(ranking.chances) == pytest.approx(1.0)


def test_without_neighbours_the_order_of_the_problem_stands_for_nearness():
    assert rank(problem_of(fault(items=9), 9), set(range(9)) - {4}, [4]).items[:4] == (3, 5, 2, 6)


def test_suspect_items_come_first_infinite_ones_before_all():
    problem = problem_of(fault(items=5), 5, suspicion={1: 10.0, 4: math.inf, 2: 1e308})
    ranking = rank(problem, range(5), [])
    assert ranking.items == (4, 2, 1, 0, 3)
    assert sum(ranking.chances) == pytest.approx(1.0)


def test_distances_count_steps_and_leave_out_what_cannot_be_reached():
    links = {0: [1], 1: [0, 2, 99], 2: [1], 3: []}
    problem = problem_of(fault(items=4), 4, neighbours=links.__getitem__)
    assert distances(problem, [0]) == {0: 0, 1: 1, 2: 2}
    assert distances(problem, [0, 2]) == {0: 0, 1: 1, 2: 0}


def test_a_find_far_away_speaks_against_nearness_and_a_near_one_for_it():
    problem = problem_of(fault(items=100), 100, neighbours=chain(100).__getitem__)
    ranking = rank(problem, range(1, 100), [0])
    far, near = ranking.learn(FIRST_SHARES, 98), ranking.learn(FIRST_SHARES, 0)
    assert far[PointerReading.NEAR] < FIRST_SHARES[PointerReading.NEAR] < near[PointerReading.NEAR]
    assert far[PointerReading.NEAR] >= LEAST_SHARE
    assert near[PointerReading.SUSPECT] == FIRST_SHARES[PointerReading.SUSPECT]


def test_of_near_items_those_between_what_was_found_come_first():
    # Steps from the nearer of 3 and 5: 1 for 2, 4, 6; only 4 lies between them. Without that, 2 would be the first.
    problem = problem_of(fault(items=9), 9, neighbours=chain(9).__getitem__)
    assert rank(problem, set(range(9)) - {3, 5}, [3, 5]).items[:3] == (4, 2, 6)


@pytest.mark.parametrize("places", [[0], [7], [3, 11], [11, 0, 6]])
def test_items_beyond_the_nearest_are_ranked_by_the_order_of_the_problem_alone(places, monkeypatch):
    """Walks through a large graph end early; without any steps, distance in the order says the same on a chain."""
    count = 12
    problem = problem_of(fault(items=count), count, neighbours=chain(count).__getitem__)
    pool = set(range(count)) - set(places)
    monkeypatch.setattr(ranking_module, "NEAREST", 0)
    items = rank(problem, pool, places).items
    assert [min(abs(item - place) for place in places) for item in items] == sorted(
        min(abs(item - place) for place in places) for item in pool
    )


def test_a_walk_visits_no_more_of_a_large_graph_than_it_uses():
    count = 3 * ranking_module.NEAREST
    links, visited = chain(count), []

    def neighbours(item):
        visited.append(item)
        return links[item]

    rank(problem_of(fault(items=count), count, neighbours=neighbours), range(count), [count // 2])
    assert len(visited) <= ranking_module.NEAREST + 2
