"""Is the result good enough in spite of rounding? Users ask it once no op is to blame; known answers decide.

An error of so many percent means little to a person with a task. Better measures: whether the target ranks the same
classes first, how far its outputs point in the same direction, and the remaining error with some ops in fp32. Only the
last needs a run, of the reference with rounded results.
"""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.compare.next_token import TOP, compare_next
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import emulate
from tensortriage.errors import DataError, EngineError, TriageError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.model.ir.graph import Graph
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.dtype import Precision
from tensortriage.values.text import count, error_size, percent

_KEPT_SHARE = 0.1
"""Share of the ops that a mixed model is tried with: more than this loses most of the format's savings."""

_WORTH_A_RUN = 0.01
"""Predicted error from which a mixed model is tried: below 1 %, nobody needs a better format."""

_HALF_THE_ENERGY = 0.7
"""A mixed model is worth it when less than this of the error is left: half of its energy, which is 3 dB."""

QUESTION = "is that good enough?"

MOST_BYTES = 64 << 20
"""Outputs up to which answers are kept: nothing is run again for these sentences."""

MOST_ROWS = 4096
"""Rows of scores that are ranked, of each feed: enough for one in a thousand to show."""

_SCORES = re.compile(r"logit|score|prob|class|label|pred", re.IGNORECASE)
_FEATURES = re.compile(r"embed|feature|hidden|pool|latent", re.IGNORECASE)
_LINEAR = frozenset({"Gemm", "MatMul", "Add", "Softmax", "LogSoftmax", "Cast", "DequantizeLinear", "Identity"})


def sufficiency(inv: Investigation, evidence: Evidence) -> tuple[str, ...]:
    """Return measures of whether the outputs are good enough, in sentences; recorded as a step.

    Args:
        inv: The investigation.
        evidence: Its evidence; feeds were run, and rounding explains the error.
    """
    sentences: list[str] = []
    try:
        sentences += _against_outputs(inv, evidence)
        sentences += _mixed(inv, evidence)
    except BudgetSpent:
        inv.record.unasked(QUESTION)
    except (EngineError, DataError) as problem:
        inv.record.answered(QUESTION, f"unknown: {problem.message}")
    if sentences:
        inv.record.answered(QUESTION, "; ".join(sentences))
    return tuple(sentences)


def looks_like_classes(graph: Graph, name: str, shape: tuple[int, ...]) -> bool:
    """Return whether an output holds a score for each of several classes along its last axis: by its name, or its op.

    Args:
        graph: The model.
        name: The output.
        shape: Its shape.
    """
    if len(shape) < 2 or shape[-1] < 2 or _FEATURES.search(name):
        return False
    maker = graph.producer(name)
    return bool(_SCORES.search(name)) or (len(shape) == 2 and maker is not None and maker.op_type in _LINEAR)


def _against_outputs(inv: Investigation, evidence: Evidence) -> Iterator[str]:
    """Yield the findings on the outputs of every feed."""
    ranked: dict[str, list[tuple[int, int, float]]] = {}
    cosines: dict[str, float] = {}
    for result in evidence.results:
        golden, figures = _right(inv, evidence, result)
        for name, figure in figures.items():
            if not figure.exact and math.isfinite(figure.cosine_similarity):
                cosines[name] = min(cosines.get(name, 1.0), figure.cosine_similarity)
        target = inv.deployed(result.feed)
        if sum(np.asarray(array).nbytes for array in target.values()) > MOST_BYTES:
            continue
        arrays = {name: array for name, array in golden.items() if name in target}
        for name, array in arrays.items():
            if array.dtype.kind in "fV" and looks_like_classes(inv.model.graph, name, array.shape):
                ranked.setdefault(name, []).append(_ranked(array, np.asarray(target[name])))
    for name, rows in ranked.items():
        same, total = sum(row[0] for row in rows), sum(row[1] for row in rows)
        top = sum(row[2] * row[1] for row in rows) / total
        yield (
            f"output '{name}': the same class first in {same} of {count(total, 'row')}, top {TOP} agree in "
            f"{percent(top)}"
        )
    if cosines:
        name = min(cosines, key=cosines.__getitem__)
        yield f"cosine {_cosine(cosines[name])}" + (f" at least, of output '{name}'" if len(cosines) > 1 else "")


