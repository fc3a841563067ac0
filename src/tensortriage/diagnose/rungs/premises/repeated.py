"""Is one engine's answer the same from run to run? If not, no other question about it means anything.

The deployed run is repeated in its session and compared with the first answer too: a buffer that nobody has written, or
that still holds what the run before left there, shows in the first run or after other data only.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import MATCH_FACTOR, error_of, say
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.outputs import FeedResult, worst_result
from tensortriage.diagnose.measurements.soundness import failed, run_once
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.capture import batches
from tensortriage.values.store import MemoryStore

QUESTION = "is it equal from run to run?"


def run_to_run(inv: Investigation, results: tuple[FeedResult, ...], *, runs: int = 3) -> Verdict | None:
    """Repeat the deployed run in one session; beyond the floor's limit, differing repeats are the verdict."""
    since = inv.mark()
    worst = worst_result(results)
    try:
        repeats = [
            {k: np.array(v) for k, v in run_once(inv, inv.question.target, inv.model, worst.feed).items()}
            for _ in range(runs)
        ]
    except EngineError as failure:
        inv.answered(QUESTION, f"no: {failure.message}", since=since)
        return failed(inv, failure)
    moved = {name: from_first(inv, worst, name, repeats[0][name]) for name in worst.metrics}
    for name in worst.metrics:
        for repeat in repeats[1:]:
            metrics = compare_all([(name, repeat[name])], MemoryStore(repeats[0])).metrics.get(name)
            moved[name] = max(moved[name], error_of(metrics) if metrics else math.inf)
    largest = max(moved, key=lambda n: moved[n], default="")
    if not largest or moved[largest] == 0.0:
        inv.answered(QUESTION, f"yes: {runs} runs are bit-equal", since=since, runs=runs)
        return None
    limit = MATCH_FACTOR * worst.floors.fp32.get(largest, 0.0)
    if moved[largest] <= limit:
        inv.answered(
            QUESTION, f"nearly: runs differ by {say(moved[largest])}, below the floor", since=since, moved=moved
        )
        return None
    inv.answered(QUESTION, f"no: output '{largest}' differs by {say(moved[largest])}", since=since, moved=moved)
    return unstable(inv, worst.feed, largest, moved[largest])


def from_first(inv: Investigation, worst: FeedResult, name: str, repeat: np.ndarray) -> float:
    """Return the least by which an output must have moved since its first run, of which only the error is known.

    Two results that are differently far from a third are at least that difference apart (triangle inequality).
    """
    golden = inv.golden_outputs(worst.feed)[name]
    if repeat.shape != golden.shape:
        return math.inf
    before, after = worst.errors[name], error_of(measure(golden, repeat))
    return 0.0 if math.isclose(before, after, rel_tol=1e-9) else abs(before - after)


def unstable(inv: Investigation, feed: Feed, output: str, error: float) -> Verdict:
    """Name the first tensor, in topological order, that differs between two instrumented runs."""
    since = inv.mark()
    question = "which tensor differs first?"
    first: Culprit | None = None
    try:
        for one, other in twice(inv, feed):
            for name in (name for name in inv.values if name in one):
                node = inv.model.graph.producer(name)
                if node is not None and not same(one[name], other[name]):
                    first = Culprit(
                        node.name, node.op_type, name, reason="the first tensor that differs from run to run"
                    )
                    break
            if first is not None:
                break
    except EngineError as problem:
        inv.answered(question, f"unknown: {problem.message}", since=since)
    else:
        inv.answered(question, f"'{first.value}'" if first else "none once marked", since=since)
    place = f", first in '{first.value}' ({first.op_type} '{first.node}')" if first else ""
    return inv.verdict(
        VerdictKind.NONDETERMINISTIC_RUN,
        1.0 if first else 0.8,
        f"{inv.question.target} gives different results for equal inputs: output '{output}' moves by {say(error)}"
        f"{place}",
        culprits=[first] if first else [],
    )


def twice(inv: Investigation, feed: Feed) -> Iterator[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
    """Yield values of two runs of one session on a feed, batch by batch; another feed is run between the two.

    Raises:
        EngineError: When the target fails.
    """
    others = [other for other in inv.question.feeds if other.name != feed.name and shapes(other) == shapes(feed)]
    groups = batches(inv.values, inv.specs(feed), batch_bytes=inv.question.batch_bytes)
    inv.listener.progress("running twice with every tensor marked")
    for group in groups:
        with inv.new_runner(inv.question.target, select_outputs(inv.model, group)) as runner:
            one = {name: np.array(array) for name, array in runner.run(feed).items()}
            if others:
                runner.run(others[0])
            yield one, runner.run(feed)


def shapes(feed: Feed) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of a feed."""
    return {name: array.shape for name, array in feed.tensors.items()}


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Say whether two arrays hold equal numbers, NaN for NaN."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
