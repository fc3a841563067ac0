"""Is one engine's answer the same from run to run? If not, no other question about it means anything.

The deployed run is repeated in its session and compared with the first answer too: a buffer that nobody has written, or
that still holds values of the run before, shows in the first run or after other data only. A race shows in a few runs
of many: so often is the run repeated that a rate of 5 % is excluded at 95 %, where that takes little time. Our own
engines, which compute by rule, are run `LEAST_EQUAL_RUNS` times.
"""

import math
import time
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.thresholds import LEAST_EQUAL_RUNS, RARE_RUN
from tensortriage.compare.judgement.within import is_noise, within_fp32
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult, deployed
from tensortriage.diagnose.measurements.soundness import builds_vary, failed, runs_vary
from tensortriage.diagnose.measurements.suggested_commands import run_command
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.rungs.variation.race import first_to_differ, same
from tensortriage.diagnose.rungs.variation.run_order import NO_ORDER, RunOrder, of_order, run_order
from tensortriage.diagnose.state.confidence import MOVES_UNNAMED, OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.transforms.constant_folding import RANDOM
from tensortriage.runs.observation.experiment import Experiment, Measurement
from tensortriage.search.statistics.repeats import QUICK_RISK, Rate, runs_needed
from tensortriage.values.store import MemoryStore
from tensortriage.values.text import error_size

QUESTION = "are the outputs equal from run to run?"

LEAST_SECONDS, TIME_SHARE = 1.0, 0.2
"""Repeats take no longer than this, or than this share of the time that was spent before, if each takes as long as the
fastest: other load on the machine must not decide which races are seen."""


@frozen_dataclass
class RepeatedRuns:
    """Results of equal runs of one session.

    Attributes:
        runs: How many there were.
        differing: How many of them differ from the first.
        moved: Largest relative difference by output, to the first of them and to the one that was deployed.
    """

    runs: int
    differing: int
    moved: Mapping[str, float]


