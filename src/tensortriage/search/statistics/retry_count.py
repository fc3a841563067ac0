"""How often to ask about something once it is known how often it fails."""

from tensortriage.search.statistics.repeats import Rate, Repeats, runs_needed

MISSED = 0.01
"""Chance that a fault which comes and goes is missed when a step is tried after the search."""
CONFIDENCE = 0.95
"""That the fault comes at least as often as is assumed: a rate seen in a few runs may be half as high."""


def attempts_for(rate: Rate, repeats: Repeats) -> int:
    """Return how many runs it takes to see a failure that comes at this rate; they end with the first that fails."""
    return 1 if rate.always else runs_needed(rate.at_least(CONFIDENCE), MISSED, limit=repeats.limit)
