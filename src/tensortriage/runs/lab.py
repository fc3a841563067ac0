"""Runs engines within one case: sessions are kept for reuse, answers are kept by content, costs are counted.

Whatever searches, measures or judges goes through a `Lab`. It knows nothing of verdicts: only which engine was asked
what, on which model and feed, and where the tensors lie that it answered with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.budget import Budget
from tensortriage.runs.capture import capture
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.refusals import Unseen
from tensortriage.runs.runner import Runner, Tally, engine_identity, feed_digest
from tensortriage.runs.workspace import Workspace
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MappedStore, ShardWriter, TensorStore, stored

FLOAT64 = EngineSpec("reference")
"""The model in float64 throughout, whatever types it declares."""


class Lab:
    """Engines, and what they have answered in one case.

    Args:
        case: Where answers are kept.
        limits: Time and memory limits of isolated engines.
        budget: Wall time that may be spent.
        batch_bytes: Largest amount of captured tensors held at once; None for any.
        progress: Told what takes a while, before it begins.
    """

    def __init__(
        self,
        case: Case,
        *,
        limits: Limits | None = None,
        budget: Budget | None = None,
        batch_bytes: int | None = 1 << 30,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.case = case
        self.workspace = Workspace(case.temporary, kept=case.engines)
        self.tally = Tally()
        self.budget = budget or Budget()
        self._limits = limits or Limits()
        self._batch_bytes = batch_bytes
        self.progress = progress or (lambda _: None)
        self._runners: dict[str, Runner] = {}
        self._identities: dict[str, str] = {}
        self._selected: tuple[Model, tuple[str, ...], Model] | None = None

    def key(self, spec: EngineSpec, model: Model, feed: Feed | None, *words: object) -> str:
        """Return the content key of a question to an engine."""
        if str(spec) not in self._identities:
            self._identities[str(spec)] = engine_identity(spec)
        who = self._identities[str(spec)]
        return digest(who, model.fingerprint, feed_digest(feed.tensors) if feed else "", *words)

    def runner(self, spec: EngineSpec, model: Model) -> Runner:
        """Return the one runner of a model on an engine, kept open until the lab closes."""
        self.budget.check()
        key = f"{spec} {model.fingerprint}"
        if key not in self._runners:
            self._runners[key] = self.new_runner(spec, model)
        return self._runners[key]

    def new_runner(self, spec: EngineSpec, model: Model) -> Runner:
        """Return a runner of its own; the caller closes it.

        Raises:
            BudgetSpent: When there is no time left; so do `runner` and whatever else asks an engine.
        """
        self.budget.check()
        limits = self.budget.within(self._limits)
        return Runner(spec, model, workspace=self.workspace, limits=limits, tally=self.tally)

    def drop_runner(self, spec: EngineSpec, model: Model) -> None:
        """Let go of a runner whose session is of no more use."""
        if (runner := self._runners.pop(f"{spec} {model.fingerprint}", None)) is not None:
            runner.close()

    def capture(
        self,
        spec: EngineSpec,
        model: Model,
        feed: Feed,
        values: Sequence[str],
        *,
        specs: Mapping[str, ValueSpec],
        unseen: Callable[[Unseen], None] | None = None,
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the wanted values of a run, in batches that fit memory; see `tensortriage.runs.capture.capture`."""
        self.budget.check()
        return capture(
            spec,
            model,
            feed,
            values,
            workspace=self.workspace,
            specs=specs,
            limits=self.budget.within(self._limits),
            tally=self.tally,
            batch_bytes=self._batch_bytes,
            unseen=unseen,
        )

    def streamed(
        self, spec: EngineSpec, model: Model, feed: Feed, values: Sequence[str]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value name, array)`` in the order in which an engine computes them, holding as few as it can.

        Args:
            spec: An engine that can tell its results as they come; of others all are held at once.
            model: The model.
            feed: Its inputs.
            values: Names of the wanted values.

        Raises:
            EngineError: When the engine refuses or fails the model.
        """
        with self.new_runner(spec, self._with_outputs(model, tuple(values))) as runner:
            yield from runner.stream(feed)

    def _with_outputs(self, model: Model, values: tuple[str, ...]) -> Model:
        """Return a model with exactly these outputs, the same one as long as the same ones are asked for."""
        known = self._selected
        if known is None or known[0] is not model or known[1] != values:
            known = self._selected = model, values, select_outputs(model, values)
        return known[2]

    def recorded(self, spec: EngineSpec, model: Model, feed: Feed, values: Sequence[str]) -> tuple[TensorStore, float]:
        """Return the wanted values of a run as stored tensors, and how long one run takes; from the case if known.

        Args:
            spec: Engine to run on.
            model: The model.
            feed: Its inputs.
            values: Names of the wanted values.
        """
        folder = self.case.runs / self.key(spec, model, feed, "values", list(values))
        if (store := stored(folder)) is None:
            self.progress(f"recording {len(values)} tensors on {spec}")
            specs = value_specs(model, {n: ValueSpec.of(n, a) for n, a in feed.tensors.items()})
            seconds, runs = self.tally.run_seconds, self.tally.checks
            with ShardWriter(folder) as writer:
                for name, array in self.capture(spec, model, feed, values, specs=specs):
                    writer.write(name, array)
            store = MappedStore(folder)
            taken = (self.tally.run_seconds - seconds) / max(self.tally.checks - runs, 1)
            self.case.checks.put(f"{folder.name} seconds", f"how long a run of {spec} takes", taken, seconds=taken)
        return store, self.case.checks.get(f"{folder.name} seconds", float) or 0.0

    def close(self) -> None:
        """Release every session and temporary file."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()
        self.workspace.close()