def _right(
    inv: Investigation, evidence: Evidence, result: FeedResult
) -> tuple[Mapping[str, np.ndarray], Mapping[str, Metrics]]:
    """Return the right outputs, and the figures of the target's against them.

    A file that stands for another model is compared with that model: with itself it agrees, however useless it is.
    """
    if evidence.model_diff is None:
        golden = inv.golden.outputs(result.feed)
        return {name: np.asarray(golden[name]) for name in golden.names()}, result.metrics
    original = evidence.model_diff.original
    feed = check_feed(result.feed, original.inputs, casting=Casting.ROUND)
    right = inv.lab.outputs(inv.question.reference, original, feed)
    found = {name: np.asarray(array) for name, array in inv.deployed(result.feed).items()}
    alike = [name for name, array in right.items() if name in found and found[name].shape == array.shape]
    return {name: right[name] for name in alike}, {name: measure(right[name], found[name]) for name in alike}


def _ranked(reference: np.ndarray, target: np.ndarray) -> tuple[int, int, float]:
    """Return how many rows have the same largest score, how many there are, and how far the first five agree."""
    rows = [side.reshape(-1, side.shape[-1])[:MOST_ROWS].astype(np.float64) for side in (reference, target)]
    found = compare_next(*rows)
    return sum(map(int.__eq__, found.reference, found.target)), len(found.reference), found.top_agreement


def _cosine(value: float) -> str:
    """Return a cosine with enough digits to show its distance from 1."""
    return f"{value:.{min(9, max(3, 1 - math.floor(math.log10(max(1.0 - value, 1e-9)))))}f}"


def _mixed(inv: Investigation, evidence: Evidence) -> Iterator[str]:
    """Yield the prediction with the ops in fp32 at which the error grows most."""
    floors = evidence.floors
    if inv.precision not in (Precision.FP16, Precision.BF16) or floors is None:
        return
    kept = grows_most(inv.model.graph, floors.target)
    outputs = [name for name in evidence.worst_feed.metrics if name in floors.target]
    before = max((floors.target[name] for name in outputs), default=0.0)
    if not kept or not _WORTH_A_RUN <= before < math.inf:
        return
    feed = evidence.feed
    with contextlib.suppress(TriageError):
        setting, what = inv.setting(feed), "the outputs with some ops in fp32"
        figures = emulate(
            setting, outputs, golden=inv.golden.of(feed), specs=inv.golden.specs(feed), kept=kept, what=what
        )
        after = max(map(error_of, figures.values()))
        of = f"{count(len(kept), 'op')} of {len(inv.model.graph.nodes)} in fp32"
        if after < _HALF_THE_ENERGY * before:
            yield f"a mixed model with {of} would be off by {error_size(after)}, by prediction"
        else:
            yield f"keeping {of}, where the error grows most, would not help: {error_size(after)} is predicted"


def grows_most(graph: Graph, errors: Mapping[str, float]) -> tuple[str, ...]:
    """Return the ops with the largest error growth, and the makers of their operands: `_KEPT_SHARE` of all.

    Errors of independent roundings add in squares: an op's contribution is its result's error beyond that of its worst
    operand. An op that amplifies the rounding of its operands is helped by these alone.

    Args:
        graph: The model.
        errors: Predicted relative error of values, in context.
    """
    added = {}
    for node in graph.nodes:
        here = max((errors.get(name, 0.0) for name in node.outputs), default=0.0)
        before = max((errors.get(name, 0.0) for name in node.uses), default=0.0)
        if math.isfinite(here) and here > before:
            added[node.name] = here**2 - before**2
    most, kept = max(2, round(_KEPT_SHARE * len(graph.nodes))), dict[str, None]()
    for name in sorted(added, key=lambda name: -added[name]):
        makers = [maker.name for used in graph.node(name).uses if (maker := graph.producer(used)) is not None]
        if len(kept) >= most:
            break
        kept |= dict.fromkeys((name, *makers))
    return tuple(kept)
