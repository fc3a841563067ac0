"""A model with a fault inside a branch of an If: each run is one of the model with the taken branch in its place."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from tensortriage.engines.sdk import Model, Plan, Region, Session, ValueSpec
from tensortriage.testing.sdk import ELSE, THEN, OnnxRuntimeEngine, needed_for, take_branch


class BranchingSession:
    """Both ways through an If, each with the fault where it holds the faulty node; made by `FaultyEngine.compile`.

    Args:
        base: Session that computes the conditions.
        original: The model.
        holder: Name of the If, a node of its main graph.
        build: Builds the model with a branch in place of the If.
    """

    def __init__(
        self, base: OnnxRuntimeEngine, original: Model, holder: str, build: Callable[[Model], Session]
    ) -> None:
        graph = original.graph
        self.inputs: Sequence[ValueSpec] = original.inputs
        self.outputs: Sequence[ValueSpec] = original.outputs
        self._nodes = graph.nodes
        self._condition = graph.node(holder).inputs[0]
        self._known = {self._condition: graph.weight(self._condition)} if self._condition in graph.constants else {}
        self._deciding: Session | None = None
        with ExitStack() as opened:
            if not self._known and graph.producer(self._condition) is not None:
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="triage-faulty-")))
                path = needed_for(original, [self._condition]).save(folder / "condition.onnx")
                self._deciding = opened.enter_context(closing(base.compile(path, {"optimization": "none"})))
            self._ways = {
                way: opened.enter_context(closing(build(take_branch(original, holder, branch))))
                for way, branch in ((True, THEN), (False, ELSE))
            }
            self._opened = opened.pop_all()

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once, the way that the feed takes; errors as of `FaultySession.run`."""
        decided = self._run(self._deciding, feed) if self._deciding is not None else {**feed, **self._known}
        return self._run(self._ways[bool(np.reshape(decided[self._condition], -1)[0])], feed)

    def plan(self) -> Plan:
        """Return one region per node of the main graph."""
        return Plan(tuple(Region(node.name, (node.name,), kind=node.op_type) for node in self._nodes))

    def close(self) -> None:
        """Release both ways."""
        self._opened.close()

    @staticmethod
    def _run(session: Session, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return session.run({spec.name: feed[spec.name] for spec in session.inputs})
