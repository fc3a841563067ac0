"""The cost of a choice of nodes, without a build for each: every candidate is one run of one session.

The session is that of a model with switches: its inputs decide whether nodes compute in the format
(`tensortriage.model.mixed_precision.switchable_rounding`), or read quantized operands (as a registered number format
makes it). The numbers are exact for an engine that rounds every result once; whether a real engine does better
(fusions) or worse (accumulation in the format, faults) only that engine can show.
"""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import PLAIN
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.precision.goal import GoalReading, GoalSample, PrecisionGoal, identity_of
from tensortriage.precision.selection.influence import Influences, influences
from tensortriage.precision.selection.node_choice import KeptNodes, choose
from tensortriage.runs.lab import Lab
from tensortriage.values.text import duration


@dataclasses.dataclass(frozen=True)
class Switches:
    """A model whose nodes are switched by its inputs.

    Attributes:
        model: The model with its switches.
        feed: Returns their values for a choice of kept nodes.
        items: Nodes to choose from, in topological order.
    """

    model: Model
    feed: Callable[[Collection[str]], Mapping[str, np.ndarray]]
    items: Sequence[str]


class Emulation:
    """Predicts the loss of the outputs for any set of kept nodes; must be closed.

    Args:
        of: The model, and how its nodes are switched.
        samples: Feeds to run, with golden outputs.
        goal: The goal for the outputs.
        lab: Runs the model, and keeps the readings.
        seconds: Time to measure the effect of each node alone; None for no limit.
    """

    def __init__(
        self,
        of: Switches,
        samples: Sequence[GoalSample],
        goal: PrecisionGoal,
        *,
        lab: Lab,
        seconds: float | None = None,
    ) -> None:
        outputs = list(samples[0].outputs)
        whole = [spec.name for spec in of.model.outputs] == outputs
        self._model = of.model if whole else select_outputs(of.model, outputs)
        self._switches = of.feed
        self.items = tuple(of.items)
        self.goal = goal
        self._samples = tuple(samples)
        self._identity = identity_of(samples, goal)
        self._lab = lab
        self._seconds = seconds
        self._known: dict[frozenset[str], GoalReading] = {}
        self._took = 0.0
        self.runs = 0
        self._open = contextlib.ExitStack()
        self._run = self._open.enter_context(lab.session(PLAIN, self._model, sequence=True))

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading of a set of kept nodes."""
        wanted = frozenset(kept)
        if wanted not in self._known:
            question = f"emulated, {len(wanted)} nodes kept"
            inputs = (PLAIN, self._model, self._identity, sorted(wanted))
            self._known[wanted] = self._lab.derived(GoalReading, question, *inputs).of(lambda: self._measured(wanted))
        return self._known[wanted]

    @property
    def known(self) -> Mapping[frozenset[str], GoalReading]:
        """The readings so far, by kept nodes."""
        return self._known

    def only(self, low: Collection[str]) -> GoalReading:
        """Return the reading when nothing but some nodes computes in the format."""
        return self.read(frozenset(self.items).difference(low))

    def _measured(self, kept: frozenset[str]) -> GoalReading:
        started, switches = time.perf_counter(), self._switches(kept)
        reading = self.goal.judge(
            self._samples, [self._run({**sample.feed.tensors, **switches}) for sample in self._samples]
        )
        self.runs += 1
        self._took += time.perf_counter() - started
        return reading

    @functools.cached_property
    def influences(self) -> Influences:
        """Each node's influence alone, as far as there was time to measure it."""
        started = time.perf_counter()

        def progress(runs: int, left: float) -> None:
            there = duration(left * self._took / max(self.runs, 1))
            self._lab.progress(f"measuring the influence of each node's rounding: {runs} runs, about {there} to go")

        return influences(
            self.items,
            self.only,
            relative=not self.goal.limits,
            expired=lambda: self._seconds is not None and time.perf_counter() - started > self._seconds,
            progress=progress,
        )

    def fewest(self, strict: float = 1.0) -> KeptNodes | None:
        """Return the fewest nodes to keep; None when not even keeping all of them is enough.

        Args:
            strict: Good enough is a ratio of 1 / this; see `choose`.
        """
        nothing = self.read(())
        if nothing.within and strict == 1.0:
            return KeptNodes((), nothing)
        return choose(self.influences, self.read, strict=strict, limited=self.goal.limits)

    def close(self) -> None:
        """Release the session."""
        self._open.close()
