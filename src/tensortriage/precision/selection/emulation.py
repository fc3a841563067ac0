"""What a mixed precision costs, without an engine: every candidate is one run of one session.

The session is that of `tensortriage.model.mixed_precision.switchable_rounding`: nodes compute in the format or not as
its inputs say. The numbers are exact for an engine that rounds every result once; what a real engine does better
(fusions) or worse (accumulation in the format, faults) is for the engine itself to show.
"""

import time
from collections.abc import Callable, Collection, Sequence

from tensortriage.engines.spec import PLAIN
from tensortriage.model.mixed_precision.switchable_rounding import Switched
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.precision.goal import GoalReading, GoalSample, PrecisionGoal
from tensortriage.precision.selection.pass_through_nodes import Islands
from tensortriage.runs.check_cache import CheckCache, digest
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace


class Emulation:
    """Answers for any set of kept nodes what the outputs lose.

    Args:
        switched: The model with its switches.
        islands: Completes sets of kept nodes.
        fixed: Nodes that stay in the higher precision whatever is chosen, because the format has no way to write them.
        samples: What to run on.
        goal: What is asked of the outputs.
        workspace: For the model file.
        cache: Where readings are kept.
        identity: Digest of all that readings depend on besides the kept nodes.
        heard: Told the seconds of every run that was really made.
    """

    def __init__(
        self,
        switched: Switched,
        islands: Islands,
        *,
        fixed: Collection[str],
        samples: Sequence[GoalSample],
        goal: PrecisionGoal,
        workspace: Workspace,
        cache: CheckCache,
        identity: str,
        heard: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self.items = tuple(name for name in switched.rounding if name not in set(fixed))
        self.goal = goal
        self.runs = 0
        self._switched = switched
        self._islands = islands
        self._fixed = frozenset(fixed)
        self._samples = tuple(samples)
        self._cache = cache
        self._identity = identity
        self._heard = heard
        self._known: dict[frozenset[str], GoalReading] = {}
        outputs = list(samples[0].outputs)
        own: Model = switched.model
        model = own if [spec.name for spec in own.outputs] == outputs else select_outputs(own, outputs)
        self._runner = Runner(PLAIN, model, workspace=workspace)

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading of a set of kept nodes."""
        wanted = frozenset(kept)
        if wanted not in self._known:
            key = digest(self._identity, "emulated", sorted(wanted))
            found = self._cache.get(key, GoalReading)
            if found is None:
                started = time.perf_counter()
                found = self._run(wanted)
                seconds = time.perf_counter() - started
                self._cache.put(key, f"emulated, {len(wanted)} nodes kept", found, seconds=seconds)
                self.runs += 1
                self._heard(seconds)
            self._known[wanted] = found
        return self._known[wanted]

    def only(self, low: Collection[str]) -> GoalReading:
        """Return the reading when nothing but some nodes computes in the format."""
        return self.read(frozenset(self.items).difference(low))

    def _run(self, kept: frozenset[str]) -> GoalReading:
        wide = kept | self._fixed
        switches = self._switched.feed(wide | self._islands.carriers(wide))
        results = [self._runner.run({**sample.feed.tensors, **switches}) for sample in self._samples]
        return self.goal.judge(self._samples, results)

    def close(self) -> None:
        """Release the session."""
        self._runner.close()
