"""Lets a command or a person judge whether a piece fails, by writing it to the file in which they look for it.

Nothing is known of the failure but how the judge expresses it, so that is its signature: the exit code, or that a
pattern was found. A piece that ends the check in another way than the whole did fails in another way.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping

from tensortriage.errors import DataError, ModelError, UsageError
from tensortriage.model.model import Model
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_modes import Phases
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.check import verdict_word
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.replay import Entry, Replay
from tensortriage.runs.commands.stages import CheckPlace, Stages
from tensortriage.search.problem import CandidateOutcome, OracleVerdict
from tensortriage.search.search_result import SearchResult

NOT_FOUND = ("exit code 127", "exit code 126")
"""How a shell ends that cannot start what it was told to."""

Known = Mapping[tuple[str, int], OracleVerdict]
"""Verdicts by content key of the candidate and attempt."""
Foreign = Mapping[tuple[str, int], tuple[int | None, OracleVerdict]]
"""Verdicts of Polygraphy's replays, with the number of nodes, by phase and number of the check."""


class StagedOracle:
    """Answers by showing pieces to a judge; from several threads at once when there are several stages.

    Args:
        pieces: Cuts candidates.
        stages: Where they are shown.
        judge: Says what it makes of a piece: stage, number of the iteration, number of nodes.
        sort: Sorts what a check left: word of the verdict, iteration, stage.
        phases: What the search is about, and the numbers of its checks.
        replay: Where verdicts are written; None for nowhere.
        known: Verdicts of a loaded replay.
        foreign: Verdicts of one that Polygraphy wrote.
    """

    def __init__(
        self,
        pieces: Pieces,
        stages: Stages,
        *,
        judge: Callable[[CheckPlace, int, int], Ruling],
        sort: Callable[[str, int, CheckPlace], None],
        phases: Phases,
        replay: Replay | None = None,
        known: Known | None = None,
        foreign: Foreign | None = None,
    ) -> None:
        self._pieces = pieces
        self._stages = stages
        self._judge = judge
        self._sort = sort
        self._phases = phases
        self._replay = replay
        self._known = known or {}
        self._foreign = foreign or {}
        self._lock = threading.Lock()
        self._abandoned = threading.Event()
        self.expected: str | None = None

    @contextlib.contextmanager
    def abandoning(self) -> Iterator[None]:
        """Take what ends meanwhile for killed: it is neither sorted nor written to the replay."""
        self._abandoned.set()
        try:
            yield
        finally:
            self._abandoned.clear()

    def __call__(self, candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        """Check a candidate."""
        nodes = self._pieces.nodes(candidate)
        key = digest(nodes)
        iteration = self._phases.next_check()
        verdict = self._known.get((key, attempt)) or self._from_there(iteration, len(nodes))
        if verdict is None:
            self._announce(
                Entry(
                    iteration,
                    self._phases.name,
                    key,
                    attempt,
                    len(nodes),
                    False,
                    CandidateOutcome.SAME.value,
                    "skipped",
                )
            )
            try:
                with self._lock:
                    piece = self._pieces.cut(nodes)
            except ModelError as error:
                return OracleVerdict(CandidateOutcome.UNRESOLVED, detail=error.message)
            verdict = self.judge(piece, len(nodes), iteration)
        self._record(iteration, key, attempt, len(nodes), verdict)
        return verdict

    def judge(self, piece: Model, nodes: int, iteration: int | None = None) -> OracleVerdict:
        """Show a model to the judge and return what it says.

        Raises:
            UsageError: When the check cannot be started.
        """
        if iteration is None:
            iteration = self._phases.next_check()
        with self._stages.show(piece) as stage:
            ruling = self._judge(stage, iteration, nodes)
            if self.expected is None and ruling.signature in NOT_FOUND:
                raise UsageError(
                    f"the check cannot be started: {ruling.reason}",
                    slug="check-program-missing",
                    cure="name a program on the PATH, or give its path",
                )
            verdict = self._verdict(ruling)
            if self._abandoned.is_set():
                return OracleVerdict(CandidateOutcome.UNRESOLVED, detail="no longer needed")
            if self._phases.sorts:
                self._sort(verdict_word(ruling.failed, same=verdict.same), iteration, stage)
        return verdict

    def _from_there(self, iteration: int, nodes: int) -> OracleVerdict | None:
        """Return what a replay of Polygraphy says of this check.

        Raises:
            DataError: When it was about a piece of another size (``replay-foreign``).
        """
        found = self._foreign.get((self._phases.name, iteration))
        if found is None:
            return None
        size, verdict = found
        if size not in (None, nodes):
            raise DataError(
                f"check {iteration} of {self._phases.name} in the replay was about {size} nodes, not {nodes}",
                slug="replay-foreign",
                cure="load it with the model, the mode and the options that it was made with",
            )
        return verdict if verdict.outcome is CandidateOutcome.PASS else dataclasses.replace(
            verdict, signature=self.expected or ""
        )  # fmt: skip

    def expect(self, premise: SearchResult[str]) -> None:
        """Take the way in which the whole ended its check as the one that is searched for."""
        self.expected = premise.verdict.signature

    def _verdict(self, ruling: Ruling) -> OracleVerdict:
        if ruling.failed is None:
            return OracleVerdict(CandidateOutcome.UNRESOLVED, ruling.signature, ruling.reason)
        if ruling.failed and self.expected in (None, ruling.signature):
            return OracleVerdict(CandidateOutcome.SAME, ruling.signature, ruling.reason)
        if ruling.failed or ruling.signature:
            return OracleVerdict(CandidateOutcome.OTHER, ruling.signature, ruling.reason)
        return OracleVerdict(CandidateOutcome.PASS, "", ruling.reason)

    def _announce(self, entry: Entry) -> None:
        if self._replay is not None:
            with self._lock:
                self._replay.about_to_check(entry)

    def _record(self, iteration: int, key: str, attempt: int, nodes: int, verdict: OracleVerdict) -> None:
        if self._replay is not None and not self._abandoned.is_set():
            good = verdict.outcome is CandidateOutcome.PASS
            word = verdict.outcome.value
            with self._lock:
                self._replay.add(
                    Entry(iteration, self._phases.name, key, attempt, nodes, good, word, verdict.signature)
                )
