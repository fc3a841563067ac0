"""The shortest prefix that still fails, found by halving probability instead of length; passing may be a lie.

Bisection is optimal when every answer is true and every length equally likely. Neither holds here: the likely lengths
are known roughly, and a cut now and then hides the fault, after which plain bisection returns nonsense (with 10 % of
hiding cuts its result grows from 4 to 12 of 500 ops in the median, and to 181 in the worst tenth). So every length
keeps a probability, a failure is proof, a pass only divides the probability of the lengths it speaks against, and the
next cut is where the remaining probability is halved: Horstein's scheme for search with noise (IEEE Trans. Inf. Theory
9:136, 1963), with one noisy answer only. After a false pass the answers "fails" keep coming until the excluded lengths
are the better explanation, and the search goes back by itself.

Where every answer is true, `Halving` is all that it takes.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence

DOUBT_PASSES = 50
"""Passes assumed before the first one, one of them false: a hiding cut is thought possible, not likely."""


class Halving:
    """Looks for the least number that is enough, between one that is not and one that is.

    Args:
        low: Not enough.
        high: Enough.

    Attributes:
        low: The largest number known not to be.
        high: The least number known to be enough.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    @property
    def middle(self) -> int | None:
        """The number to ask about; None when `high` is the least."""
        return (self.low + self.high) // 2 if self.high - self.low > 1 else None

    def answered(self, middle: int, *, enough: bool) -> None:
        """Take in whether a number is enough."""
        if enough:
            self.high = middle
        else:
            self.low = middle


class Trust:
    """The trust in passes: the share of false ones so far, those that a later failure contradicted.

    Args:
        false_pass: Share expected beforehand.
    """

    def __init__(self, false_pass: float = 0.0) -> None:
        self._false = 1.0 + false_pass * DOUBT_PASSES
        self._passes = float(DOUBT_PASSES)

    @property
    def doubt(self) -> float:
        """Chance that a pass is false."""
        return min(0.5, self._false / self._passes)

    def passed(self) -> None:
        """Count a pass."""
        self._passes += 1.0

    def contradicted(self) -> None:
        """Count a pass that turned out to be false."""
        self._false += 1.0


class PrefixSearch:
    """Looks for the smallest length of a prefix that fails; the whole is known to fail.

    Args:
        chances: Probability, up to a factor, that length 0, 1, ... is the one; the last one is the whole.
        trust: How far a pass is believed, shared by the searches of one reduction.
        known: Lengths that need no test: they pass.
    """

    def __init__(self, chances: Sequence[float], *, trust: Trust, known: Sequence[int] = ()) -> None:
        self._sums = [0.0, *itertools.accumulate(chances)]  # of the first 0, 1, ... of them
        self._ends, self._factors = [len(chances)], [1.0]  # runs of lengths that passes have divided by as much
        self._trust = trust
        self._passed = set(known)
        self.end = len(chances) - 1

    def next_cut(self) -> int | None:
        """Return the length to ask about, shorter than `end`; None when `end` is the answer."""
        if self.end == 0:
            return None
        total = sum(factor * (self._sums[end] - self._sums[begin]) for begin, end, factor in self._runs(self.end + 1))
        last = self._factors[bisect.bisect_right(self._ends, self.end)] * (
            self._sums[self.end + 1] - self._sums[self.end]
        )
        settled = self.end - 1 in self._passed and 2.0 * last >= total
        return None if settled else self._nearest_unasked(self._quantile(total / 2.0))

    def fails(self, cut: int) -> None:
        """Take in that a prefix fails the same way: the answer is not longer."""
        for _ in range(sum(length >= cut for length in self._passed)):
            self._trust.contradicted()
        self._passed = {length for length in self._passed if length < cut}
        self.end = cut

    def passes(self, cut: int) -> None:
        """Take in that a prefix does not fail: the answer is probably longer."""
        self._trust.passed()
        self._passed.add(cut)
        run = bisect.bisect_left(self._ends, cut + 1)
        if self._ends[run] != cut + 1:
            self._ends.insert(run, cut + 1)
            self._factors.insert(run, self._factors[run])
        doubt = self._trust.doubt
        self._factors[: run + 1] = [doubt * factor for factor in self._factors[: run + 1]]

    def _nearest_unasked(self, cut: int) -> int | None:
        longer = (length for length in range(cut, self.end) if length not in self._passed)
        shorter = (length for length in range(cut, -1, -1) if length not in self._passed)
        return next(longer, next(shorter, None))

    def _runs(self, count: int) -> Iterator[tuple[int, int, float]]:
        """Yield where runs of the first lengths begin and end, and their factors."""
        begin = 0
        for end, factor in zip(self._ends, self._factors, strict=True):
            if begin >= count:
                return
            yield begin, min(end, count), factor
            begin = end

    def _quantile(self, target: float) -> int:
        """Return the length below `end` up to which the sum of chances is closest to the target."""
        reached = 0.0
        for begin, end, factor in self._runs(self.end):
            if target <= reached:
                return begin
            below = self._sums[begin]
            if reached + factor * (self._sums[end] - below) >= target:
                place = bisect.bisect_left(self._sums, below + (target - reached) / factor, begin + 1, end) - 1
                before, here = (reached + factor * (self._sums[at] - below) for at in (place, place + 1))
                return place - 1 if place and target - before < here - target else place
            reached += factor * (self._sums[end] - below)
        return self.end - 1
