"""A TensorRT session on this side: an engine made for the shapes that are fed.

TensorRT wants to know the range of every open dimension before it builds. Without a range from the user the engine is
built when the first feed comes, for its shapes alone; a feed of another shape widens the range and builds again. With
ranges given, or without open dimensions, it is built at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage.engines.sdk import (
    Choice,
    IsolatedSession,
    Plan,
    RebuiltSession,
    RepeatsBuild,
    RunFailed,
    ShowsValues,
    TellsTactics,
    ValueSpec,
    checked_feed,
)
from tensortriage_engines.tensorrt.options import Range


class TensorRtSession(RebuiltSession, ShowsValues, TellsTactics, RepeatsBuild):
    """A model for TensorRT; made by ``TensorRtEngine.compile``.

    Args:
        build: Builds an engine for shape ranges by input.
        inputs: Inputs of a run.
        outputs: Outputs of a run.
        open_inputs: Inputs with open dimensions and no range.
        shape_inputs: Inputs without a range whose values are shapes of other tensors. Without either kind the engine is
            built at once.
        value_of: The model's value that a tensor of TensorRT holds, by its name; empty for none.
    """

    def __init__(
        self,
        build: Callable[[Mapping[str, Range]], IsolatedSession],
        *,
        inputs: Sequence[ValueSpec],
        outputs: Sequence[ValueSpec],
        open_inputs: Sequence[str],
        shape_inputs: Sequence[str] = (),
        value_of: Callable[[str], str],
    ) -> None:
        super().__init__(inputs, outputs, title="TensorRT")
        self._build = build
        self._open_inputs, self._shape_inputs = tuple(open_inputs), tuple(shape_inputs)
        self._value_of = value_of
        self._ranges: dict[str, Range] = {}
        self._shown: dict[str, str] | None = None
        if not (open_inputs or shape_inputs):
            self._built = build({})

    def command(self) -> str:
        """Return the trtexec command line that builds the same; empty before there is a build."""
        return str(self.info.get("trtexec", ""))

    @property
    def observation(self) -> str:
        """Way to see inner values without marking outputs: ``unfused``, ``debug``, or empty for none."""
        return str(self.info.get("observation", ""))

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; see `tensortriage.engines.process.isolated.IsolatedSession.run`. May build first."""
        return self._for(feed).run(feed)

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that the engine shows while it runs.

        Raises:
            TriageError: As for `run`.
        """
        session, arrays = self._for(feed), checked_feed(feed, self.inputs)
        if self._shown is None:  # names are TensorRT's own: they are known once they have been shown
            report, _ = session.answer("watch", arrays, wanted=[])
            self._shown = {name: self._value_of(name) for name in report["shown"]}
        names: dict[str, str] = {}
        for name, value in self._shown.items():  # a value may be shown in two types: rather the one of its own name
            if value in frozenset(values) and (name == value or value not in names):
                names[value] = name
        if not names:
            return
        _, found = session.answer("watch", arrays, wanted=list(names.values()))
        for value, name in names.items():
            if name in found:
                yield value, found[name]

    def plan(self) -> Plan | None:
        """Return the engine's plan; builds for the smallest shapes before the first run."""
        return self._any().plan()

    def tactics(self) -> Sequence[Choice]:
        """Return the tactic of every layer, where the options make the adapter record them."""
        return self._any().tactics()

    def answer(self, question: str, **arguments: Any) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Ask the adapter something of its own; see `tensortriage_engines.tensorrt.worker.adapter`."""
        return self._any().answer(question, **arguments)

    def _any(self) -> IsolatedSession:
        self._check_open()
        return self._built if self._built is not None else self._rebuilt(lambda: self._build(self._ranges))

    def _for(self, feed: Mapping[str, np.ndarray]) -> IsolatedSession:
        """Return an engine for the shapes of a feed, built if need be."""
        self._check_open()
        arrays = checked_feed(feed, self.inputs)
        shapes = {name: arrays[name].shape for name in self._open_inputs}
        shapes |= {name: tuple(map(int, arrays[name].reshape(-1))) for name in self._shape_inputs}
        wider = {name: _widened(self._ranges.get(name), shape) for name, shape in shapes.items()}
        if self._built is None or wider != self._ranges:
            self._ranges, self._shown = wider, None
            return self._rebuilt(lambda: self._build(wider))
        return self._built


def _widened(known: Range | None, shape: tuple[int, ...]) -> Range:
    """Return a range that holds a shape as well; its optimum stays the first shape that was fed.

    Raises:
        RunFailed: When the rank differs.
    """
    if known is None:
        return shape, shape, shape
    low, best, high = known
    if len(low) != len(shape):
        raise RunFailed(
            f"TensorRT needs feeds of equal rank, but got shapes {list(low)} and {list(shape)}",
            slug="profile-rank",
            cure="give feeds whose inputs have the same number of dimensions",
        )
    return (
        tuple(min(pair) for pair in zip(low, shape, strict=True)),
        best,
        tuple(max(pair) for pair in zip(high, shape, strict=True)),
    )
