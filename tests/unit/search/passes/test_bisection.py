import itertools
import random

import pytest

from tensortriage.search.passes.bisection import DOUBT_PASSES, PrefixSearch, Trust


def find(search, answer):
    """Ask until the search is settled; ``answer`` says whether a length fails."""
    asked = []
    while (cut := search.next_cut()) is not None:
        assert 0 <= cut < search.end
        asked.append(cut)
        (search.fails if answer(cut) else search.passes)(cut)
    assert len(set(asked)) == len(asked)
    return asked


@pytest.mark.parametrize("target", range(17))
def test_true_answers_lead_to_the_shortest_failing_length(target):
    rng = random.Random(target)
    for chances in ([1.0] * 17, [2.0**-length for length in range(17)], [rng.random() for _ in range(17)]):
        search = PrefixSearch(chances, trust=Trust())
        find(search, lambda cut: cut >= target)
        assert search.end == target


def test_even_chances_are_halved():
    # 2**10 lengths are equally likely, so that 10 answers tell them apart.
    counts = []
    for target in range(0, 1024, 31):
        search = PrefixSearch([1.0] * 1024, trust=Trust())
        counts.append(len(find(search, lambda cut, target=target: cut >= target)))
    assert sorted(counts)[len(counts) // 2] <= 10
    assert max(counts) <= 13


def test_a_likely_length_is_asked_about_first():
    chances = [0.0] * 3 + [100.0] + [1.0] * 100
    assert find(PrefixSearch(chances, trust=Trust()), lambda cut: cut >= 3)[:2] == [3, 2]


def test_known_lengths_are_not_asked_about():
    search = PrefixSearch([0.0, 1.0, 1.0], trust=Trust(), known=[0])
    assert find(search, lambda cut: True) == [1]
    assert search.end == 1


def test_one_false_pass_is_found_out():
    # The first answer is wrong; plain bisection would end just above it.
    search = PrefixSearch([1.0] * 513, trust=Trust())
    first = []

    def answer(cut):
        first.append(cut)
        return cut >= 100 and len(first) > 1

    asked = find(search, answer)
    assert asked[0] >= 250
    assert search.end == 100
    assert len(asked) <= 30


def test_trust_falls_with_contradictions():
    trust = Trust()
    assert trust.doubt == 1 / DOUBT_PASSES
    for _ in range(DOUBT_PASSES):
        trust.passed()
    assert trust.doubt == 1 / (2 * DOUBT_PASSES)
    for _ in range(1000):
        trust.contradicted()
    assert trust.doubt == 0.5
    assert Trust(0.1).doubt == pytest.approx(0.1 + 1 / DOUBT_PASSES)


def test_any_answers_come_to_an_end():
    for answers in itertools.product([True, False], repeat=6):
        endless = itertools.cycle(answers)
        find(PrefixSearch([1.0, 2.0, 0.0, 3.0, 1.0, 1.0], trust=Trust()), lambda cut, endless=endless: next(endless))


class PlainSearch(PrefixSearch):
    """The same rule, length by length, as the module's text says it."""

    def __init__(self, chances, *, trust):
        super().__init__(chances, trust=trust)
        self._chances = list(chances)

    def next_cut(self):
        if self.end == 0:
            return None
        total = sum(self._chances[: self.end + 1])
        if self.end - 1 in self._passed and 2.0 * self._chances[self.end] >= total:
            return None
        below = 0.0
        for length in range(self.end):
            upto = below + self._chances[length]
            if upto >= total / 2.0:
                nearer = length > 0 and total / 2.0 - below < upto - total / 2.0
                return self._nearest_unasked(length - 1 if nearer else length)
            below = upto
        return self._nearest_unasked(self.end - 1)

    def passes(self, cut):
        self._trust.passed()
        self._passed.add(cut)
        for length in range(cut + 1):
            self._chances[length] *= self._trust.doubt


@pytest.mark.parametrize("seed", range(20))
def test_large_searches_ask_what_the_plain_rule_asks(seed):
    rng = random.Random(seed)
    chances = [rng.random() ** 8 for _ in range(rng.randrange(2, 2000))]
    target = rng.randrange(len(chances))
    lies = rng.random() / 4

    def asked(search):
        told = random.Random(seed)
        return find(search, lambda cut: cut >= target and told.random() >= lies)

    plain = PlainSearch(chances, trust=Trust(0.05))
    fast = PrefixSearch(chances, trust=Trust(0.05))
    assert asked(fast) == asked(plain)
    assert fast.end == plain.end
