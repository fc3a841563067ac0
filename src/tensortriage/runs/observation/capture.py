"""Captures intermediate values: the engine shows them by itself, or they are marked as outputs, at once or in batches.

An engine that can show inner values by itself does so first, in a session that stays open; the others are marked.
Marking changes the engine's execution, so a capture is an *instrumented* run; its caller compares the model's own
outputs with the deployed ones and reports whether they moved. Values that an engine refuses to show are left out where
the caller wants their list. Values are yielded one at a time and not stored, so a consumer that compares or stores at
once holds at most one batch.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

import numpy as np

from tensortriage.engines.capabilities import Observes, StreamsResults
from tensortriage.engines.registry import create
from tensortriage.engines.session_capabilities import ShowsValues
from tensortriage.errors import EngineError, EngineHung, RunFailed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.observation.experiment import Experiment, ObservedFigures, ObservedValues
from tensortriage.runs.observation.refusals import Ask, Unseen, seen_in_parts, suspected_kinds
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.observation.sessions import Sessions, in_sequence
from tensortriage.runs.tally import Tally
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

MARKED = "marked"
"""In `Tally.seen`: captured by marking outputs."""

OWN_VALUES = frozenset({"engine-outputs-wrong", "engine-value-unknown"})
"""Errors of engines that show only the values in their program, whatever is marked: they refuse all or nothing."""

UNKNOWN_BYTES = 4 << 20
"""Assumed size of a value whose shape is not known before it is captured, until others like it have been."""


def batches(
    values: Sequence[str],
    specs: Mapping[str, ValueSpec],
    *,
    batch_bytes: int | None,
    unknown_bytes: float = UNKNOWN_BYTES,
) -> list[tuple[str, ...]]:
    """Split values, in order, into batches of at most ``batch_bytes`` each (a larger single value is its own batch).

    Args:
        values: Value names in topological order.
        specs: Shapes and dtypes, as far as known.
        batch_bytes: Largest batch; None for one batch.
        unknown_bytes: Assumed size of a value whose shape or type is unknown.
    """
    if batch_bytes is None:
        return [tuple(values)] if values else []
    groups: list[tuple[str, ...]] = []
    current: list[str] = []
    size = 0.0
    for value in values:
        known = known_size(specs.get(value))
        cost = unknown_bytes if known is None else known
        if current and size + cost > batch_bytes:
            groups.append(tuple(current))
            current, size = [], 0.0
        current.append(value)
        size += cost
    if current:
        groups.append(tuple(current))
    return groups


def size_of(spec: ValueSpec | None) -> int:
    """Return the bytes a value takes in memory; `UNKNOWN_BYTES` when its shape or type is unknown."""
    known = known_size(spec)
    return UNKNOWN_BYTES if known is None else known


def known_size(spec: ValueSpec | None) -> int | None:
    """Return the bytes a value takes in memory; None when its shape or type is unknown."""
    if spec is None or spec.dtype is None or not spec.is_sized:
        return None
    return math.prod(spec.sizes) * spec.dtype.numpy.itemsize


def capture(
    experiment: Experiment,
    *,
    sessions: Sessions,
    tally: Tally,
    batch_bytes: int | None = None,
    unseen: Callable[[Unseen], None] | None = None,
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield ``(value name, array)`` for each wanted value, in topological order unless values are to be streamed.

    A value of unknown size is assumed to be as large as the average of those captured before.

    Args:
        experiment: The model, engine, feed and wanted values.
        sessions: Sessions of the model as it is, and of the marked ones.
        tally: Counts builds and runs.
        batch_bytes: Largest amount of captured values held at once; None to capture everything in one run.
        unseen: Receives the values that the engine refuses to show, and the others are yielded; without it, a refusal
            raises.

    Raises:
        EngineError: When the engine refuses or fails the marked model.
    """
    wanted = experiment.observed
    assert isinstance(wanted, ObservedValues | ObservedFigures), "others show no inner values"
    specs = wanted.specs
    if specs is None:
        fed = experiment.tensors.items()
        specs = value_specs(experiment.model, {name: ValueSpec.of(name, array) for name, array in fed})
    if isinstance(wanted, ObservedValues) and wanted.streamed and isinstance(create(experiment.engine), StreamsResults):
        marked = in_sequence(sessions.marked(experiment, wanted.names))
        with sessions.open(marked) as runner:
            for name, array in runner.stream(marked.tensors):
                yield name, _as_declared(array, specs.get(name))
        return
    with _Watching(experiment, sessions, tally) as watching:
        waiting, unknown, unknown_bytes = list(wanted.names), 0, 0
        while waiting:
            assumed = unknown_bytes / unknown if unknown else UNKNOWN_BYTES
            group, *_ = batches(waiting, specs, batch_bytes=batch_bytes, unknown_bytes=assumed)
            del waiting[: len(group)]
            found = {value: _as_declared(array, specs.get(value)) for value, array in watching.captured(group).items()}
            rest = [value for value in group if value not in found]
            if rest:
                ask = _marking(experiment, sessions)
                try:
                    seen = _marked(ask, experiment.model, rest, specs, unseen)
                except EngineError as error:
                    if unseen is None or not found or isinstance(error, EngineHung):
                        raise
                    # It shows what it can by itself and takes no marked model at all: the outputs come from its run.
                    declared = [output.name for output in experiment.model.outputs]
                    seen = ask(declared) if set(declared).intersection(rest) else {}
                    seen = {value: array for value, array in seen.items() if value in rest}
                    unseen(Unseen(left_out=tuple(value for value in rest if value not in seen)))
                found |= seen
                tally.seen[MARKED] = tally.seen.get(MARKED, 0) + len(seen)
            sizes = [found[value].nbytes for value in group if value in found and known_size(specs.get(value)) is None]
            unknown, unknown_bytes = unknown + len(sizes), unknown_bytes + sum(sizes)
            for value in group:
                if value in found:
                    yield value, found.pop(value)


