"""A task metric of a target over many samples: how much it loses, how sure that is, and on which samples.

Both engines see the same samples, so that differences are paired: a sample that is hard for both cancels. The interval
is the percentile bootstrap's (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13), expanded for
few samples, where it would hold the mean too rarely: in 87 % of cases for five (Hesterberg, What Teachers Should Know
About the Bootstrap, The American Statistician 69, 2015). Where no sample differs there is nothing to draw from; then
the share of samples that may differ is bounded by Wilson's score interval (1927) for none of n.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.statistics.repeats import NORMAL, wilson
from tensortriage.values.text import count, magnitude, percent

RESAMPLES = 10_000
"""Draws of the bootstrap: the ends of a 95 % interval then vary by less than a tenth of its width."""
AT_ONCE = 1 << 20
"""Numbers drawn at once, which bounds memory."""
MOST_WORST = 8
"""Samples that are listed."""


@frozen_dataclass
class SampleScore:
    """One sample on reference and target.

    Attributes:
        reference: The metric of the reference.
        target: The metric of the target.
        label: The reference's largest score, as an index, row by row; empty where the first output is no scores.
        other: The target's.
        margin: Lead of the reference's largest score over its second, the smallest of all rows; None without scores.
        largest_input: Largest magnitude of any floating-point input.
        shape: Shape of the largest input.
        row: The row of the feed that it is, where a metric scores each; None for the whole feed.
    """

    feed: str
    reference: float
    target: float
    label: tuple[int, ...] = ()
    other: tuple[int, ...] = ()
    margin: float | None = None
    largest_input: float = 0.0
    shape: tuple[int, ...] = ()
    row: int | None = None

    @property
    def name(self) -> str:
        """Feed, and row of it."""
        return self.feed if self.row is None else f"{self.feed}, row {self.row}"

    @property
    def lost(self) -> float:
        """The loss of the target's metric; below 0 where it is better."""
        return self.reference - self.target

    @property
    def flips(self) -> bool:
        """Whether another class wins."""
        return self.label != self.other


@frozen_dataclass
class TaskComparison:
    """A task metric over all samples, target against reference.

    Attributes:
        target: Name of the target.
        samples: How many there are.
        difference: Mean of target less reference: below 0 the target is worse.
        low: Lower end of its 95 % interval; None where it is not known (one sample, or none that differs).
        high: Upper end.
        differing_at_most: Where no sample differs, the largest share of samples that may, with 95 % confidence; else
            None.
        worse: Samples on which the target is worse.
        better: Samples on which it is better.
        flips: Samples on which another class wins; None where the first output is no scores.
        worst: The samples that lose most, those that flip first, `MOST_WORST` at most.
        common: Common traits of samples that lose or flip, in words.
    """

    target: str
    samples: int
    difference: float
    low: float | None
    high: float | None
    differing_at_most: float | None
    worse: int
    better: int
    flips: int | None
    worst: tuple[SampleScore, ...]
    common: tuple[str, ...]


@frozen_dataclass
class TaskAccuracy:
    """The task metric of a diagnosis.

    Attributes:
        reference: Mean on the reference.
        target: Mean on the target.
        comparison: The target against the reference, sample by sample.
        least: The smallest sufficient mean, where the user gave one.
        remedy: Mean with the remedy, on its engine; None without one.
    """

    metric: str
    reference: float
    target: float
    comparison: TaskComparison
    least: float | None = None
    remedy: float | None = None

    @property
    def enough(self) -> bool:
        """Whether the target reaches the goal, or the reference's mean."""
        return self.target >= (self.reference if self.least is None else self.least)

    @property
    def words(self) -> str:
        """The means, the confidence of their difference, and the goal."""
        ours, theirs = magnitude(self.reference, 4), magnitude(self.target, 4)
        means = f"{self.metric}: {ours} of the reference, {theirs} of the target"
        fixed = "" if self.remedy is None else f", {magnitude(self.remedy, 4)} with the remedy"
        wanted = "" if self.least is None else f"; at least {self.least:g} is required"
        alone = ["a single sample gives no interval: let the metric return a number for each row"]
        sure = [*difference_words(self.comparison)] if self.comparison.samples > 1 else alone
        return "; ".join([means + fixed, *sure]) + wanted


