"""Searches the nodes to keep with a command as judge, which finds typed models, or ones with Q/DQ pairs, in a file."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from tensortriage.errors import EngineError
from tensortriage.precision.goal import ErrorGoal
from tensortriage.precision.plan import ErrorFacts, PrecisionPlan
from tensortriage.precision.search.number_formats import CommandCandidates
from tensortriage.precision.search.outcome import planned, prefixes, written
from tensortriage.precision.search.request import (
    PrecisionListener,
    PrecisionMode,
    PrecisionRequest,
)
from tensortriage.precision.search.shared_parts import casts_in, in_order, keepings, recorded_on, untried
from tensortriage.precision.selection.engine_confirmation import NotPrecisionError
from tensortriage.precision.selection.influence import Influences
from tensortriage.precision.selection.node_choice import NodeSearch, answer, smallest
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.command_oracle import FROM_REPLAY, CommandOracle, ShownModel, ShownTo
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.search.answers.answer_cache import AnswerCache, Cache
from tensortriage.search.answers.speculation import converse
from tensortriage.search.dialogue import Ask
from tensortriage.search.execution.executors import Executor, InProcess, OracleQuestion
from tensortriage.search.problem import CandidateOutcome, OracleVerdict

PASSED = (CandidateOutcome.PASS, CandidateOutcome.OTHER)
"""Outcomes of a command that does not fail."""


class Command:
    """Shows candidates to the command, each once, and counts.

    Args:
        oracle: The command.
        executor: Runs the command; None for this thread.
        candidates: The candidates' files.
        cache: The store of answers.
        listener: Receives steps and progress.
    """

    def __init__(
        self,
        oracle: CommandOracle,
        executor: Executor[str] | None,
        candidates: CommandCandidates,
        cache: Cache,
        listener: PrecisionListener,
    ) -> None:
        self.asked = self.made = 0
        self.passed: list[frozenset[str]] = []
        self._oracle = oracle
        self._candidates = candidates
        self._listener = listener
        self._answers = AnswerCache[str](executor or InProcess(oracle), cache, self._key)
        self._used: set[OracleQuestion[str]] = set()

    def passes(self, kept: Collection[str], ahead: Iterable[frozenset[str]] = ()) -> bool:
        """Return whether the command accepts a candidate; an unresolved check counts as a failure.

        Args:
            kept: The nodes that were chosen.
            ahead: Candidates that may follow, for idle workers.
        """
        question = self._question(kept)
        answer = self._answers.answer(question, map(self._question, ahead))
        if answer.error is not None:
            raise answer.error
        verdict = answer.verdict
        assert verdict is not None
        self.asked += 1
        word = "known"
        if answer.cached or question in self._used:
            self._oracle.known(question.candidate, verdict)
        elif verdict.detail != FROM_REPLAY:
            self.made += 1
            word = f"check {self.made}"
        self._used.add(question)
        passed = verdict.outcome in PASSED
        if passed:
            self.passed.append(frozenset(kept))
        self._listener.tell(f"{word}: {len(kept)} nodes kept: {'passes' if passed else 'fails'} ({verdict.detail})")
        return passed

    def recall(self, kept: Collection[str]) -> None:
        """Count a candidate among those that passed if the case has it so; the command is not run."""
        known = self._answers.known(self._question(kept))
        if known is not None and known.verdict is not None and known.verdict.outcome in PASSED:
            self.passed.append(frozenset(kept))

    def _question(self, kept: Collection[str]) -> OracleQuestion[str]:
        return OracleQuestion(in_order(self._candidates.stage.model, kept), 0)

    def _key(self, kept: tuple[str, ...]) -> str:
        return digest(self._oracle.identity, self._candidates.whole(kept))


@contextlib.contextmanager
def on_command(
    to: ShownTo, case: Case, candidates: CommandCandidates, listener: PrecisionListener
) -> Iterator[Command]:
    """Yield the command for candidates of a model; runs that are left at the end are killed."""
    stage = candidates.stage

    def shown(kept: tuple[str, ...]) -> ShownModel:
        return ShownModel(digest(candidates.whole(kept)), len(kept), lambda: candidates.model(kept))

    bound_to = digest(stage.model.fingerprint, to.check.identity(), stage.precision.value, candidates.identity)
    with contextlib.closing(CommandOracle(to, shown, case, bound_to)) as oracle, oracle.executor() as executor:
        yield Command(oracle, executor, candidates, oracle.cache, listener)


class CommandSearch:
    """One search.

    Args:
        request: The user's request.
        source: The model and its golden values.
        candidates: Makes the files that the command reads.
        command: The command.
        earlier: Nodes that an earlier search in the case ended with.
    """

    def __init__(
        self,
        request: PrecisionRequest,
        source: GoldenValues,
        candidates: CommandCandidates,
        command: Command,
        *,
        earlier: Collection[str] = (),
    ) -> None:
        self._request = request
        self._source = source
        self._candidates = candidates
        self._stage = candidates.stage
        self._command = command
        self._started = time.perf_counter()
        self._emulated = 0
        self._interrupted = False
        self._settled: list[str] | None = None
        self._earlier = frozenset(earlier)

    def plan(self) -> PrecisionPlan:
        """Search, and assemble the result.

        Ctrl-C ends it with the smallest set that was seen to pass; where none was, with every node in fp32.

        Raises:
            NotPrecisionError: When the check fails with every node in fp32, too (``precision-not-the-cause``).
        """
        try:
            kept, found = self._search()
            self._settled = kept
            return self._finished(kept, found)
        except KeyboardInterrupt:
            self._interrupted = True
            if self._earlier <= {*self._stage.items}:
                self._command.recall(self._earlier)
            best = min(self._command.passed, key=len, default=frozenset(self._stage.items))
            kept = [*in_order(self._stage.model, best)] if self._settled is None else self._settled
            return self._finished(kept, None)

    def _search(self) -> tuple[list[str], Influences | None]:
        found: Influences | None = None
        kept: list[str] = []
        if not self._command.passes(()):
            if not self._command.passes(self._stage.items):
                raise NotPrecisionError(
                    "the check fails with every node in fp32 too: the fault is not precision",
                    slug="precision-not-the-cause",
                    cure="find the fault with triage debug reduce and the same --check",
                )
            if self._request.mode is PrecisionMode.AUTO:
                found = self._influences()
                order = self._stage.items if found is None else found.order()
                kept = self._found(lambda: smallest(order))
            else:
                kept = self._found(lambda: prefixes(self._request, self._stage.items))
        return kept, found

    def _influences(self) -> Influences | None:
        """Return each node's influence in emulation, on the data there are; None when it cannot be run."""
        names = [spec.name for spec in self._source.question.model.outputs]
        try:
            goal = ErrorGoal(dict.fromkeys(names, 1.0), "relative error", limits=False)
            with contextlib.closing(self._candidates.emulation(goal, self._request.budget_seconds)) as emulation:
                found = emulation.influences
                self._emulated = emulation.runs
                return found
        except EngineError:
            return None

    def _found(self, find: Callable[[], NodeSearch[list[str]]]) -> list[str]:
        """Search; idle workers answer likely next questions meanwhile, which changes no answer."""
        known: dict[frozenset[str], OracleVerdict] = {}

        def answered(ask: Ask[str], ahead: Iterator[frozenset[str]]) -> tuple[OracleVerdict]:
            (kept,) = ask.candidates
            known[kept] = answer(self._command.passes(kept, ahead))
            return (known[kept],)

        return converse(find(), answered, find, known.get)

    def _finished(self, kept: list[str], found: Influences | None) -> PrecisionPlan:
        request, stage, shape = self._request, self._stage, self._candidates
        whole, made = shape.whole(kept), shape.model(kept)
        if self._interrupted and len(kept) == len(stage.items):
            nodes = untried(stage.model.graph, kept)
        else:
            feed = self._source.question.feeds[0]
            nodes = keepings(stage, kept, found, recorded_on(self._source, feed), limited=False, scaled=shape.scaled)
        words = " ".join(request.check.words) if request.check is not None else ""
        plan = planned(request, stage, whole, complete=True, interrupted=self._interrupted)
        return dataclasses.replace(
            plan,
            builds=self._command.made,
            checks=self._command.made,
            known=self._command.asked - self._command.made,
            confirmed=frozenset(kept) in self._command.passed,
            error=ErrorFacts(f"check: {words}", None, None, None, None, None),
            nodes=tuple(dataclasses.replace(node, without=self._seen()) for node in nodes),
            casts=casts_in(made) - casts_in(stage.model),
            settings=shape.settings(whole),
            files=written(request, made),
            emulated=self._emulated,
            seconds=round(time.perf_counter() - self._started, 2),
            inputs=self._source.question.inputs_word,
        )

    def _seen(self) -> str:
        return "fails" if self._request.mode is PrecisionMode.AUTO and not self._interrupted else ""
