"""Reduces a model with a command or a person as judge, who finds each piece in a file."""

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import numpy as np

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import needed_for
from tensortriage.reduce.commands.revisable_answers import Revisable
from tensortriage.reduce.commands.staged_oracle import StagedOracle
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.pieces.node_bodies import Opening, inner_feeds
from tensortriage.reduce.pieces.piece_search import answer_key
from tensortriage.reduce.pieces.piece_shapes import piece_specs, with_seen_shapes
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_modes import RESULT, WHOLE, Phases
from tensortriage.reduce.pieces.polygraphy_pieces import PolygraphyPieces
from tensortriage.reduce.reduction_result import Effort, ReductionFinish, Shrunk
from tensortriage.reduce.request import Ends, Person, ShapeSource
from tensortriage.reduce.simplify.steps import OF_THE_MODEL, shrink
from tensortriage.reduce.simplify.trials import Trials
from tensortriage.reduce.thread_executor import Threads
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.check import Checker, CheckSpec
from tensortriage.runs.commands.command_fingerprint import CheckIdentity
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.replay import Entry, Replay, load_replay
from tensortriage.runs.commands.stages import CheckPlace, Stages
from tensortriage.runs.elsewhere import OpenedCluster
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.lab import Lab
from tensortriage.search.answers.answer_cache import Cache
from tensortriage.search.execution.executors import Executor
from tensortriage.search.problem import CandidateOutcome, OracleVerdict
from tensortriage.search.search_result import SearchResult
from tensortriage.search.statistics.repeats import Rate, Repeats, attempts_for, attempts_to_verify
from tensortriage.values.spec import ValueSpec

_logger = logging.getLogger(__name__)
BATCH_BYTES = 256 << 20
"""Most tensors that are held at once while shapes are looked at."""
MOST_OUTPUTS = 8
"""Outputs of a result that are tried alone."""


