"""A command, or a person, as oracle of a search: each candidate is shown as a model in a file.

Nothing is known of the failure but how the judge expresses it, so that is its signature: the exit code, or that a
pattern was found. A candidate that ends the check in another way than the whole did fails in another way.
"""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tensortriage.errors import DataError, ModelError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.commands.check import Checker, CheckSpec, verdict_word
from tensortriage.runs.commands.command_fingerprint import CheckIdentity
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.phases import WHOLE, Phases
from tensortriage.runs.commands.process import RunsCommands
from tensortriage.runs.commands.replay import Entry, Replay, load_replay
from tensortriage.runs.commands.stages import Stages
from tensortriage.runs.commands.threads import Threads
from tensortriage.search.execution.executors import Executor
from tensortriage.search.problem import CandidateOutcome, OracleVerdict

_logger = logging.getLogger(__name__)
NOT_FOUND = ("exit code 127", "exit code 126")
"""Exit codes of a shell that cannot start the command."""
FROM_REPLAY = "from the replay"
"""Reason of a verdict from a loaded replay."""


@frozen_dataclass
class ShownModel:
    """A candidate for display.

    Attributes:
        key: Its content key.
        nodes: Its number of nodes.
        model: Makes it.
    """

    key: str
    nodes: int
    model: Callable[[], Model]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShownTo:
    """The judge of candidates, and the way to show them.

    Attributes:
        check: The command; for a person the question in words.
        artifact: The file that holds the candidate.
        keep_artifact: Do not remove the last one.
        person: Decides whether the model in a file, of so many nodes, fails; None where a command does.
        jobs: Checks at once.
        where: Runs the command; as processes of this machine by default.
        phases: The subject of the search, and the numbers of its checks.
        save_replay: File to which verdicts are written at once.
        load_replay: Verdicts of an earlier run.
        tell: Shows text to the user.
    """

    check: CheckSpec
    artifact: Path
    keep_artifact: bool
    person: Callable[[Path, int], bool | None] | None = None
    jobs: int = 1
    where: RunsCommands | None = None
    phases: Phases = dataclasses.field(default_factory=Phases)
    save_replay: Path | None = None
    load_replay: Path | None = None
    tell: Callable[[str], None]


