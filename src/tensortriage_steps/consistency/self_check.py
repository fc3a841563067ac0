"""Does an engine contradict itself? Relations that the model keeps, put to the engine without any right answer.

A healthy engine is within the envelope of the model in both runs, so two parts that the model makes equal differ by no
more than both radii. Beyond that one of the two is wrong, whichever. Where rows part first inside the model names the
op. Values that follow a decision between close scores (ArgMax, TopK, suppression of boxes) prove nothing by themselves.
"""

import contextlib
import dataclasses
import enum
import functools
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tensortriage.api import EngineError, EngineSpec, Feed, Model
from tensortriage.envelope.sdk import (
    CORRECTLY_ROUNDED,
    ROUNDED_ONCE,
    Lab,
    MemoryStore,
    Node,
    RunFailed,
    TensorStore,
    decided_values,
    decisions_behind,
    difference,
    markable,
    select_outputs,
    within_limit,
)
from tensortriage.sdk import UsageError, error_size
from tensortriage_steps.consistency.claim_runs import BuildsDiffer, ClaimRuns
from tensortriage_steps.consistency.evaluations import OwnEvaluation
from tensortriage_steps.consistency.partings import Parting, partings, worst
from tensortriage_steps.consistency.relations import LAID_OUT, ClaimKind, EqualityClaim, whole_relations
from tensortriage_steps.consistency.views import views
from tensortriage_worker.feeding import MISALIGNED


class ClaimOutcome(enum.Enum):
    """The outcome of a relation; the value is the word in files."""

    HOLDS = "holds"
    BROKEN = "broken"
    DECIDED = "decided-otherwise"
    NOT_CLAIMED = "not-claimed"
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True, slots=True)
class SelfAnswer:
    """The outcome of one relation.

    Attributes:
        relation: The word of the relation.
        question: The relation in words.
        outcome: A word of `ClaimOutcome`.
        answer: One sentence.
        parting: The output that contradicts itself; None when none does.
        node: The op in which rows part first: on the engine, or (not claimed) in the model itself; empty if not known.
        op_type: Its operator.
        value: The value of it.
        left: Inputs of the one run, in words.
        right: Inputs of the other.
        engine: The engine of the right run where its options differ from those of the left one; empty else.
        unstable: Whether equal inputs gave other results: earlier or parallel runs, or the inputs' addresses, decide.
    """

    relation: str
    question: str
    outcome: str
    answer: str
    parting: Parting | None = None
    node: str = ""
    op_type: str = ""
    value: str = ""
    left: str = ""
    right: str = ""
    engine: str = ""
    unstable: bool = False


