"""Searches the nodes to keep with a command as judge, which finds typed models, or ones with Q/DQ pairs, in a file."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import cast

from tensortriage.errors import EngineError, UsageError
from tensortriage.model.model import Model
from tensortriage.precision.goal import ErrorGoal
from tensortriage.precision.low_precision_work import low_share
from tensortriage.precision.plan import ErrorFacts, PrecisionPlan
from tensortriage.precision.search.number_formats import CommandCandidates
from tensortriage.precision.search.outcome import minimality, mode_words, prefixes, written
from tensortriage.precision.search.request import (
    PrecisionListener,
    PrecisionMode,
    PrecisionRequest,
)
from tensortriage.precision.search.shared_parts import casts_in, in_order, keepings, untried
from tensortriage.precision.selection.engine_confirmation import NotPrecisionError
from tensortriage.precision.selection.influence import Influences
from tensortriage.precision.selection.node_choice import NodeSearch, answer, smallest
from tensortriage.runs.case import Case, command_line
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.check import Checker, CheckSpec, verdict_word
from tensortriage.runs.commands.command_fingerprint import CheckIdentity
from tensortriage.runs.commands.process import RunsCommands
from tensortriage.runs.commands.replay import Entry, Replay, load_replay
from tensortriage.runs.commands.stages import Stages
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.search.answers.speculation import Speculation
from tensortriage.search.problem import OracleVerdict
from tensortriage.values.dtype import Precision

NOT_FOUND = ("exit code 127", "exit code 126")
"""How a shell ends that cannot start what it was told to."""
LOOK_AHEAD = 4
"""Guesses per worker that are looked at; some are of candidates that are known."""


@dataclasses.dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What the command said of a candidate."""

    passed: bool
    reason: str