def difference_words(found: TaskComparison) -> Iterator[str]:
    """Yield by how much a target differs, in words; nothing for a single sample."""
    if found.differing_at_most is not None:
        if found.samples > 1:
            share = percent(found.differing_at_most)
            yield f"no sample of {found.samples} differs: with 95 % confidence at most {share} do"
    elif found.low is not None and found.high is not None:
        ends = f"{found.low:+.3g} to {found.high:+.3g}"
        sure = "" if found.low > 0 or found.high < 0 else "; the true difference may be zero"
        samples = count(found.samples, "sample")
        yield f"{found.difference:+.3g} over {samples}; 95 % interval {ends} (paired bootstrap){sure}"


def compare_scores(target: str, samples: Sequence[SampleScore]) -> TaskComparison:
    """Compare the metric of a target over samples, at least one, with the reference's."""
    differences = np.array([sample.target - sample.reference for sample in samples])
    differs = bool(np.any(differences != 0.0))
    low, high = interval(differences) if differs and len(samples) > 1 else (None, None)
    bad = [sample for sample in samples if sample.lost > 0 or sample.flips]
    worst = sorted(bad, key=lambda sample: (-sample.lost, not sample.flips, sample.margin or 0.0))
    return TaskComparison(
        target,
        len(samples),
        float(differences.mean()),
        low,
        high,
        None if differs else wilson(0, len(samples))[1],
        int((differences < 0).sum()),
        int((differences > 0).sum()),
        sum(sample.flips for sample in samples) if any(sample.label for sample in samples) else None,
        tuple(worst[:MOST_WORST]),
        _common(bad, [sample for sample in samples if sample not in bad]),
    )


def interval(differences: np.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired differences, by the percentile bootstrap.

    Args:
        differences: Differences of single samples, finite, ``[n]``.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    count = len(differences)
    rows = max(1, AT_ONCE // count)
    parts = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    means = np.concatenate([differences[rng.integers(0, count, (part, count))].mean(axis=1) for part in parts])
    tail = 100.0 * expanded_tail(count)
    low, high = np.percentile(means, [tail, 100.0 - tail])
    return float(low), float(high)


def expanded_tail(count: int) -> float:
    """Return the share of draws to leave out on each side: as far out as Student's t lies, and the unbiased deviation.

    Student's quantile is that of Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.7.5.

    Args:
        count: How many samples there are, two at least.
    """
    free, z = count - 1, NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    student = z + sum(term / free**power for power, term in enumerate(terms, 1))
    return 0.5 * math.erfc(student * math.sqrt(count / free / 2.0))


def _common(bad: Sequence[SampleScore], good: Sequence[SampleScore]) -> tuple[str, ...]:
    """Return differences of bad samples from others: medians a factor of two apart, one label, one shape."""
    if len(bad) < 2 or len(good) < 2:
        return ()
    clauses = []
    traits: tuple[tuple[str, Callable[[SampleScore], float | None]], ...] = (
        ("margin", lambda sample: sample.margin),
        ("largest input", lambda sample: sample.largest_input),
    )
    for word, trait in traits:
        ours, theirs = (_median([trait(sample) for sample in part]) for part in (bad, good))
        if ours is not None and theirs is not None and (ours > 2 * theirs or theirs > 2 * ours):
            clauses.append(f"median {word} {magnitude(ours)}, of the others {magnitude(theirs)}")
    for word, values, all_values in (
        ("label", [s.label for s in bad], [s.label for s in good]),
        ("shape", [s.shape for s in bad], [s.shape for s in good]),
    ):
        most = max(set(values), key=values.count)
        share, usual = values.count(most) / len(values), all_values.count(most) / len(all_values)
        if most and share > 0.5 and share > 2 * usual:
            clauses.append(f"{word} {list(most)} in {percent(share)} of them, in {percent(usual)} of the others")
    return tuple(clauses)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.median(known)) if known else None
