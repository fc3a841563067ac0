"""Sessions of engines that take models without open dimensions only: built when the first feed fixes the shapes.

A feed of other shapes is another build. Without open dimensions the model is built at once.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tensortriage.engines.feed_checks import checked_feed
from tensortriage.engines.process.isolated import IsolatedSession
from tensortriage.engines.process.rebuilt_session import RebuiltSession
from tensortriage.engines.session_capabilities import FedOtherwise
from tensortriage.errors import BuildFailed
from tensortriage.values.spec import ValueSpec

if TYPE_CHECKING:
    from tensortriage.model.model import Model

Build = Callable[[Path, "Model"], IsolatedSession]
"""Builds a file; the given model has the same contents."""


class SessionByShape(RebuiltSession, FedOtherwise):
    """A model in a worker, built for the shapes that are fed.

    Args:
        model: The model to build.
        build: Builds a file in a worker; it may refuse the result.
        title: The engine's name in messages.
        fixed_shapes: Whether open dimensions must be closed; else the model is built as it is.
        at_once: Whether a model without open dimensions is built before the first feed.
    """

    def __init__(self, model: "Model", build: Build, *, title: str, fixed_shapes: bool, at_once: bool = True) -> None:
        super().__init__(model.inputs, model.outputs, title=title)
        self._model, self._build = model, build
        self._open = tuple(spec.name for spec in self.inputs if fixed_shapes and not spec.is_sized)
        self._shapes: Mapping[str, tuple[int, ...]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="triage-model-")  # a worker may read the file again
        if not self._open and at_once:
            try:
                self._rebuilt(self._made)
            except BaseException:
                self._folder.cleanup()
                raise

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; see `IsolatedSession.run`. Builds first where the shapes are new."""
        arrays = checked_feed(feed, self.inputs)
        return self.built_for(arrays).run(arrays)

    @property
    def layouts(self) -> Sequence[str]:
        """Memory layouts for inputs in the worker; see `FedOtherwise`."""
        return self.built_for_any().layouts

    @property
    def own_options(self) -> Sequence[str]:
        """None: a session built by shape is no script."""
        return ()

    def run_laid_out(self, feed: Mapping[str, np.ndarray], layout: str) -> Mapping[str, np.ndarray]:
        """Run once from memory that lies as one of `layouts`."""
        arrays = checked_feed(feed, self.inputs)
        return self.built_for(arrays).run_laid_out(arrays, layout)

    def streams(
        self, feeds: Sequence[Mapping[str, np.ndarray]], runs: int
    ) -> Sequence[Sequence[Mapping[str, np.ndarray]]]:
        """Run two feeds of the same shapes at once."""
        arrays = [checked_feed(feed, self.inputs) for feed in feeds]
        return self.built_for(arrays[0]).streams(arrays, runs)

    def built_for(self, arrays: Mapping[str, np.ndarray]) -> IsolatedSession:
        """Return the session for the shapes of a feed, built if need be.

        Args:
            arrays: One array per input; of their shapes, those of inputs with open dimensions count.

        Raises:
            RunFailed: When this session is closed.
            EngineError: When it does not build.
        """
        self._check_open()
        shapes = {name: arrays[name].shape for name in self._open}
        if self._built is None or shapes != self._shapes:
            self._shapes = shapes
            return self._rebuilt(self._made)
        return self._built

    def built_for_any(self) -> IsolatedSession:
        """Return the session that was used last; built for dimensions of 1 when nothing has been run yet.

        Raises:
            EngineError: As `built_for`.
        """
        self._check_open()
        if self._built is not None:
            return self._built
        self._shapes = {spec.name: _smallest(spec) for spec in self.inputs if spec.name in self._open}
        return self._rebuilt(self._made)

    def close(self) -> None:
        """Release the worker; calling it twice is harmless."""
        try:
            super().close()
        finally:
            self._folder.cleanup()

    def _made(self) -> IsolatedSession:
        model, path = self._model, self._model.path
        if self._shapes:
            from tensortriage.model.shape_inference.annotate import with_input_shapes

            model, path = with_input_shapes(model, self._shapes), None
        return self._build(path or model.save(Path(self._folder.name) / "model.onnx"), model)


def _smallest(spec: ValueSpec) -> tuple[int, ...]:
    if spec.shape is None:
        raise BuildFailed(
            f"the rank of input '{spec.name}' is not declared, and no feed shows it",
            slug="build-failed",
            cure="declare it: triage surgeon sanitize MODEL --override-input-shapes NAME:[...]",
        )
    return tuple(size if isinstance(size, int) else 1 for size in spec.shape)
