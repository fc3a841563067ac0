"""From an oracle to the smallest piece: the search looks for the failure of the whole."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tensortriage.errors import UsageError
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.request import Ends
from tensortriage.search.answers.answer_cache import AnswerCache, Cache
from tensortriage.search.dialogue import Pass
from tensortriage.search.driver import TO_ITEMS, minimize
from tensortriage.search.execution.executors import Executor, OracleQuestion
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.search_result import Progress, SearchBudget, SearchResult
from tensortriage.search.statistics.repeats import Repeats

MOST_STRANGERS = 3


class PieceOracle(Protocol):
    """Judges candidates; distinguishes the failure of the whole from others once it has been seen."""

    def __call__(self, candidate: tuple[str, ...], attempt: int, /) -> OracleVerdict:
        """Check a candidate; see `tensortriage.search.problem.Oracle`."""
        ...

    def expect(self, runs: Sequence[OracleVerdict]) -> None:
        """Search for the failure of the whole in these runs."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of the search for the smallest piece.

    Attributes:
        pieces: The model and its items.
        oracle: Tests a piece.
        identity: Returns the digest of all that answers depend on besides the piece, as far as that is known.
        cache: The store of answers.
        repeats: Number of runs per candidate.
        budget: Its limits.
        passes: Passes to run.
        observe: Receives every answer of the search.
    """

    pieces: Pieces
    oracle: PieceOracle
    identity: Callable[[], str]
    cache: Cache
    repeats: Repeats = dataclasses.field(default_factory=Repeats)
    budget: SearchBudget = dataclasses.field(default_factory=SearchBudget)
    passes: Sequence[Pass[str]] = TO_ITEMS
    observe: Callable[[Progress[str]], None] | None = None

    def key(self, candidate: tuple[str, ...]) -> str:
        """Return the content key of a candidate; candidates of the same piece share it."""
        return candidate_key(self.identity(), self.pieces, candidate)

    def run(
        self, suspicion: Callable[[], Mapping[str, float]] = dict, executor: Executor[str] | None = None
    ) -> SearchResult[str]:
        """Confirm that the whole fails, pass that failure to the oracle, and search.

        Args:
            suspicion: Measures the evidence against each node, by name, once the failure of the whole is known.
            executor: Runs checks; None for this thread.

        Raises:
            UsageError: When it does not fail (``premise-not-failing``) or that is unclear (``premise-unresolved``).
            KeyboardInterrupt: When that came before; answers so far are kept, and no search must begin on less.
        """
        begun: list[bool] = []

        def premised(runs: Sequence[OracleVerdict]) -> Mapping[str, float]:
            begun.append(True)
            self.oracle.expect(runs)
            by_item: dict[str, float] = {}
            for node, amount in suspicion().items():
                item = self.pieces.item_of(node)
                if item is not None:
                    by_item[item] = max(amount, by_item.get(item, 0.0))
            return by_item

        problem = SearchProblem(
            self.pieces.items,
            self.oracle,
            self.key,
            weights=self.pieces.weights,
            neighbours=self.pieces.neighbours,
            premised=premised,
        )
        result = minimize(
            problem,
            answers=AnswerCache.of(problem, self.cache, executor),
            budget=self.budget,
            repeats=self.repeats,
            passes=self.passes,
            observe=self.observe,
        )
        if not begun:
            raise KeyboardInterrupt
        return result

    def ask(self, candidate: tuple[str, ...]) -> OracleVerdict:
        """Ask about one candidate outside the search, or return the answer that is there."""
        problem = SearchProblem(self.pieces.items, self.oracle, self.key)
        answer = AnswerCache.of(problem, self.cache).answer(OracleQuestion(candidate, 0), iter(()))
        assert answer.verdict is not None  # what the oracle raises in this thread comes through
        return answer.verdict

    def refuse_constant_answers(self, result: SearchResult[str]) -> None:
        """See that the check can pass at all, when it has never done so.

        A single node of another operator than those found cannot hold the same fault; a few of them are tested.

        Raises:
            UsageError: When they all fail too (``check-always-fails``).
        """
        if any(step.outcome is not CandidateOutcome.SAME for step in result.history):
            return
        graph = self.pieces.model.graph
        types = {item: graph.node(item).op_type for item in self.pieces.items}
        found = {types[item] for item in result.kept}
        strangers = {kind: item for item, kind in types.items() if kind not in found}
        verdict: OracleVerdict | None = None
        for item in list(strangers.values())[:MOST_STRANGERS]:
            verdict = self.ask((item,))
            if not verdict.same:
                return
        if verdict is not None:
            raise UsageError(
                f"the check fails on every piece, even on single nodes that have nothing in common ({verdict.detail})",
                slug="check-always-fails",
                cure="run the check by hand on a correct model, and make it pass there",
            )


def candidate_key(identity: str, pieces: Pieces, candidate: tuple[str, ...]) -> str:
    """Return the content key of a candidate, given in the order of the items."""
    nodes = candidate if pieces.ends is Ends.BOTH else pieces.nodes(candidate)
    names = "\0".join(nodes)
    if names.count("\0") != len(nodes) - 1:  # a name holds one itself
        names = json.dumps(nodes)
    return hashlib.sha256(f"{identity}\0{names}".encode(errors="surrogatepass")).hexdigest()[:32]