class SelfCheck:
    """Relations put to one engine.

    Args:
        lab: The lab that asks engines.
        model: The model.
        target: The engine.
        at_sight: Whether parts that are equal to within some roundings of a float32 result satisfy a claim without the
            model being evaluated, and no processes are started; for checks in passing.
        before: Feeds that the open session of the engine has run already.
    """

    def __init__(
        self, lab: Lab, model: Model, target: EngineSpec, *, at_sight: bool = False, before: Sequence[Feed] = ()
    ) -> None:
        self._at_sight = at_sight
        self._lab, self._model, self._target = lab, model, target
        self._runs = ClaimRuns(lab, model, target, apart=not at_sight)
        self._runs.history += before
        self._outputs = [spec.name for spec in model.outputs]

    @functools.cached_property
    def _decided(self) -> Collection[str]:
        """Values that follow a decision between scores."""
        graph = self._model.graph
        decisions = decisions_behind(graph, self._outputs)
        return frozenset().union(*(decided_values(graph, decision) for decision in decisions))

    def whole_claims(
        self, feed: Feed, other: Feed | None, unasked: list[str], *, streams: bool, threads: bool
    ) -> list[EqualityClaim]:
        """Return the claims about the engine's ways to run a feed; missing ways are added to ``unasked``.

        Args:
            feed: The feed.
            other: Another one of the same shapes, for a second stream and for buffers used again.
            unasked: Receives the questions that cannot be asked, each with its reason.
            streams: Whether to run two sessions at once.
            threads: Whether to build it for other numbers of threads.
        """
        layouts = self._runs.built.layouts
        if MISALIGNED not in layouts:
            unasked.append("inputs in another memory layout: they are copied on their way to the engine")
        engines = self._runs.other_threads() if threads else {}
        if threads and not engines:
            unasked.append("other thread counts: the engine has no option 'threads'")
        if streams and other is None:
            unasked.append("two streams: no second feed can be made up; give two with --inputs")
        return whole_relations(feed, other=other, layouts=layouts, threads=engines, streams=streams)

    def ask(self, relation: EqualityClaim) -> SelfAnswer:
        """Put a relation to the model, then to the engine.

        Raises:
            EngineError: When the model's own evaluation of the left run fails, or the engine's.
            UsageError: When the model cannot be evaluated.
        """
        if self._at_sight and self._equal_at_sight(relation):
            return _answer(relation, ClaimOutcome.HOLDS, "yes")
        self._lab.values(CORRECTLY_ROUNDED, self._model, relation.left, self._outputs)
        try:
            own = self._own(relation, self._outputs)
        except EngineError as error:
            text = f"not claimed: the model itself fails on {relation.right.name}: {error.message}"
            return _answer(relation, ClaimOutcome.NOT_CLAIMED, text)
        left = self._runs.of(relation.left)
        try:
            right = self._runs.right(relation)
        except BuildsDiffer:
            return _answer(relation, ClaimOutcome.NOT_CLAIMED, "unknown: a rebuild alone already changes the results")
        except (EngineError, UsageError) as error:
            self._lab.drop(self._target, self._model)
            return self._failed(relation, error)
        kept = {name: own.kept(name) for name in self._outputs}
        if not any(kept.values()):
            return self._not_claimed(relation)
        parting = worst(partings(own, MemoryStore(left), MemoryStore(right), self._outputs))
        if parting is None:
            claimed = sum(bool(parts) for parts in kept.values())
            partly = "" if claimed == len(kept) else f" ({claimed} of {len(kept)} outputs; the model mixes the others)"
            return _answer(relation, ClaimOutcome.HOLDS, f"yes{partly}")
        return self._broken(
            relation, parting, proves=parting.value not in self._decided and not own.exact(parting.value)
        )

    def _equal_at_sight(self, relation: EqualityClaim) -> bool:
        """Return whether every output has nearly equal parts where the claim puts them."""
        try:
            left, right = self._runs.of(relation.left), self._runs.right(relation)
        except (EngineError, BuildsDiffer):
            return False
        return all(
            any(
                all(within_limit(difference(p.left(left[name]), p.right(right[name])), ROUNDED_ONCE) for p in candidate)
                for candidate in views(relation, left[name], right[name])
            )
            for name in self._outputs
        )

    def _own(self, relation: EqualityClaim, values: Sequence[str]) -> OwnEvaluation:
        return OwnEvaluation(self._lab, self._model, relation, values, target=self._target)

    def _failed(self, relation: EqualityClaim, error: EngineError | UsageError) -> SelfAnswer:
        """Return the answer for a failed right run; an engine may refuse another memory layout, and nothing else."""
        refused = isinstance(error, RunFailed) and relation.kind in LAID_OUT
        if refused or relation.kind is ClaimKind.THREADS:
            return _answer(relation, ClaimOutcome.NOT_CLAIMED, f"unknown: the engine refuses it: {error.message}")
        what = f"{self._target} fails on {relation.right.name}: {error.message}"
        return _answer(relation, ClaimOutcome.REFUSED, what)

    # -- what follows --------------------------------------------------------------------------------------------------

    def _broken(self, relation: EqualityClaim, parting: Parting, *, proves: bool) -> SelfAnswer:
        located = self._first_to_part(relation)
        rows = f", rows {', '.join(map(str, parting.rows))}" if parting.rows else ""
        healthy = f"a healthy engine stays within {error_size(parting.allowed)}"
        text = f"output '{parting.value}' differs by {error_size(parting.difference)}{rows}; {healthy}"
        if not proves and located is None:
            why = "scores decide it, and no value before it differs: within the rounding of the scores"
            return _answer(relation, ClaimOutcome.DECIDED, f"{text}; {why}", parting=parting)
        unstable = relation.kind.whole and relation.kind is not ClaimKind.THREADS
        if not relation.kind.whole and relation.kind is not ClaimKind.MASKED and self._needs_history(relation):
            unstable, text = True, f"{text}; in a session that has run nothing else it does not"
        place = " (no single value differs once all are marked)"
        node: Node | None = None
        if located is not None:
            node = self._model.graph.producer(located.value)
        if located is not None and node is not None:
            place = f", first in '{located.value}' ({node.op_type} '{node.name}')"
        value = located.value if located else ""
        answer = _answer(relation, ClaimOutcome.BROKEN, f"no: {text}{place}", node, value, parting)
        return dataclasses.replace(answer, unstable=unstable)

    def _first_to_part(self, relation: EqualityClaim) -> Parting | None:
        """Return the first value, in topological order, that parts on the engine; None where none is seen to."""
        values = markable(self._model)
        with contextlib.suppress(EngineError, BuildsDiffer):
            own = self._own(relation, values)
            proving = [name for name in values if name not in self._decided and not own.exact(name)]
            for left, right in self._inner_runs(relation, values):
                parted = next(partings(own, left, right, proving), None)
                if parted is not None:
                    return self._source(own, parted, left, right) if relation.kind is ClaimKind.MASKED else parted
        return None

    def _inner_runs(self, relation: EqualityClaim, values: Sequence[str]) -> Iterator[tuple[TensorStore, TensorStore]]:
        """Yield inner values of both runs: each in a session of its own where that may show it, then as they were run.

        Raises:
            EngineError: When the engine fails.
        """
        lab, target = self._lab, self._target
        if not relation.kind.whole:
            left = right = lab.values(target, self._model, relation.left, values)
            if relation.right is not relation.left:
                right = lab.values(target, self._model, relation.right, values)
            yield left, right
        marked = select_outputs(self._model, values)
        with lab.session(target, marked):
            one, other = ClaimRuns(lab, marked, target).replayed(relation, self._runs.history)
        yield MemoryStore(one), MemoryStore(other)

    def _source(self, own: OwnEvaluation, parted: Parting, left: TensorStore, right: TensorStore) -> Parting:
        """Return the first value on the way to one that parts which is outside the model's own envelope, else that one.

        A weight that should be zero and is not, is equal in both runs; the values that it lets through are not. No
        other claim has an innocent value before it that is equal in both.
        """
        for node in self._model.graph.ancestors([parted.value]):
            for name in node.outputs:
                known = name in left and name in right and name not in self._decided and not own.exact(name)
                if known and own.strays(name, left[name], right[name]):
                    return dataclasses.replace(parted, value=name)
        return parted

    def _needs_history(self, relation: EqualityClaim) -> bool:
        """Return whether a claim about rows holds in sessions that have run nothing else."""
        own = self._own(relation, self._outputs)
        try:
            left = right = self._runs.alone(relation.left)
            if relation.right is not relation.left:
                right = self._runs.alone(relation.right)
        except EngineError:
            return False
        return not any(partings(own, MemoryStore(left), MemoryStore(right), self._outputs))

    def _not_claimed(self, relation: EqualityClaim) -> SelfAnswer:
        """Return which op of the model mixes rows, in its own evaluation."""
        if relation.kind is ClaimKind.MASKED:
            return _answer(relation, ClaimOutcome.NOT_CLAIMED, "not claimed: in the model itself they have an effect")
        values = markable(self._model)
        own = self._own(relation, values)
        carrying = {name for name in relation.left.tensors if not _equal_inputs(relation, name)}
        for node in self._model.graph.nodes:
            made = [name for name in node.outputs if name in values]
            if carrying.isdisjoint(node.uses) or not made:
                continue
            kept = [name for name in made if own.kept(name)]
            carrying |= {*kept}
            if not kept and not own.exact(made[0]) and 0 not in own.shapes(made[0])[0]:
                text = f"not claimed: the model itself mixes rows, in {node.op_type} '{node.name}'"
                return _answer(relation, ClaimOutcome.NOT_CLAIMED, text, node, made[0])
        return _answer(relation, ClaimOutcome.NOT_CLAIMED, "not claimed: no output of the model has rows")


def _equal_inputs(relation: EqualityClaim, name: str) -> bool:
    """Return whether an input is the same in both runs, so that it has no rows; one run has rows everywhere."""
    if relation.left is relation.right:
        return False
    return np.array_equal(relation.left.tensors[name], relation.right.tensors[name])


def _answer(
    relation: EqualityClaim,
    outcome: ClaimOutcome,
    answer: str,
    node: Node | None = None,
    value: str = "",
    parting: Parting | None = None,
) -> SelfAnswer:
    return SelfAnswer(
        relation.kind.value,
        relation.question,
        outcome.value,
        answer,
        parting,
        node.name if node else "",
        node.op_type if node else "",
        value,
        relation.left.name,
        relation.right.name,
        str(relation.engine or ""),
    )
