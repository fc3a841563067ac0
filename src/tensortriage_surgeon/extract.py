"""Extract: cut a part out of a model, typed, proven against the whole, with the data that lead to it if wanted."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import EngineError, Feed, Model
from tensortriage.envelope.sdk import PLAIN, Lab, ValueSpec, error_of, feeds_that_run, measure_many
from tensortriage.model.sdk import LiftedBody, choose_nodes, lift_body, with_inferred_shapes, with_specs, write_tensor
from tensortriage.model.sdk import extract as cut
from tensortriage.sdk import (
    MOST_FEEDS,
    DataError,
    EditStage,
    EngineMissing,
    HealthyJudge,
    ModelError,
    Moves,
    Proof,
    SurgeryResult,
    Unprovable,
    Verify,
    check_weights,
    error_size,
    made_up_or_fitting,
    model_to_edit,
    value_specs,
    written,
)
from tensortriage_surgeon.cut_boundary import Boundary, boundary_of, with_boundary
from tensortriage_surgeon.requests import ExtractRequest
from tensortriage_surgeon.sanitize import recorded

DATA_SET = "test_data_set_{}"


def extract(request: ExtractRequest) -> SurgeryResult:
    """Cut a part out of a model, prove it, write it.

    Raises:
        UsageError: When a branch that the cut needs enters from outside (``cut-dangling``), and for names that the
            model does not have; see `tensortriage_surgeon.cut_boundary`.
        ModelError: When the cut computes something else than the whole (``verify-failed``).
        TriageError: For whatever else is wrong; nothing is written then.
    """
    return _Extracting(request).go()


class _Extracting:
    """One extraction in progress."""

    def __init__(self, request: ExtractRequest) -> None:
        self.request = request
        self.model = model_to_edit(request.source, request.target)
        self.lifted = _lift(self.model, request.body)
        self.part = self.lifted.model if self.lifted else self.model
        if request.infer_shapes:
            self.part = with_inferred_shapes(self.part)
        self.notices: list[str] = []
        self._golden: list[tuple[Feed, dict[str, np.ndarray]]] | None = None

    def go(self) -> SurgeryResult:
        """Cut, prove, write."""
        request = self.request
        if request.keep_data:
            _check_room(request.target.path.parent)
        specs = dict(value_specs(self.part))
        chosen = choose_nodes(self.part.graph, request.nodes) if request.nodes else None
        boundary = boundary_of(self.part, chosen, request.inputs, request.outputs)
        specs = self._typed(boundary, specs)
        result = with_boundary(
            cut(self.part, boundary.nodes, specs=specs, outputs=boundary.outputs),
            boundary, request.inputs, request.outputs,
        )  # fmt: skip
        if request.run_for_shapes:
            result = with_specs(result, {name: specs[name] for name in boundary.outputs})
        proof = self._prove(boundary, result)
        stages = [EditStage("load", self.model), EditStage("extract", result)]
        done = written("surgeon extract", request.source, request.target, stages, proof, *self.notices)
        files = self._write_data(boundary, result) if request.keep_data else ()
        return dataclasses.replace(done, files=files)

    def _typed(self, boundary: Boundary, specs: dict[str, ValueSpec]) -> dict[str, ValueSpec]:
        """Return specs with the type and rank of every input of the cut, given or found by running the model."""
        given = self.request.inputs or {}
        unknown = []
        for name in boundary.inputs:
            own, typed = specs.get(name, ValueSpec(name, None, None)), given.get(name, ValueSpec(name, None, None))
            specs[name] = ValueSpec(name, own.dtype or typed.dtype, typed.shape if own.shape is None else own.shape)
            if specs[name].dtype is None or specs[name].shape is None:
                unknown.append(name)
        wanted = [*boundary.inputs, *boundary.outputs] if self.request.run_for_shapes else unknown
        if not wanted:
            return specs
        (_, arrays), *_ = self._record(wanted)
        for name in wanted:
            found = ValueSpec.of(name, arrays[name])
            if not self.request.run_for_shapes:
                found = dataclasses.replace(found, shape=(None,) * arrays[name].ndim)
                self.notices.append(f"type and rank of '{name}' were found by running; its dimensions are left open")
            specs[name] = found
        return specs

    def _record(self, values: Sequence[str]) -> list[tuple[Feed, dict[str, np.ndarray]]]:
        """Return values of the part for every feed: inputs, constants and results of nodes."""
        graph = self.part.graph
        made = [name for name in values if graph.producer(name) is not None and name not in graph.constants]
        rows = []
        for feed, inputs in self._part_feeds():
            arrays = {**inputs, **self._recorded(self.part, Feed(feed.name, inputs, feed.origin), made)}
            arrays |= {name: graph.weight(name) for name in values if name in graph.constants}
            rows.append((feed, {name: arrays[name] for name in values}))
        return rows

    def _recorded(self, model: Model, feed: Feed, values: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Return values of a model; those written match a plain session's to the last bit."""
        return recorded(model, feed, values, in_place=not self.request.keep_data)

    def _part_feeds(self) -> list[tuple[Feed, dict[str, np.ndarray]]]:
        """Return the feeds of the model, each with the inputs of the part: of a body, those of its first turn."""
        request = dataclasses.replace(self.request.feeding, most=MOST_FEEDS)
        found = feeds_that_run(request, self.model, option="--load-inputs", nan_will_do=True)
        if self.lifted is None:
            return [(feed, dict(feed.tensors)) for feed in found]
        graph = self.model.graph
        needed = dict.fromkeys(source.value for source in self.lifted.sources.values() if source.value)
        made = [name for name in needed if graph.producer(name) is not None and name not in graph.constants]
        rows = []
        for feed in found:
            outer = {**feed.tensors, **self._recorded(self.model, feed, made)}
            outer |= {name: graph.weight(name) for name in needed if name in graph.constants}
            rows.append((feed, {name: source.take(outer) for name, source in self.lifted.sources.items()}))
        return rows

    def _golden_values(self, boundary: Boundary) -> list[tuple[Feed, dict[str, np.ndarray]]]:
        if self._golden is None:
            self._golden = self._record([*boundary.inputs, *boundary.outputs])
        return self._golden

    def _prove(self, boundary: Boundary, result: Model) -> Proof:
        """Run the cut on the golden values of its inputs and compare its outputs with the golden ones."""
        verify, keep_data = self.request.verify, self.request.keep_data
        if verify is Verify.NEVER:
            return Proof(False, "not requested")
        try:
            check_weights(self.model, large=keep_data or verify is not Verify.AUTO)
            with made_up_or_fitting(self.request.feeding):
                self._golden_on_plain(boundary)
        except Unprovable as error:
            return error.accept("cut", insists=keep_data or verify is Verify.ALWAYS)
        return self._compare(boundary, result)

    def _golden_on_plain(self, boundary: Boundary) -> None:
        try:
            self._golden_values(boundary)
        except (EngineError, EngineMissing) as error:
            raise Unprovable(f"the model does not run as it is: {error.message}") from error

    def _compare(self, boundary: Boundary, result: Model) -> Proof:
        moves, golden = Moves(), self._golden_values(boundary)
        with Lab(in_place=not self.request.keep_data) as lab, lab.session(PLAIN, result, sequence=True) as run:
            judge = HealthyJudge(result, reference=PLAIN, target=PLAIN, lab=lab)
            for feed, arrays in golden:
                inside = Feed(feed.name, {name: arrays[name] for name in boundary.inputs}, feed.origin)
                try:
                    found = run(inside.tensors)
                except EngineError as error:
                    raise _failed(f"the cut does not run: {error.message}") from error
                outputs = {name: arrays[name] for name in boundary.outputs}
                metrics = dict(measure_many((name, outputs[name], found[name]) for name in boundary.outputs))
                for name, judgement in judge.judge(inside, metrics, outputs).items():
                    error_now = error_of(metrics[name])
                    if not judgement.within:
                        raise _failed(
                            f"the cut moves '{name}' by {error_size(error_now)} (relative RMS on {feed.name}); "
                            f"allowed is {judgement.limit}"
                        )
                    moves.add(name, error_now, judgement)
        return moves.proof(PLAIN, [feed for feed, _ in golden])

    def _write_data(self, boundary: Boundary, result: Model) -> tuple[str, ...]:
        """Write the inputs and expected outputs of the cut as ONNX test data sets next to it, one per feed."""
        written = []
        for number, (_, arrays) in enumerate(self._golden_values(boundary)):
            folder = self.request.target.path.parent / DATA_SET.format(number)
            folder.mkdir(parents=True, exist_ok=True)
            for word, names in (("input", [spec.name for spec in result.inputs]), ("output", boundary.outputs)):
                for position, name in enumerate(names):
                    write_tensor(folder / f"{word}_{position}.pb", name, arrays[name])
            written.append(str(folder))
        return tuple(written)


def _lift(model: Model, body: str) -> LiftedBody | None:
    if not body:
        return None
    node, _, branch = body.rpartition(":")
    if body in model.graph or not node:
        node, branch = body, ""
    return lift_body(model, node, branch, specs=value_specs(model))


def _check_room(folder: Path) -> None:
    """Refuse to mix test data with those of another model."""
    found = folder / DATA_SET.format(0)
    if found.exists() and any(found.iterdir()):
        raise DataError(
            f"{found} holds test data already", slug="output-not-empty",
            cure="write into another directory, e.g. -o cut/model.onnx",
        )  # fmt: skip


def _failed(message: str) -> ModelError:
    return ModelError(
        message, slug="verify-failed", cure="please report this model; --no-verify writes the cut nevertheless"
    )
