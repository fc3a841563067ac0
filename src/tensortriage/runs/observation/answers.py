"""Answers of engines as a case keeps them: figures and refusals in its check cache, tensors in a store next to it."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tensortriage.compare.measured import Measured
from tensortriage.engines.base import Choice, Limits, Plan
from tensortriage.errors import BuildFailed, EngineCrashed, EngineError, EngineHung, RunFailed
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.case import Case
from tensortriage.runs.observation.capture import size_of
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.values.store import MappedStore, MemoryStore, ShardWriter, TensorStore, stored

KEPT_BYTES = 64 << 20
"""Tensors that were handed over in memory are kept up to this size together: writing more takes longer than a tenth of
a second, and running such a question again is cheaper."""


@frozen_dataclass
class _Kept:
    """The stored answer without its tensors; fields as of `Measurement`, and whether there are tensors."""

    figures: Measured
    unseen: Unseen
    plan: Plan | None
    choices: tuple[Choice, ...]
    seconds: float
    build_seconds: float
    builds_made: int
    tensors: bool
    told: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@frozen_dataclass
class _Failed:
    """A failure of an engine: the name of its kind, and its message."""

    kind: str
    message: str
    slug: str
    cure: str


LASTING = (BuildFailed, RunFailed, EngineCrashed, EngineHung)
"""Failures that are answers. An engine that ran out of memory may find more the next time."""

_KINDS: Mapping[str, type[EngineError]] = {kind.__name__: kind for kind in LASTING}


class AnswerStore:
    """The answers of one case by content key.

    Attributes:
        earlier: How many answers of an earlier command were used, each counted once.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._own: set[str] = set()
        self.earlier = 0

    def known(self, key: str, limits: Limits) -> Measurement | None:
        """Return an answer; None where it is not known, or damaged.

        Raises:
            EngineError: When the answer is a failure, under the same limits.
        """
        checks = self._case.checks
        failure = checks.get(_failure_key(key, limits), _Failed)
        if failure is not None and (kind := _KINDS.get(failure.kind)) is not None:
            self._count(key)
            raise kind(failure.message, slug=failure.slug, cure=failure.cure)
        kept = checks.get(key, _Kept)
        if kept is None:
            return None
        tensors: TensorStore | None = MemoryStore({})
        if kept.tensors and (tensors := stored(self._case.runs / key)) is None:
            return None
        assert tensors is not None
        self._count(key)
        shared = {field.name: getattr(kept, field.name) for field in dataclasses.fields(kept)}
        return Measurement(**{**shared, "tensors": tensors})

    def _count(self, key: str) -> None:
        self.earlier += key not in self._own
        self._own.add(key)

    def keep(self, key: str, engine: str, answer: Measurement, *, stored: bool = False) -> Measurement:
        """Keep an answer and return it, ``stored`` on disk; else one with tensors too large is returned alone."""
        self._own.add(key)
        tensors = answer.tensors
        names = tensors.names()
        if names and not isinstance(tensors, MappedStore):
            if not stored and sum(size_of(tensors.spec(name)) for name in names) > KEPT_BYTES:
                return answer
            with ShardWriter(self._case.runs / key) as writer:
                for name in names:
                    writer.write(name, np.asarray(tensors[name]))
            if stored:
                answer = dataclasses.replace(answer, tensors=MappedStore(self._case.runs / key))
        shared = [field.name for field in dataclasses.fields(_Kept) if field.name != "tensors"]
        kept = _Kept(tensors=bool(names), **{name: getattr(answer, name) for name in shared})
        self._case.checks.put(key, f"the answers of {engine}", kept, seconds=answer.seconds)
        return answer

    def streamed(self, key: str, arrays: Iterator[tuple[str, np.ndarray]], seconds: Callable[[], float]) -> Measurement:
        """Write tensors as they come, holding none, and return the stored answer."""
        folder = self._case.runs / key
        with ShardWriter(folder) as writer:
            for name, array in arrays:
                writer.write(name, array)
        return Measurement(MappedStore(folder), seconds=seconds())

    def failed(self, key: str, engine: str, error: EngineError, limits: Limits) -> None:
        """Keep a failure: under the same limits it is the answer."""
        self._own.add(key)
        kind = next(name for name, each in _KINDS.items() if isinstance(error, each))
        failure = _Failed(kind, error.message, error.slug, error.cure)
        self._case.checks.put(_failure_key(key, limits), f"how {engine} fails", failure, seconds=0.0)


def _failure_key(key: str, limits: Limits) -> str:
    return f"{key} failed {limits}"
