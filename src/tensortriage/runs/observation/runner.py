"""Runs one model on one engine any number of times, and counts the cost."""

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import numpy as np

from tensortriage.engines.base import Limits, Plan, Session
from tensortriage.engines.capabilities import (
    ArrangesFiles,
    CompilesInPlace,
    CompilesModels,
    KeepsEngines,
    RunsGivenEngines,
    StreamsResults,
)
from tensortriage.engines.registry import create
from tensortriage.engines.session_capabilities import (
    BoundsRuns,
    BuildsWhenFed,
    FedOtherwise,
    KnowsSomeValues,
    RepeatsBuild,
)
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, RunFailed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.model_message import in_place
from tensortriage.runs.tally import Tally
from tensortriage.runs.workspace import Workspace
from tensortriage_worker.feeding import InputBuffers, side_by_side

MOST_RUNS = 10_000
"""Runs of a stream that goes on as long as the others do."""

_logger = logging.getLogger(__name__)


class Runner:
    """A model compiled for an engine; building happens on the first run (or `build`).

    Args:
        spec: The engine and its options.
        model: The model; an edited one is written to a temporary file of the workspace.
        workspace: Folder of temporary model files.
        limits: Time and memory limits for engines that work in their own process.
        tally: Counts builds and runs.
        fresh: Whether to ignore cached builds, as a comparison of builds must.
    """

    def __init__(
        self,
        spec: EngineSpec,
        model: Model,
        *,
        workspace: Workspace,
        limits: Limits | None = None,
        tally: Tally | None = None,
        fresh: bool = False,
    ) -> None:
        self.spec = spec
        self.model = model
        self.tally = tally or Tally()
        self._workspace = workspace
        self._limits = limits or Limits()
        self._engine = create(spec, limits=self._limits)
        if workspace.kept is not None and not fresh and isinstance(self._engine, KeepsEngines):
            self._engine.keep_in(workspace.kept, engines=model.path is not None)  # of candidates there are too many
        self._session: Session | None = None
        self._path: Path | None = None
        self._builds_counted = 0
        self._buffers = InputBuffers()

    def build(self) -> Session:
        """Compile the model unless that is done.

        Raises:
            EngineError: When the engine fails.
            EngineMissing: When it cannot be used here.
            UsageError: For options it does not know.
        """
        if self._session is None:
            self._refuse_pieces()
            compile_it = self._compiling()
            started = time.perf_counter()
            self._session = compile_it()
            seconds = time.perf_counter() - started
            self.tally.built(self.spec.name, seconds)
            _logger.info("%s: built in %.3f s", self.spec, seconds)
            if isinstance(self._session, BuildsWhenFed):
                self._builds_counted = len(self._session.builds_made())
        return self._session

    def _refuse_pieces(self) -> None:
        """Refuse to use an engine given as a file for a part of the model, or for a changed model.

        Raises:
            BuildFailed: When it would be: it would run as a whole, and its answers would be attributed to the part.
        """
        engine, options = self._engine, self.spec.options
        converted = isinstance(engine, ArrangesFiles) and engine.arranges(options)
        built = isinstance(engine, RunsGivenEngines) and engine.without_file(options) is not None
        if self.model.path is None and (converted or built):
            raise BuildFailed(
                "the engine was given as a file, which runs as a whole: no part or variant of it can be tried",
                slug="engine-given",
                cure="give the options that it was built with in place of the file, so that parts can be built",
            )

    def _count_builds(self) -> float:
        """Count a session's builds for the shapes of its feeds, and return their seconds.

        Opening a session was counted as a build, which the first one for a feed makes up for.
        """
        made = self._session.builds_made() if isinstance(self._session, BuildsWhenFed) else ()
        new = made[self._builds_counted :]
        if new:
            self.tally.built(self.spec.name, sum(new), builds=len(new) - int(not self._builds_counted))
        self._builds_counted = len(made)
        return sum(new)

    def builds_made(self) -> int:
        """Return how often the session has built for the shapes of a feed: the first one built may be outdated."""
        return len(self._session.builds_made()) if isinstance(self._session, BuildsWhenFed) else 0

    def _compiling(self) -> Callable[[], Session]:
        """Return a function that compiles the model, placed where the engine can read it."""
        engine, options = self._engine, self.spec.options
        if (
            self._workspace.in_place
            and isinstance(engine, CompilesInPlace)
            and (message := in_place(self.model)) is not None
        ):
            return lambda: engine.compile_in_place(message, options)
        if isinstance(engine, CompilesModels):
            return lambda: engine.compile_model(self.model, options)
        path = self._path = self._workspace.file(self.model)
        return lambda: engine.compile(path, options)

    def run(self, tensors: Mapping[str, np.ndarray], *, known_only: bool = False) -> Mapping[str, np.ndarray]:
        """Run once and return the outputs by ONNX value name.

        Args:
            tensors: Input tensors by name.
            known_only: Whether outputs that the session does not know are left out; see `KnowsSomeValues`.

        Raises:
            EngineError: When the build or the run fails, or an output that the model declares is missing.
        """
        session = self.build()
        if isinstance(session, BoundsRuns):
            session.allow(self._limits.longest_run(self.tally.reference_run_seconds))
        started = time.perf_counter()
        run = session.run_known if known_only and isinstance(session, KnowsSomeValues) else session.run
        outputs = run(tensors)
        started += self._count_builds()
        if isinstance(session, RepeatsBuild) and (command := session.command()) not in ("", *self.tally.commands):
            self.tally.commands.append(command)
        seconds = time.perf_counter() - started
        self.tally.checks += 1
        self.tally.run_seconds += seconds
        _logger.info("%s: ran in %.3f s, %d outputs", self.spec, seconds, len(outputs))
        for name, value in outputs.items():
            if not isinstance(value, np.ndarray):
                raise RunFailed(
                    f"{self.spec}: output '{name}' is not an array",
                    slug="engine-output-not-array",
                    cure="let the engine's session return numpy arrays by output name",
                )
            _logger.debug("%s: output %s %s %s", self.spec, name, value.dtype, list(value.shape))
        return outputs

    def run_laid_out(self, tensors: Mapping[str, np.ndarray], layout: str) -> Mapping[str, np.ndarray]:
        """Run once from memory that lies as one of `BuiltSession.layouts`; errors as `run`."""
        session = self.build()
        self.tally.checks += 1
        if isinstance(session, FedOtherwise):
            return session.run_laid_out(tensors, layout)
        return session.run({n: self._buffers.laid_out(n, array, layout) for n, array in tensors.items()})

    def streams(self, feeds: Sequence[Feed], runs: int) -> Sequence[Sequence[Mapping[str, np.ndarray]]]:
        """Run two feeds at once in the engine's own process, the second in another session; errors as `run`."""
        session = self.build()
        assert isinstance(session, FedOtherwise), "the caller knows that it runs in another process"
        self.tally.built(self.spec.name)
        return session.streams([feed.tensors for feed in feeds], runs)

    def stream(self, tensors: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Run an engine that `StreamsResults` once, and yield the outputs as it computes them; errors as `run`."""
        session, engine = self.build(), self._engine
        assert isinstance(engine, StreamsResults), "the caller knows the engine"
        self.tally.checks += 1
        started = time.perf_counter()
        yield from engine.stream_session(session, tensors)
        self.tally.run_seconds += time.perf_counter() - started

    def plan(self) -> Plan | None:
        """Return the plan that the engine runs; None when it does not report one."""
        return self.build().plan()

    def close(self) -> None:
        """Release the session and the temporary model file."""
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._path is not None:
            self._workspace.release(self._path)
            self._path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_beside(
    first: Runner, other: Runner, feeds: tuple[Feed, Feed], *, runs: int, apart: bool
) -> list[tuple[Feed, Sequence[Mapping[str, np.ndarray]]]]:
    """Run two feeds at once; return the feed of every stream, and those of its results that differ.

    The first runs in the first session. The second runs in the other one; where engines have processes of their own, in
    a third session, in the same process as the first, and in the other one only if processes ``apart`` are wanted too.
    Before the second stream's results stands one of its session alone.
    """
    if isinstance(first.build(), FedOtherwise) and not apart:
        return list(zip(feeds, first.streams(feeds, runs), strict=True))
    other.build()
    in_other = functools.partial(other.run, feeds[1].tensors)
    if not isinstance(first.build(), FedOtherwise):
        alone = {name: np.array(array) for name, array in in_other().items()}
        one, two = side_by_side([functools.partial(first.run, feeds[0].tensors), in_other], runs)
        return list(zip(feeds, (one, [alone, *two]), strict=True))
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(side_by_side, [in_other], MOST_RUNS, over.is_set)
        try:
            here = first.streams(feeds, runs)
        finally:
            over.set()
        return list(zip((*feeds, feeds[1]), (*here, *elsewhere.result()), strict=True))
