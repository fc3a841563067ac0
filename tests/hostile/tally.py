"""How many hostile inputs ended how, by class; and how many of them a test tries.

``FUZZ_TIMES`` multiplies the numbers of examples. ``FUZZ_SEED`` says which they are: the same ones without it, so that
no run of the tests depends on luck; `make fuzz` draws one, and the summary prints it.
"""

import collections
import os

import hypothesis
from hypothesis import strategies as st

SEED = int(os.environ.get("FUZZ_SEED") or 1)
IS_FREE = bool(os.environ.get("FUZZ_SEED"))
TIMES = float(os.environ.get("FUZZ_TIMES") or 1)
SEEDS = st.integers(0, 2**64 - 1).map(lambda number: number ^ SEED * 0x9E3779B97F4A7C15 & (2**64 - 1))
"""Numbers that stand for one input each. Hypothesis prefers small ones, which would be the same in every run."""


def fuzzed(examples):
    """Return a decorator: so many examples of this run's seed, times what was asked for; a finding is not shrunk.

    Each example is an integer that stands for an input, so a smaller one would be another input.
    """
    settings = hypothesis.settings(
        max_examples=max(1, round(examples * TIMES)),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    return lambda test: hypothesis.seed(SEED)(settings(test))


class Tally:
    """Counts and findings of one test, which continues after a finding."""

    def __init__(self):
        self.counts = collections.Counter()
        self.findings = []

    def add(self, *words):
        """Count how one input ended."""
        self.counts[": ".join(words)] += 1

    def find(self, seed, what):
        """Keep what went wrong with an input; whoever watches a long run (``pytest -s``) sees it at once."""
        self.findings.append(f"seed={seed}: {what}")
        print(f"\n{self.findings[-1]}", flush=True)  # noqa: T201 - for whoever watches

    def clear(self):
        """Begin another test."""
        self.counts.clear()
        self.findings.clear()


def summary(reports):
    """Return the lines that tell all counts of a run of the tests."""
    total, seeds = collections.Counter(), set()
    for report in reports:
        for name, value in report.user_properties:
            if name == "fuzz" and report.when == "teardown":
                total.update(value["counts"])
                seeds.add(value["seed"])
    lines = [f"{count:7d}  {words}" for words, count in sorted(total.items())]
    return [f"FUZZ_SEED={' '.join(map(str, sorted(seeds)))}, {sum(total.values())} inputs", *lines] if total else []
