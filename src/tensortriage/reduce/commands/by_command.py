"""Reduces a model with a command or a person as judge; each piece is in a file."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import numpy as np

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import needed_for
from tensortriage.reduce.commands.revisable_answers import Revisable
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.pieces.node_bodies import Opening, inner_feeds
from tensortriage.reduce.pieces.piece_shapes import piece_specs, with_seen_shapes
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_pieces import PolygraphyPieces
from tensortriage.reduce.reduction_result import Effort, ReductionFinish, Shrunk
from tensortriage.reduce.request import Ends, ShapeSource
from tensortriage.reduce.simplify.steps import OF_THE_MODEL, shrink
from tensortriage.reduce.simplify.trials import Trials
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.command_oracle import CommandOracle, ShownModel, ShownTo
from tensortriage.runs.commands.phases import RESULT
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.lab import Lab
from tensortriage.search.answers.answer_cache import Cache
from tensortriage.search.statistics.repeats import Rate, Repeats, attempts_for, attempts_to_verify

BATCH_BYTES = 256 << 20
"""Most tensors that are held at once while shapes are looked at."""
MOST_OUTPUTS = 8
"""Outputs of a result that are tried alone."""


class UndoError(Exception):
    """The last answer must be given again."""


@frozen_dataclass(kw_only=True)
class StagedRequest:
    """A request to reduce a model by the answers of a command or a person.

    Attributes:
        samples: Samples to run it on, should shapes or cut branches need them.
        to: The command or person that judges the pieces.
        ends: Which ends of the model may be cut off.
        shape_source: How shapes become known.
        repeats: Number of runs per candidate.
        shrink_seconds: Time for making sizes and weights smaller after the nodes; not used with a person.
    """

    model: Model
    samples: Callable[[], Iterator[Feed]]
    to: ShownTo
    ends: Ends
    shape_source: ShapeSource
    repeats: Repeats
    shrink_seconds: float


class StagedAsking:
    """Asks a command or a person; see `tensortriage.reduce.inside_subgraphs.Asking`.

    Args:
        request: The user's request.
        case: The store of all results.
    """

    def __init__(self, request: StagedRequest, case: Case) -> None:
        self._request = request
        self._case = case
        model = request.model
        self._lab = Lab(case, batch_bytes=BATCH_BYTES)
        specs = piece_specs(model, request.shape_source, lambda: next(request.samples()), self._lab)
        self.pieces = (
            PolygraphyPieces(model, specs=specs, samples=request.samples, lab=self._lab)
            if request.to.phases.apart
            else Pieces(model, specs=specs, ends=request.ends)
        )
        self.repeats = request.repeats
        self.word = "check" if request.to.person is None else "person"
        bound_to = digest(model.fingerprint, request.to.check.identity(), request.ends.value)
        self.oracle = CommandOracle(request.to, self._shown, case, bound_to)
        self.executor = self.oracle.executor
        self.cache: Cache = Revisable(self.oracle.cache) if self.word == "person" else self.oracle.cache

    def _shown(self, candidate: tuple[str, ...]) -> ShownModel:
        nodes = self.pieces.nodes(candidate)
        return ShownModel(digest(nodes), len(nodes), lambda: self.pieces.cut(nodes))

    def identity(self) -> str:
        """Return the digest of all that answers depend on besides the piece."""
        return self.oracle.identity

    def suspicion(self) -> Mapping[str, float]:
        """Return nothing: a black box gives no hints."""
        return {}

    def failure(self) -> Failure | None:
        """Return None: only the judge knows the failure."""
        return None

    def finish(self, nodes: tuple[str, ...], result: Path | None, rate: Rate, effort: Effort) -> ReductionFinish:
        """Drop outputs that are not needed, write the result, and check it once more, unless the judge is a person."""
        self._request.to.phases.begin(RESULT)
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
        """Return the value of a constant condition."""
        graph = self.pieces.model.graph
        return bool(graph.weight(condition).reshape(-1)[0]) if condition in graph.constants else None

    def inside(self, opening: Opening, repeats: Repeats) -> Self:
        """Return the same way of asking about an opened piece, which must end its check as the whole did."""
        request = dataclasses.replace(
            self._request,
            model=with_seen_shapes(opening.model, itertools.islice(self._inner_samples(opening), 2), self._lab),
            samples=lambda: self._inner_samples(opening),
            repeats=repeats,
            to=dataclasses.replace(self._request.to, save_replay=None, load_replay=None),
        )
        inner = type(self)(request, self._case)
        inner.oracle.expected = self.oracle.expected
        return inner

    def _inner_samples(self, opening: Opening) -> Iterator[Feed]:
        """Yield the inputs of an opened piece where ONNX Runtime runs the model on a sample: shapes become known so."""
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
        """Kill running commands, and remove temporary files."""
        self.oracle.close()
        self._lab.close()

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
