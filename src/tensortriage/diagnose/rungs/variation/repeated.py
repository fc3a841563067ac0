"""Is one engine's answer the same from run to run? If not, no other question about it means anything.

The deployed run is repeated in its session and compared with the first answer too: a buffer that nobody has written, or
that still holds what the run before left there, shows in the first run or after other data only. A race shows in a few
runs of many: so often is the run repeated that a rate of 5 % is excluded at 95 %, where that takes little time.
"""

import math
import time
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, say
from tensortriage.compare.judgement.within import within_fp32
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult, deployed
from tensortriage.diagnose.measurements.soundness import builds_vary, failed, run_once
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.rungs.variation.race import first_to_differ, same
from tensortriage.diagnose.state.confidence import MOVES_UNNAMED, OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.search.statistics.repeats import QUICK_RISK, Rate, runs_needed
from tensortriage.values.store import MemoryStore

QUESTION = "are the outputs equal from run to run?"
LEAST_RUNS = 3
RARE = 0.05
"""Share of runs that a race is looked for in; 59 equal runs exclude it at 95 %."""

LEAST_SECONDS, SHARE = 1.0, 0.2
"""Repeats beyond the first take no longer than this, or than this share of the time that was spent before."""


@rung(QUESTION, reads=("results",))
def run_to_run(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Repeat the deployed run in one session; beyond the floor's limit, differing repeats are the verdict."""
    worst = evidence.worst
    moved: dict[str, float] = {}
    differing = 0
    try:
        for runs, repeat in enumerate(repeats(inv, worst.feed), 1):
            if runs == 1:
                first = {name: np.array(repeat[name]) for name in worst.metrics}
                moved = {name: _since_first(inv, worst, name, first[name]) for name in first}
            elif any(not same(first[name], repeat[name]) for name in first):
                differing += 1
                figures = compare_all(((name, repeat[name]) for name in first), MemoryStore(first)).metrics
                moved |= {n: max(moved[n], error_of(figures[n]) if n in figures else math.inf) for n in first}
    except EngineError as failure:
        inv.answered(QUESTION, f"no: {failure.message}")
        return failed(inv, failure)
    largest = max(moved, key=lambda n: moved[n], default="")
    if not largest or moved[largest] == 0.0:
        excluded = Rate(0, runs).at_most(1.0 - QUICK_RISK)
        inv.answered(QUESTION, f"yes: {runs} runs are bit-equal", runs=runs, differing_at_most=excluded)
        return None
    facts = {"runs": runs, "differing": differing, "moved": moved}
    if within_fp32(moved[largest], worst.floors.fp32.get(largest, 0.0)):
        inv.answered(QUESTION, f"nearly: runs differ by {say(moved[largest])}, below the floor", **facts)
        return None
    often = f" in {differing} of {runs} runs" if 0 < differing < runs - 1 else ""
    inv.answered(QUESTION, f"no: output '{largest}' differs by {say(moved[largest])}{often}", **facts)
    return unstable(inv, worst.feed, largest, moved[largest], Rate(max(differing, 1), runs))


def repeats(inv: Investigation, feed: Feed) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield outputs of the deployed session on a feed, run after run.

    Raises:
        EngineError: When a run fails.
    """
    started = time.perf_counter()
    until = started + max(LEAST_SECONDS, SHARE * (started - inv.budget.started))
    most = runs_needed(RARE, QUICK_RISK, limit=60) - len(inv.question.feeds)
    for number in range(max(most, LEAST_RUNS)):
        if number >= LEAST_RUNS and time.perf_counter() > until:
            return
        yield run_once(inv, inv.question.target, inv.model, feed)


def _since_first(inv: Investigation, worst: FeedResult, name: str, repeat: np.ndarray) -> float:
    """Return `from_first`; 0 where the session was built again since, for another shape: another question."""
    if inv.runner(inv.question.target, inv.model).rebuilt() and builds_vary(inv) is not False:
        return 0.0
    return from_first(inv, worst, name, repeat)


def from_first(inv: Investigation, worst: FeedResult, name: str, repeat: np.ndarray) -> float:
    """Return the least by which an output must have moved since its first run, of which only the error is known.

    Two results that are differently far from a third are at least that difference apart (triangle inequality).
    """
    golden = inv.golden_outputs(worst.feed)[name]
    if repeat.shape != golden.shape:  # as many boxes as the target finds: repeats are compared with each other
        return 0.0
    before, after = error_of(deployed(inv, worst.feed).metrics[name]), error_of(measure(golden, repeat))
    return 0.0 if math.isclose(before, after, rel_tol=1e-9) else abs(before - after)


def unstable(inv: Investigation, feed: Feed, output: str, error: float, rate: Rate) -> Verdict:
    """Name the first tensor, in topological order, that differs from run to run."""
    question = "which tensor differs first?"
    first, where = first_to_differ(inv, feed, rate)
    inv.answered(question, f"'{first.value}', {where}" if first else where)
    place = f", first in '{first.value}' ({first.op_type} '{first.node}')" if first else ""
    often = "" if rate.estimate > 0.5 else f", in {rate.failed} of {rate.runs} runs"
    return inv.verdict(
        VerdictKind.NONDETERMINISTIC_RUN,
        OBSERVED if first else MOVES_UNNAMED,
        f"{inv.question.target} gives different results for equal inputs: output '{output}' moves by {say(error)}"
        f"{often}{place}",
        culprits=[first] if first else [],
    )