class Command:
    """Shows candidates to the command, each once.

    Args:
        request: What is searched.
        check: The command.
        model: The original, which answers belong to.
        case: Where answers are kept.
        listener: Who hears of them.
        made: Identity of what candidates are made of besides the model.
        where: Where the command runs; processes of this machine by default.
        jobs: Candidates at once.
    """

    def __init__(
        self,
        request: PrecisionRequest,
        check: CheckSpec,
        model: Model,
        case: Case,
        listener: PrecisionListener,
        *,
        made: str = "",
        where: RunsCommands | None = None,
        jobs: int = 1,
    ) -> None:
        low = "" if request.low is None else request.low.value
        self.asked = self.made = 0
        self.passed: list[frozenset[str]] = []
        self._bound_to = digest(model.fingerprint, check.identity(), low, *([made] if made else []))
        self._identity = CheckIdentity(self._bound_to, check.words, case.checks, written=[request.artifact])
        self._listener = listener
        self.jobs = jobs
        self._checker = Checker(check, tell=listener.tell, where=where)
        private = [*check.artifacts.paths, case.folder, *([check.iteration_info] if check.iteration_info else [])]
        self._stages = Stages(
            request.artifact, jobs=jobs, private=private, scratch=case.temporary, keep=request.keep_artifact
        )
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="check")
        self._begun: dict[str, concurrent.futures.Future[CommandAnswer]] = {}
        self._cache = case.checks
        self._replay = None if request.save_replay is None else Replay(request.save_replay, self._bound_to)
        entries = () if request.load_replay is None else load_replay(request.load_replay, self._bound_to)
        self._loaded = {entry.candidate: CommandAnswer(entry.success, "from the replay") for entry in entries}

    def passes(self, made: Model, whole: Sequence[str], kept: Collection[str]) -> bool:
        """Return whether the command accepts a candidate; what it cannot tell counts as a failure.

        Args:
            made: The candidate.
            whole: Its nodes in the higher precision, which identify it.
            kept: Those of them that were chosen.
        """
        count = len(kept)
        candidate, key = digest(self._bound_to, sorted(whole)), self._key(whole)
        entry = Entry(self.asked, "", candidate, 0, count, False, "other")
        known = self._loaded.get(candidate) or self._cache.get(key, CommandAnswer)
        self.asked += 1
        word = "known"
        if known is None:
            if self._replay is not None:
                self._replay.about_to_check(entry)
            started = time.perf_counter()
            known = self._begun.pop(candidate).result() if candidate in self._begun else self._ask(made)
            seconds = time.perf_counter() - started
            self._identity.settle()
            self._cache.put(self._key(whole), f"the check, {count} nodes kept", known, seconds=seconds)
            self.made += 1
            word = f"check {self.made}"
        if known.passed:
            self.passed.append(frozenset(kept))
        self._listener.tell(f"{word}: {count} nodes kept: {'passes' if known.passed else 'fails'} ({known.reason})")
        if self._replay is not None:
            word = "pass" if known.passed else "same"
            self._replay.add(dataclasses.replace(entry, success=known.passed, outcome=word))
        return known.passed

    def recall(self, whole: Sequence[str], kept: Collection[str]) -> None:
        """Count a candidate among those that passed if the case has it so; the command is not run."""
        known = self._cache.get(self._key(whole), CommandAnswer)
        if known is not None and known.passed:
            self.passed.append(frozenset(kept))

    def begin(self, made: Callable[[], Model], whole: Sequence[str]) -> None:
        """Show a candidate to the command ahead of time, if its answer is not known and a worker is idle."""
        candidate, key = digest(self._bound_to, sorted(whole)), self._key(whole)
        running = sum(not answer.done() for answer in self._begun.values())
        known = candidate in self._begun or candidate in self._loaded or self._cache.get(key, CommandAnswer) is not None
        if running < self.jobs and not known:
            self._begun[candidate] = self._pool.submit(self._ask, made())

    def _key(self, whole: Sequence[str]) -> str:
        return digest(self._identity.digest, sorted(whole))

    def _ask(self, made: Model) -> CommandAnswer:
        iteration = self._checker.next_iteration()
        with self._stages.show(made) as stage:
            ruling = self._checker.check(iteration, folder=stage.folder)
            if ruling.signature in NOT_FOUND:
                raise UsageError(
                    f"the check cannot be started: {ruling.reason}",
                    slug="check-program-missing",
                    cure="name a program on the PATH, or give its path",
                )
            self._checker.sort(verdict_word(ruling.failed), iteration, folder=stage.folder)
        return CommandAnswer(ruling.failed is False, ruling.reason)

    def close(self) -> None:
        """Kill what is running, and remove temporary files."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._checker.close()
        self._pool.shutdown(wait=True)
        self._stages.close()


class CommandSearch:
    """One search.

    Args:
        request: What is searched.
        source: The model and its golden values.
        case: Where answers are kept.
        listener: Who hears of it.
        candidates: What the command is shown.
        command: The command.
        earlier: Nodes that an earlier search in the case ended with.
    """

    def __init__(
        self,
        request: PrecisionRequest,
        source: GoldenValues,
        case: Case,
        listener: PrecisionListener,
        candidates: CommandCandidates,
        command: Command,
        *,
        earlier: Collection[str] = (),
    ) -> None:
        self._request = request
        self._source = source
        self._case = case
        self._listener = listener
        self._candidates = candidates
        self._stage = candidates.stage
        self._command = command
        self._started = time.perf_counter()
        self._emulated = 0
        self._interrupted = False
        self._settled: list[str] | None = None
        self._earlier = frozenset(earlier)

    def plan(self) -> PrecisionPlan:
        """Search, and put together what came of it.

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
                self._command.recall(self._candidates.whole(self._earlier), self._earlier)
            best = min(self._command.passed, key=len, default=frozenset(self._stage.items))
            kept = [*in_order(self._stage.model, best)] if self._settled is None else self._settled
            return self._finished(kept, None)

    def _search(self) -> tuple[list[str], Influences | None]:
        found: Influences | None = None
        kept: list[str] = []
        if not self._enough(()):
            if not self._enough(self._stage.items):
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

    def _enough(self, kept: Collection[str]) -> bool:
        made = self._candidates
        return self._command.passes(made.model(kept), made.whole(kept), kept)

    def _influences(self) -> Influences | None:
        """Return what each node does in emulation, on whatever data there are; None when that cannot be run."""
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
        """Search; idle workers are asked meanwhile what the search may ask next, which changes no answer."""
        known: dict[frozenset[str], OracleVerdict] = {}
        ahead = Speculation(find, known.get)
        history: list[tuple[OracleVerdict]] = []
        search = find()
        try:
            ask = next(search)
            while True:
                (kept,) = ask.candidates
                if self._command.jobs > 1:
                    self._begin([kept, *itertools.islice(ahead.after(history, ask), LOOK_AHEAD * self._command.jobs)])
                known[kept] = answer(self._enough(kept))
                history.append((known[kept],))
                ask = search.send(history[-1])
        except StopIteration as end:
            return cast(list[str], end.value)

    def _begin(self, wanted: Iterable[frozenset[str]]) -> None:
        made = self._candidates
        for kept in itertools.islice(dict.fromkeys(wanted), self._command.jobs):
            self._command.begin(functools.partial(made.model, kept), made.whole(kept))

    def _finished(self, kept: list[str], found: Influences | None) -> PrecisionPlan:
        request, stage, shape = self._request, self._stage, self._candidates
        whole, made = shape.whole(kept), shape.model(kept)
        if self._interrupted and len(kept) == len(stage.items):
            nodes = untried(stage.model.graph, kept)
        else:
            feed = self._source.question.feeds[0]
            nodes = keepings(stage, kept, found, self._source.of(feed), feed, limited=False, scaled=shape.scaled)
        words = " ".join(request.check.words) if request.check is not None else ""
        return PrecisionPlan(
            kept=whole,
            builds=self._command.made,
            checks=self._command.made,
            known=self._command.asked - self._command.made,
            confirmed=frozenset(kept) in self._command.passed,
            error=ErrorFacts(f"check: {words}", None, None, None, None, None),
            precision=stage.precision.value,
            higher=Precision.FP32.value,
            asked="check",
            mode=mode_words(request),
            minimality=minimality(request.mode, complete=True, interrupted=self._interrupted),
            nodes=tuple(dataclasses.replace(node, without=self._seen()) for node in nodes),
            candidates=len(stage.items),
            fixed=stage.fixed,
            low_share=low_share(stage.model.graph, stage.specs, {*whole, *stage.fixed}),
            casts=casts_in(made) - casts_in(stage.model),
            settings=shape.settings(whole),
            files=written(request, made),
            emulated=self._emulated,
            interrupted=self._interrupted,
            seconds=round(time.perf_counter() - self._started, 2),
            model=str(request.model),
            sha256=stage.model.fingerprint,
            inputs=self._source.question.inputs_word,
            command=command_line(),
        )

    def _seen(self) -> str:
        return "fails" if self._request.mode is PrecisionMode.AUTO and not self._interrupted else ""