@rung(
    QUESTION,
    reads=("results",),
    cost="3 to 58 runs",
    ends=(
        VerdictKind.NONDETERMINISTIC_RUN,
        VerdictKind.MATCH,
        VerdictKind.BUILD_FAILED,
        VerdictKind.ENGINE_CRASH,
        VerdictKind.ENGINE_HANG,
        VerdictKind.INCONCLUSIVE,
    ),
)
def run_to_run(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Repeat the deployed run in one session; beyond the floor's limit, differing repeats are the verdict."""
    worst, target = evidence.worst_feed, inv.question.target
    try:
        seen = inv.lab.derived(RepeatedRuns, QUESTION, target, inv.model, worst.feed).of(lambda: repeated(inv, worst))
    except EngineError as failure:
        inv.record.answered(QUESTION, f"no: {failure.message}")
        return failed(inv, failure, worst.feed)
    runs, differing, moved = seen.runs, seen.differing, seen.moved
    largest = max(moved, key=lambda n: moved[n], default="")
    if not largest or moved[largest] == 0.0:
        excluded = Rate(0, runs).at_most(1.0 - QUICK_RISK) if runs_vary(inv) else 0.0
        by_rule = "" if runs_vary(inv) else ", as it computes by rule"
        inv.record.answered(QUESTION, f"yes: {runs} runs are bit-equal{by_rule}", runs=runs, differing_at_most=excluded)
        return None
    facts = {"runs": runs, "differing": differing, "moved": moved}
    drawn = any(node.op_type in RANDOM for node in inv.model.graph.nodes) and is_noise(moved[largest])
    if within_fp32(moved[largest], worst.floors.fp32.get(largest, 0.0)) and not drawn:
        inv.record.answered(QUESTION, f"nearly: runs differ by {error_size(moved[largest])}, below the floor", **facts)
        return None
    often = f" in {differing} of {runs} runs" if 0 < differing < runs - 1 else ""
    inv.record.answered(QUESTION, f"no: output '{largest}' differs by {error_size(moved[largest])}{often}", **facts)
    order = run_order(inv, worst.feed, worst.floors.fp32)
    return unstable(inv, worst.feed, largest, moved[largest], Rate(max(differing, 1), runs), order)


def repeated(inv: Investigation, worst: FeedResult) -> RepeatedRuns:
    """Run the deployed session again and again.

    Raises:
        EngineError: When a run fails.
    """
    moved: dict[str, float] = {}
    runs = differing = 0
    for repeat in repeats(inv, worst.feed):
        runs += 1
        if runs == 1:
            first = {name: repeat.tensors[name] for name in worst.metrics}
            moved = since_deployed(inv, worst, repeat)
        elif any(not same(first[name], repeat.tensors[name]) for name in first):
            differing += 1
            figures = compare_all(((name, repeat.tensors[name]) for name in first), MemoryStore(first)).metrics
            moved |= {n: max(moved[n], error_of(figures[n]) if n in figures else math.inf) for n in first}
    return RepeatedRuns(runs, differing, moved)


def since_deployed(inv: Investigation, worst: FeedResult, repeat: Measurement) -> dict[str, float]:
    """Return `from_first` by output; 0 where the session was built again since, for another shape: another question."""
    rebuilt = repeat.builds_made > 1 and builds_vary(inv) is not False
    return {name: 0.0 if rebuilt else from_first(inv, worst, name, repeat.tensors[name]) for name in worst.metrics}


def repeats(inv: Investigation, feed: Feed) -> Iterator[Measurement]:
    """Yield outputs of the deployed session on a feed, run after run.

    Raises:
        EngineError: When a run fails.
    """
    allowed = max(LEAST_SECONDS, TIME_SHARE * (time.perf_counter() - inv.lab.budget.started))
    fastest = 0.0
    most = runs_needed(RARE_RUN, QUICK_RISK, limit=60) - len(inv.question.feeds) if runs_vary(inv) else 0
    again = Experiment(engine=inv.question.target, model=inv.model, feed=feed, repetition=None)
    for number in range(max(most, LEAST_EQUAL_RUNS)):
        if number >= LEAST_EQUAL_RUNS and number * fastest > allowed:
            return
        began = time.perf_counter()
        answer = inv.lab.answer(again)
        fastest = min(fastest or math.inf, time.perf_counter() - began)
        yield answer


def from_first(inv: Investigation, worst: FeedResult, name: str, repeat: np.ndarray) -> float:
    """Return the least move of an output since its first run, whose error alone is known.

    Two results that are differently far from a third are at least that difference apart (triangle inequality).
    """
    golden = inv.golden.outputs(worst.feed)[name]
    if repeat.shape != golden.shape:  # as many boxes as the target finds: repeats are compared with each other
        return 0.0
    before, after = error_of(deployed(inv, worst.feed).metrics[name]), error_of(measure(golden, repeat))
    return 0.0 if math.isclose(before, after, rel_tol=1e-9) else abs(before - after)


def unstable(
    inv: Investigation, feed: Feed, output: str, error: float, rate: Rate, order: RunOrder = NO_ORDER
) -> Conclusion:
    """Return how runs differ, and the first tensor, in topological order, that does."""
    question = "which tensor differs first?"
    first, where = first_to_differ(inv, feed, rate)
    inv.record.answered(question, f"'{first.value}', {where}" if first else where)
    place = f", first in '{first.value}' ({first.op_type} '{first.node}')" if first else ""
    if order.words:
        return of_order(inv, order, f"output '{output}' moves by {error_size(error)}{place}", [first] if first else [])
    often = "" if rate.estimate > 0.5 else f", in {rate.failed} of {rate.runs} runs"
    if first and first.op_type in RANDOM:
        place += ", which draws random numbers on any engine: to compare, make them an input of the model"
    return Conclusion(
        VerdictKind.NONDETERMINISTIC_RUN,
        OBSERVED if first else MOVES_UNNAMED,
        f"{inv.question.target} gives different results for equal inputs: output '{output}' moves by "
        f"{error_size(error)}{often}{place}",
        culprits=[first] if first else [],
        next=[run_command(inv.question)],
    )