class CommandOracle:
    """Answers by showing candidates to a judge; from several threads at once when there are several jobs.

    Args:
        to: The judge.
        shown: Returns how a candidate is shown.
        case: Remembers which files the command reads.
        bound_to: Digest of all that answers depend on besides the candidate and those files.

    Attributes:
        cache: The search's cache of answers.
        expected: How the whole failed; None while that is being found out.
    """

    def __init__(self, to: ShownTo, shown: Callable[[tuple[str, ...]], ShownModel], case: Case, bound_to: str) -> None:
        self._to = to
        self._shown = shown
        self._checker = Checker(to.check, tell=to.tell, where=to.where)
        info = [to.check.iteration_info] if to.check.iteration_info is not None else []
        self._stages = Stages(
            to.artifact,
            jobs=to.jobs,
            private=[*to.check.artifacts.paths, case.folder, *info],
            scratch=case.temporary,
            keep=to.keep_artifact,
        )
        loaded: tuple[Entry, ...] = ()
        if to.load_replay is not None:
            _logger.info("Loading iteration information from debug replay: %s", to.load_replay)
            loaded = load_replay(to.load_replay, bound_to, unbound=to.phases.apart)
        self._known = {(entry.candidate, entry.attempt): _verdict(entry) for entry in loaded if not entry.is_foreign}
        self._foreign = {(entry.phase, entry.iteration): entry for entry in loaded if entry.is_foreign}
        self._replay = None if to.save_replay is None else Replay(to.save_replay, bound_to)
        self._reads = CheckIdentity(bound_to, to.check.words, case.checks, written=[to.artifact])
        self.cache = case.checks
        self._lock = threading.Lock()
        self._abandoned = threading.Event()
        self.expected: str | None = None

    @property
    def identity(self) -> str:
        """Digest of all that answers depend on besides the candidate; settled once the command has run."""
        return self._reads.digest

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor[str] | None]:
        """Yield threads for several checks at once."""
        if self._to.jobs == 1:
            yield None
            return
        threads = Threads(self, jobs=self._to.jobs)
        try:
            yield threads
        finally:
            self._abandoned.set()  # what ends from now on was killed: it is neither sorted nor in the replay
            try:
                self._checker.kill_running()  # checks begun ahead, for answers that are no longer wanted
                threads.close()
            finally:
                self._abandoned.clear()

    def __call__(self, candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        """Check a candidate."""
        shown, iteration = self._shown(candidate), self._to.phases.next_check()
        failed = CandidateOutcome.SAME.value
        entry = Entry(iteration, self._to.phases.name, shown.key, attempt, shown.nodes, False, failed, "skipped")
        verdict = self._known.get((shown.key, attempt)) or self._from_there(entry)
        if verdict is None:
            if self._replay is not None:
                with self._lock:
                    self._replay.about_to_check(entry)
            try:
                with self._lock:
                    model = shown.model()
            except ModelError as error:
                return OracleVerdict(CandidateOutcome.UNRESOLVED, detail=error.message)
            verdict = self.judge(model, shown.nodes, iteration)
            with self._lock:
                self._reads.settle()
        self._record(entry, verdict)
        return verdict

    def judge(self, model: Model, nodes: int, iteration: int | None = None) -> OracleVerdict:
        """Show a model to the judge and return the answer.

        Raises:
            UsageError: When the check cannot be started.
        """
        if iteration is None:
            iteration = self._to.phases.next_check()
        with self._stages.show(model) as stage:
            if self._to.person is not None:
                ruling = self._persons(self._to.person, stage.artifact, nodes)
            else:
                ruling = self._checker.check(iteration, label=self._to.phases.label, folder=stage.folder)
            if self.expected is None and ruling.signature in NOT_FOUND:
                raise UsageError(
                    f"the check cannot be started: {ruling.reason}",
                    slug="check-program-missing",
                    cure="name a program on the PATH, or give its path",
                )
            verdict = self._verdict(ruling)
            if self._abandoned.is_set():
                return OracleVerdict(CandidateOutcome.UNRESOLVED, detail="no longer needed")
            if self._to.phases.sorts:
                word = verdict_word(ruling.failed, same=verdict.same)
                self._checker.sort(word, iteration, label=self._to.phases.label, folder=stage.folder)
        return verdict

    def expect(self, runs: Sequence[OracleVerdict]) -> None:
        """Take the way in which the whole model ended its check as the failure that is searched for."""
        self.expected = next(verdict.signature for verdict in runs if verdict.same)

    def known(self, candidate: tuple[str, ...], verdict: OracleVerdict) -> None:
        """Write a candidate's known answer into the replay."""
        shown, phases = self._shown(candidate), self._to.phases
        self._record(Entry(phases.next_check(), phases.name, shown.key, 0, shown.nodes, False, ""), verdict)

    def close(self) -> None:
        """Kill running commands, and remove temporary files."""
        self._checker.close()
        self._stages.close()

    def _persons(self, judge: Callable[[Path, int], bool | None], artifact: Path, nodes: int) -> Ruling:
        if self._to.phases.apart and self._to.phases.name == WHOLE:  # there, whoever begins has seen it fail
            return Ruling(True, "failed", "assumed")
        failed = judge(artifact, nodes)
        if failed is None:
            return Ruling(None, "skipped", "you skipped it")
        return Ruling(failed, "failed" if failed else "", "")

    def _from_there(self, asked: Entry) -> OracleVerdict | None:
        """Return the answer of a replay of Polygraphy to this check.

        Raises:
            DataError: When it was about a piece of another size (``replay-foreign``).
        """
        entry = self._foreign.get((asked.phase, asked.iteration))
        if entry is None:
            return None
        if entry.nodes not in (None, asked.nodes):
            raise DataError(
                f"check {asked.iteration} of {asked.phase} in the replay was about {entry.nodes} nodes, not "
                f"{asked.nodes}",
                slug="replay-foreign",
                cure="load it with the model, the mode and the options that it was made with",
            )
        verdict = _verdict(entry)
        return verdict if verdict.outcome is CandidateOutcome.PASS else dataclasses.replace(
            verdict, signature=self.expected or ""
        )  # fmt: skip

    def _verdict(self, ruling: Ruling) -> OracleVerdict:
        if ruling.failed is None:
            outcome = CandidateOutcome.UNRESOLVED
        elif ruling.failed and self.expected in (None, ruling.signature):
            outcome = CandidateOutcome.SAME
        elif ruling.failed or ruling.signature:
            outcome = CandidateOutcome.OTHER
        else:
            outcome = CandidateOutcome.PASS
        return OracleVerdict(outcome, "" if outcome is CandidateOutcome.PASS else ruling.signature, ruling.reason)

    def _record(self, entry: Entry, verdict: OracleVerdict) -> None:
        if self._replay is not None and not self._abandoned.is_set():
            good, word = verdict.outcome is CandidateOutcome.PASS, verdict.outcome.value
            with self._lock:
                self._replay.add(dataclasses.replace(entry, success=good, outcome=word, signature=verdict.signature))


def _verdict(entry: Entry) -> OracleVerdict:
    return OracleVerdict(CandidateOutcome(entry.outcome), entry.signature, FROM_REPLAY)
