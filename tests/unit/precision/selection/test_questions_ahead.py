"""Questions that are asked ahead are those that the search comes to, and nothing that it asks is missing."""

import pytest

from tensortriage.precision.selection.node_choice import galloped, prune
from tensortriage.precision.selection.prefixes import bisected, linear
from tensortriage.precision.selection.questions_ahead import questions_ahead

ITEMS = [f"n{number}" for number in range(20)]
SEARCHES = {
    "bisect": lambda enough: bisected(ITEMS, enough),
    "linear": lambda enough: linear(ITEMS, enough),
    "auto": lambda enough: prune(ITEMS[: galloped(ITEMS, enough) or len(ITEMS)], enough),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("most", [1, 3, 8])
def test_the_first_is_what_the_search_asks_and_the_others_cost_no_round(name, most):
    find, needed = SEARCHES[name], {"n2", "n11"}
    asked = []

    def enough(kept):
        asked.append(frozenset(kept))
        return needed <= set(kept)

    result = find(enough)
    known, rounds = {}, 0
    while ahead := questions_ahead(find, known, most):
        assert frozenset(ahead[0]) not in known
        assert frozenset(ahead[0]) in asked
        assert len(ahead) <= most
        rounds += 1
        for kept in ahead:
            known[frozenset(kept)] = needed <= set(kept)
    assert find(lambda kept: known[frozenset(kept)]) == result
    assert rounds == len(set(asked)) if most == 1 else rounds < len(set(asked))