class UndoError(Exception):
    """The last answer is to be asked again."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StagedRequest:
    """What to ask about, and whom.

    Attributes:
        model: The model.
        samples: Give inputs to run it on, should shapes or cut branches need that.
        judge: The command, or the person.
        ends: Which ends of the model may be cut off.
        shape_source: How shapes become known.
        artifact: The file that holds the piece.
        keep_artifact: Do not remove the last one.
        jobs: Checks at once.
        phases: What the search is about, and the numbers of its checks.
        save_replay: Where verdicts are written as they come.
        load_replay: Verdicts of an earlier run.
        tell: Shows text to the user.
        repeats: How often things are asked.
        shrink_seconds: Time for making sizes and weights smaller after the nodes; a person is not asked about that.
        cluster: Where commands run, if not on this machine.
    """

    model: Model
    samples: Callable[[], Iterator[Feed]]
    judge: CheckSpec | Person
    ends: Ends
    shape_source: ShapeSource
    artifact: Path
    keep_artifact: bool
    jobs: int
    phases: Phases
    save_replay: Path | None
    load_replay: Path | None
    tell: Callable[[str], None]
    repeats: Repeats
    shrink_seconds: float
    cluster: OpenedCluster | None = None


class StagedAsking:
    """Asks a command or a person; see `tensortriage.reduce.inside_subgraphs.Asking`.

    Args:
        request: What to ask about.
        case: Where everything is kept.
    """

    def __init__(self, request: StagedRequest, case: Case) -> None:
        self._request = request
        self._case = case
        model = request.model
        self._lab = Lab(case, batch_bytes=BATCH_BYTES)
        specs = piece_specs(model, request.shape_source, lambda: next(request.samples()), self._lab)
        self.pieces = self._make_pieces(specs)
        self.repeats = request.repeats
        self._spec = request.judge if isinstance(request.judge, CheckSpec) else CheckSpec(words=("a person",))
        self.word = "check" if isinstance(request.judge, CheckSpec) else "person"
        commands = request.cluster.commands() if request.cluster is not None else None
        self._checker = Checker(self._spec, tell=request.tell, where=commands)
        self._stages = self._make_stages()
        self._bound_to = digest(model.fingerprint, self._spec.identity(), request.ends.value)
        loaded: tuple[Entry, ...] = ()
        if request.load_replay is not None:
            _logger.info("Loading iteration information from debug replay: %s", request.load_replay)
            loaded = load_replay(request.load_replay, self._bound_to, unbound=request.phases.apart)
        self._replay = None if request.save_replay is None else Replay(request.save_replay, self._bound_to)
        self.oracle = StagedOracle(
            self.pieces,
            self._stages,
            judge=self._judge,
            sort=lambda word, iteration, stage: self._checker.sort(
                word, iteration, label=request.phases.label, folder=stage.folder
            ),
            phases=request.phases,
            replay=self._replay,
            known=_verdicts(loaded),
            foreign=_foreign(loaded),
        )
        self.cache: Cache = Revisable(case.checks) if self.word == "person" else case.checks
        self._reads: CheckIdentity | None = None
        if self.word == "check":
            self._reads = CheckIdentity(self._bound_to, self._spec.words, case.checks, written=[request.artifact])
        self.identity = self._bound_to if self._reads is None else self._reads.digest

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor[str] | None]:
        """Give threads for several checks at once."""
        if self._request.jobs == 1:
            yield None
            return
        threads = Threads(self.oracle, jobs=self._request.jobs)
        try:
            yield threads
        finally:
            with self.oracle.abandoning():
                self._checker.kill_running()  # checks begun ahead, for answers that are no longer wanted
                threads.close()

    def suspicion(self) -> Mapping[str, float]:
        """Return nothing: a black box gives no hints."""
        return {}

    def failure(self) -> Failure | None:
        """Return None: what fails is for the judge to know."""
        return None

    def finish(self, nodes: tuple[str, ...], result: Path | None, rate: Rate, effort: Effort) -> ReductionFinish:
        """Drop outputs that are not needed, write the result, and ask about it once more; a person is not asked."""
        self._request.phases.begin(RESULT)
        attempts = attempts_for(rate, self.repeats)
        piece, shrunk = self.pieces.cut(nodes), tuple[Shrunk, ...]()
        if result is not None:
            piece.save(result)  # Ctrl-C may come any time
        asks = self.word == "check" and effort is Effort.FULL
        if asks:
            piece, shrunk = self._with_fewer_outputs(piece, len(nodes), attempts)
            piece, more = self._smaller(piece, len(nodes), attempts)
            shrunk += more
            if result is not None:
                piece.save(result)
        verified = self._fails(piece, len(nodes), attempts_to_verify(rate, self.repeats)) if asks else None
        return ReductionFinish(verified=verified, shrunk=shrunk)

    def taken(self, condition: str) -> bool | None:
        """Return what a condition is if it is a constant."""
        graph = self.pieces.model.graph
        return bool(graph.weight(condition).reshape(-1)[0]) if condition in graph.constants else None

    def inside(self, opening: Opening, repeats: Repeats) -> Self:
        """Return the same way of asking about an opened piece, which must end its check as the whole did."""
        request = dataclasses.replace(
            self._request,
            model=with_seen_shapes(opening.model, itertools.islice(self._inner_samples(opening), 2), self._lab),
            samples=lambda: self._inner_samples(opening),
            repeats=repeats,
            save_replay=None,
            load_replay=None,
        )
        inner = type(self)(request, self._case)
        inner.oracle.expected = self.oracle.expected
        return inner

    def _inner_samples(self, opening: Opening) -> Iterator[Feed]:
        """Yield what an opened piece is fed where ONNX Runtime runs the model on a sample: shapes become known so."""
        model, sample = self._request.model, next(self._request.samples())
        graph = model.graph
        around = {spec.name for spec in opening.model.inputs} if opening.lifted is None else opening.needs
        computed = [name for name in around if name not in graph.constants and name not in sample.tensors]
        seen = self._lab.values(PLAIN, model, sample, computed)

        def recorded(name: str) -> np.ndarray:
            if name in graph.constants:
                return graph.weight(name)
            return sample.tensors[name] if name in sample.tensors else seen[name]

        with self._lab.session(PLAIN, opening.model, sequence=True) as run:
            for name, tensors in inner_feeds(opening, recorded, run):
                yield Feed(name, tensors, sample.origin)

    def undo(self) -> None:
        """Forget the last answer of a person."""
        if isinstance(self.cache, Revisable):
            self.cache.undo()

    def close(self) -> None:
        """Kill what is running, and remove temporary files."""
        self._checker.close()
        self._stages.close()
        self._lab.close()

    def _make_pieces(self, specs: Mapping[str, ValueSpec]) -> Pieces:
        request = self._request
        if not request.phases.apart:
            return Pieces(request.model, specs=specs, ends=request.ends)
        return PolygraphyPieces(request.model, specs=specs, samples=request.samples, lab=self._lab)

    def _make_stages(self) -> Stages:
        private = [*self._spec.artifacts.paths, self._case.folder]
        if self._spec.iteration_info is not None:
            private.append(self._spec.iteration_info)
        return Stages(
            self._request.artifact,
            jobs=self._request.jobs,
            private=private,
            scratch=self._case.temporary,
            keep=self._request.keep_artifact,
        )

    def _judge(self, stage: CheckPlace, iteration: int, nodes: int) -> Ruling:
        phases = self._request.phases
        if isinstance(self._request.judge, CheckSpec):
            return self._checker.check(iteration, label=phases.label, folder=stage.folder)
        if phases.apart and phases.name == WHOLE:  # there, whoever begins has seen it fail
            return Ruling(True, "failed", "taken for granted")
        failed = self._request.judge.judge(stage.artifact, nodes)
        if failed is None:
            return Ruling(None, "skipped", "you skipped it")
        return Ruling(failed, "failed" if failed else "", "")

    def settle(self, premise: SearchResult[str]) -> str:
        """Return the identity, now that it can be told which files in its words the command only reads."""
        if self._reads is None or self._reads.settled:
            return self.identity
        before, self.identity = self.identity, self._reads.settle()
        notes = self._case.checks
        for attempt in range(premise.checks):
            old, new = (answer_key(key, self.pieces, self.pieces.items, attempt) for key in (before, self.identity))
            verdict = notes.get(old, OracleVerdict)
            if verdict is not None:
                notes.put(new, "the whole", verdict, seconds=0.0)
        return self.identity

    def _with_fewer_outputs(self, piece: Model, nodes: int, attempts: int) -> tuple[Model, tuple[Shrunk, ...]]:
        names = [spec.name for spec in piece.outputs]
        if len(names) < 2:
            return piece, ()
        for name in names[:MOST_OUTPUTS]:
            smaller = needed_for(piece, [name])
            if len(smaller.graph.nodes) == len(piece.graph.nodes) and self._fails(smaller, nodes, attempts):
                return smaller, (Shrunk("outputs", True, f"{len(names)} -> 1 ('{name}')"),)
        return piece, (Shrunk("outputs", False, f"all {len(names)} are kept: it needs more than one"),)

    def _smaller(self, piece: Model, nodes: int, attempts: int) -> tuple[Model, tuple[Shrunk, ...]]:
        """Make sizes and weights smaller, as long as ONNX Runtime runs the piece on made-up data."""
        if self._request.shrink_seconds <= 0.0:
            return piece, ()
        trials = Trials(
            reference=PLAIN,
            lab=self._lab,
            seconds=self._request.shrink_seconds,
            attempts=attempts,
            fails=lambda repro: self.oracle.judge(repro.model, nodes).same,
        )
        try:
            whole = trials.record(piece, [next(feeds(FeedRequest(), piece)).tensors])
        except TriageError:
            whole = None
        if whole is None:
            return piece, (Shrunk("sizes", False, "kept: ONNX Runtime cannot run the piece on made-up data"),)
        repro, shrunk = shrink(whole, trials, say=lambda _: None, steps=OF_THE_MODEL)
        return repro.model, shrunk

    def _fails(self, piece: Model, nodes: int, attempts: int) -> bool:
        return any(self.oracle.judge(piece, nodes).same for _ in range(attempts))


def _verdicts(entries: tuple[Entry, ...]) -> dict[tuple[str, int], OracleVerdict]:
    return {(entry.candidate, entry.attempt): _verdict(entry) for entry in entries if not entry.is_foreign}


def _foreign(entries: tuple[Entry, ...]) -> dict[tuple[str, int], tuple[int | None, OracleVerdict]]:
    return {(entry.phase, entry.iteration): (entry.nodes, _verdict(entry)) for entry in entries if entry.is_foreign}


def _verdict(entry: Entry) -> OracleVerdict:
    return OracleVerdict(CandidateOutcome(entry.outcome), entry.signature, "from the replay")
