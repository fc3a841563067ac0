import math

import pytest

from search_oracles import fault, problem_of
from tensortriage.errors import UsageError
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
