import math

import pytest

from search_oracles import fault, problem_of
from tensortriage.errors import UsageError
from tensortriage.search.execution.executors import OracleQuestion
from tensortriage.search.problem import SearchProblem


@pytest.mark.parametrize(
    ("items", "how", "said"),
    [
        ((), {}, "nothing"),
        ((1, 1), {}, "twice"),
        ((1,), {"weights": {1: 0.0}}, "weight of 1 is 0.0"),
        ((1,), {"weights": {1: math.nan}}, "weight of 1 is nan"),
        ((1,), {"suspicion": {1: math.nan}}, "suspicion of 1 is nan"),
        ((1,), {"suspicion": {1: -1.0}}, "suspicion of 1 is -1"),
    ],
)
def test_bad_problems_are_refused(items, how, said):
    with pytest.raises(UsageError, match=said) as error:
        SearchProblem(items, fault(items=3), key=repr, **how)
    assert error.value.slug == "search-problem-invalid"


def test_candidates_are_put_in_the_order_of_the_problem():
    problem = SearchProblem(("b", "c", "a"), fault(items=3), key=repr, weights={"c": 2.5})
    assert problem.ordered({"a", "b", "c"}) == ("b", "c", "a")
    assert problem.size({"a", "c"}) == 3.5
    assert problem_of(fault(items=2), 2).suspected(0) == 0.0


@pytest.mark.parametrize("within", [(), (0,), tuple(range(50, 100)), tuple(range(25, 100)), tuple(range(100))])
def test_where_items_are_looked_for_first_does_not_matter(within):
    problem = problem_of(fault(items=100), 100)
    for candidate in (range(30, 90), range(60, 62), range(100), range(0, 100, 7), ()):
        assert problem.ordered(frozenset(candidate), within) == tuple(candidate)
        assert problem.ordered(frozenset(candidate)) == tuple(candidate)


def test_questions_are_told_apart_by_any_item_and_by_the_attempt():
    items = tuple(range(300))
    questions = {OracleQuestion(items[:place] + items[place + 1 :], attempt) for place in items for attempt in (0, 1)}
    assert len(questions) == 600
    assert len({hash(question) for question in questions}) > 100  # or looking them up compares each with all
    assert OracleQuestion(items[1:], 1) in questions
