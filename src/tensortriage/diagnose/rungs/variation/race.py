"""Which op gives different results for equal inputs? A race is looked for where it can be seen, so often as it is rare.

First the whole model with every tensor marked: the race begins at the first tensor that differs. Marking changes
fusions and the overlap of kernels, so where it hides the race, every op is run on golden inputs in one session, many
times, and then in new sessions, as some races are decided once a session begins.
"""

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.errors import EngineError, ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.observation.capture import batches
from tensortriage.runs.observation.experiment import ObservedOutputs
from tensortriage.runs.outcome import Outcome
from tensortriage.search.statistics.repeats import CONFIDENCE, QUICK_RISK, Rate, runs_needed

MOST_RUNS = 240
"""Repeats of one session: they miss a race of one run in 80 with 5 %."""

MOST_SESSIONS = 20
SECONDS = 30.0
"""How long each of the three ways is tried at most."""

Values = Mapping[str, np.ndarray]


@frozen_dataclass
class Race:
    """Where a race was seen.

    Attributes:
        value: The first value that differs; empty when none was seen to.
        words: How it was seen, or why none was.
    """

    value: str
    words: str


def first_to_differ(inv: Investigation, feed: Feed, rate: Rate) -> tuple[Culprit | None, str]:
    """Return the op whose result differs first, and how that was seen; or None and the reason.

    Args:
        inv: The investigation.
        feed: The feed on which outputs differ.
        rate: How often they do.
    """
    target = inv.question.target
    seen = inv.lab.derived(Race, "which tensor differs first", target, inv.model, feed).of(
        lambda: _seen(inv, feed, rate)
    )
    node = inv.model.graph.producer(seen.value) if seen.value else None
    if node is None:
        return None, seen.words
    reason = "the first tensor that differs from run to run"
    return Culprit(node.name, node.op_type, seen.value, reason=reason), seen.words


def _seen(inv: Investigation, feed: Feed, rate: Rate) -> Race:
    # One run in three may be one in twenty that came early: so often as the rate may be low.
    times = max(2, runs_needed(rate.at_least(CONFIDENCE), QUICK_RISK, limit=MOST_RUNS))
    inv.lab.progress(f"running up to {times} times with every tensor marked")
    reason = "none"
    ways: tuple[tuple[str, Callable[[], str]], ...] = (
        ("with every tensor marked", lambda: _marked(inv, feed, times)),
        ("each op alone on golden inputs", lambda: _exploded(inv, feed, times, sessions=1)),
        ("each op alone in new sessions", lambda: _exploded(inv, feed, 2, sessions=min(times, MOST_SESSIONS))),
    )
    for words, look in ways:
        try:
            value = look()
        except (EngineError, ModelError) as problem:
            why = WORDS[Outcome.of(problem).kind] if isinstance(problem, EngineError) else problem.message
            reason = f"unknown: {words} the target {why}"
            continue
        if value and inv.model.graph.producer(value) is not None:
            return Race(value, words)
        reason = "no tensor differs once all are marked, and no op differs alone"
    return Race("", reason)


def _marked(inv: Investigation, feed: Feed, times: int) -> str:
    """Return the first value that differs in an instrumented session; another feed is run between any two runs."""
    others = [other for other in inv.question.feeds if other.name != feed.name and _shapes(other) == _shapes(feed)]
    for group in batches(inv.question.values, inv.golden.specs(feed), batch_bytes=inv.question.batch_bytes):
        marked = select_outputs(inv.model, group)
        if value := _differing(inv, marked, feed, times, between=others[0] if others else None):
            return value
    return ""


def _exploded(inv: Investigation, feed: Feed, times: int, *, sessions: int) -> str:
    """Return the first value that differs when every op runs on golden inputs, within a session or between some."""
    nodes = [[node.name] for node in inv.model.graph.nodes if node.op_type != "Constant"]
    ops = golden_operands(inv, feed).apart(nodes)
    first: dict[str, np.ndarray] = {}
    started = time.perf_counter()
    for _ in range(sessions):
        if value := _differing(inv, ops.model, ops.feed, times, first=first):
            return value
        if time.perf_counter() - started > SECONDS:
            break
    return ""


def _differing(
    inv: Investigation,
    model: Model,
    feed: Feed,
    times: int,
    *,
    between: Feed | None = None,
    first: dict[str, np.ndarray] | None = None,
) -> str:
    """Run one session repeatedly and return the first value, in topological order, that differs from the first run.

    Args:
        inv: The investigation.
        model: The model to build.
        feed: Its inputs.
        times: Most runs.
        between: Inputs of a run between any two.
        first: The first run's values; filled by it when empty.
    """
    first = {} if first is None else first
    with inv.lab.session(inv.question.target, model, sequence=True) as run:

        def runs() -> Iterator[Values]:
            started = time.perf_counter()
            for number in range(times):
                if number > 1 and time.perf_counter() - started > SECONDS:
                    return
                yield run.of(feed, observed=ObservedOutputs(lent=number > 0)).arrays  # the first is held
                if between is not None:
                    run.of(between, observed=ObservedOutputs(lent=True))

        for outputs in runs():
            if not first:
                first.update(outputs)
            elif different := {name for name in outputs if name in first and not same(first[name], outputs[name])}:
                return next((name for name in inv.question.values if name in different), "")
    return ""


def _shapes(feed: Feed) -> Mapping[str, tuple[int, ...]]:
    return {name: array.shape for name, array in feed.tensors.items()}


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays hold equal numbers, NaN for NaN."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