def _marking(experiment: Experiment, sessions: Sessions) -> Ask:
    """Return a function that marks values as outputs, runs once, and returns them."""
    declared = [output.name for output in experiment.model.outputs]

    def ask(values: Sequence[str]) -> Mapping[str, np.ndarray]:
        with sessions.open(experiment if list(values) == declared else sessions.marked(experiment, values)) as runner:
            found = runner.run(experiment.tensors)
        if lacking := [value for value in values if value not in found]:
            raise RunFailed(
                f"{experiment.engine} does not return '{lacking[0]}', which is marked as an output",
                slug="engine-outputs-wrong",
                cure="return one array per output of the model that is compiled",
            )
        return {value: found[value] for value in values}

    return ask


def _marked(
    ask: Ask,
    model: Model,
    values: Sequence[str],
    specs: Mapping[str, ValueSpec],
    unseen: Callable[[Unseen], None] | None,
) -> Mapping[str, np.ndarray]:
    """Return values by marking them, where wanted without those that the engine refuses."""
    try:
        return ask(values)
    except EngineError as error:
        if unseen is None or len(values) == 1 or error.slug in OWN_VALUES or isinstance(error, EngineHung):
            raise
        found, hidden = seen_in_parts(ask, values, suspected_kinds(model, values, specs, error.message), error)
    unseen(hidden)
    return found


def _as_declared(array: np.ndarray, spec: ValueSpec | None) -> np.ndarray:
    """Return an array in the type that the model gives the value; engines show the type that they really hold."""
    if spec is None or spec.dtype is None:
        return array
    held = DType.from_numpy(array.dtype)
    alike = (held.is_float and spec.dtype.is_float) or (held.is_integer and spec.dtype.is_integer)
    return array.astype(spec.dtype.numpy) if alike and held is not spec.dtype else array


class _Watching:
    """An engine that shows inner values on its own, as far as it can; built on the first request.

    Args:
        experiment: Engine, model and feed; the model runs untouched, with the options that let values be seen.
        sessions: The sessions that run it.
        tally: Counts builds and runs.
    """

    def __init__(self, experiment: Experiment, sessions: Sessions, tally: Tally) -> None:
        self._tensors, self._tally = experiment.tensors, tally
        self._opened = contextlib.ExitStack()
        self._runner: Runner | None = None
        spec = experiment.engine
        engine = create(spec)
        options = engine.observing(spec.options) if isinstance(engine, Observes) else None
        if options is not None:
            watched = dataclasses.replace(experiment, engine=spec.with_options(options))
            self._runner = self._opened.enter_context(sessions.open(watched))

    def captured(self, values: Sequence[str]) -> dict[str, np.ndarray]:
        """Run once and return those of the wanted values that are shown; none when the engine cannot, or fails."""
        if self._runner is None:
            return {}
        try:
            session = self._runner.build()
            if isinstance(session, ShowsValues) and (shown := dict(session.captured(self._tensors, values))):
                self._tally.checks += 1
                self._tally.seen[session.observation] = self._tally.seen.get(session.observation, 0) + len(shown)
                return shown
        except EngineError:  # an engine that refuses to be watched may still take marked outputs
            self._runner.close()  # it may be of no more use to others
        self.close()
        return {}

    def close(self) -> None:
        """Let the engine go; nothing is shown from now on."""
        self._runner = None
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
