"""Which op is wrong in isolation? Every op runs on the target with golden inputs; differences originate there.

All ops are packed into one exploded model (in parts when memory demands), so the answer costs one build and one run.
Local errors are judged against the local floor: the same exploded model run with results rounded to the target's format
(or in float64). The effect of a suspect's error on the outputs is its influence: see
`tensortriage.diagnose.measurements.local_errors.injection`. (The local/influence split is Herbgrind's, PLDI 2018,
carried from scalars to tensors.)
"""

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import beyond_any_share
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.local_errors.golden_operands import GoldenOperands, golden_operands
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.ops import OpLimits, makers, op_limits
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed
from tensortriage.runs.observation.capture import batches, size_of
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

MOST_SUSPECTS = 24
"""Suspects whose influence is measured, the largest ratios first."""

KEPT_BYTES = 64 << 20
"""Up to this much of tensors the local results of all ops are kept, not only of the suspects."""


@dataclasses.dataclass(frozen=True)
class Local:
    """Local figures of every op.

    Attributes:
        metrics: Target on golden inputs against golden outputs, by value name.
        floors: Their floors.
        allowed: Their limits.
        misshapen: Values whose shape or kind of type differs on the target, and how.
        arrays: The target's local results of the suspects, and of all ops that differ where these take little room.
        unseen: Values that the target did not show.
        harmless: Values beyond their limits that were injected, and do not make the error.
    """

    metrics: Mapping[str, Metrics]
    floors: Floors
    allowed: OpLimits
    misshapen: Mapping[str, str]
    arrays: TensorStore
    unseen: Unseen = dataclasses.field(default_factory=Unseen)
    harmless: Collection[str] = ()

    def error(self, value: str) -> float | None:
        """Return the local error of a value; None when not measured."""
        return error_of(self.metrics[value]) if value in self.metrics else None

    @property
    def chosen(self) -> Mapping[str, Explanation]:
        """Freedoms that the target's ops take, by value."""
        return self.allowed.chosen

    @functools.cached_property
    def over(self) -> Mapping[str, float]:
        """Error over its limit of every value that was measured; inf for those of another shape."""
        known = {n: math.inf if self._lost(n) else self.allowed.over(n, self.error(n)) for n in self.metrics}
        found = {name: over for name, over in known.items() if over is not None}
        return {**dict.fromkeys(self.misshapen, math.inf), **found, **dict.fromkeys(self.misshapen, math.inf)}

    def floor_ratio(self, value: str) -> float | None:
        """Return the local error of a value over its floor; None where either is not known, as of another shape."""
        return math.inf if self._lost(value) else ratio_of(self.error(value), self.floors.target.get(value))

    def _lost(self, value: str) -> bool:
        """Return whether whole numbers, all of which the format may change, are far from the right ones."""
        limit, figure = self.allowed.limits.get(value), self.metrics.get(value)
        return limit is not None and figure is not None and beyond_any_share(figure, limit.error)


def local_errors(inv: Investigation, feed: Feed, *, only: Collection[str] | None = None, build: int = 0) -> Local:
    """Measure the local error of every op on the target, one exploded build per part.

    Args:
        inv: The investigation.
        feed: The feed of the golden operands.
        only: Names of nodes to measure; None for all.
        build: Number of the build; another number is another build, for engines whose builds differ.

    Raises:
        EngineError: When the target refuses or fails the exploded model.
    """
    operands = golden_operands(inv, feed)
    parts = parts_of(inv, operands.golden, only=only)
    found = [one_part(inv, operands, nodes, (number, len(parts)), build) for number, nodes in enumerate(parts, 1)]
    return joined(found)


def one_part(
    inv: Investigation, operands: GoldenOperands, nodes: Sequence[str], number: tuple[int, int], build: int
) -> Local:
    """Measure the local errors of given nodes in one exploded build.

    Args:
        inv: The investigation.
        operands: The operands of the ops.
        nodes: Their names.
        number: Which part this is, from 1, and of how many.
        build: Number of the build.
    """
    target, golden = inv.question.target, operands.golden
    ops = operands.apart([[name] for name in nodes])
    where = "each op alone" + (f", part {number[0]} of {number[1]}" if number[1] > 1 else "")
    floors = floors_of(inv.setting(ops.feed, ops.model), ops.values, specs=operands.specs, what=where)
    small = sum(size_of(golden.spec(name)) for name in ops.values) <= KEPT_BYTES
    wanted = ObservedFigures(ops.values, golden, partly=True, floors=floors.target, kept_too=small)
    answer = inv.lab.figures(target, ops.model, ops.feed, wanted, what=f"{where} on {target}", build=build)
    metrics = answer.figures.metrics
    errors = {name: error_of(figure) for name, figure in metrics.items()}
    setting, op_types = inv.setting(ops.feed, ops.model), makers(inv.model.graph)
    allowed = op_limits(setting, floors, errors, op_types=op_types, what=where)
    return Local(metrics, floors, allowed, answer.figures.misshapen, answer.tensors, answer.unseen)


def joined(parts: Sequence[Local]) -> Local:
    """Return the local figures of several parts as one."""
    metrics = {name: figure for part in parts for name, figure in part.metrics.items()}
    fp32 = {name: floor for part in parts for name, floor in part.floors.fp32.items()}
    target = {name: floor for part in parts for name, floor in part.floors.target.items()}
    emulated = {name: figure for part in parts for name, figure in part.floors.emulated.items()}
    arrays = {name: part.arrays[name] for part in parts for name in part.arrays.names()}  # mapped, not read
    source = parts[-1].floors.source if parts else ""
    limits = {name: limit for part in parts for name, limit in part.allowed.limits.items()}
    chosen = {name: freedom for part in parts for name, freedom in part.chosen.items()}
    misshapen = {name: words for part in parts for name, words in part.misshapen.items()}
    unseen = functools.reduce(Unseen.joined, (part.unseen for part in parts), Unseen())
    floors = Floors(fp32, target, emulated, source)
    return Local(metrics, floors, OpLimits(limits, chosen), misshapen, MemoryStore(arrays), unseen)


def parts_of(inv: Investigation, golden: TensorStore, *, only: Collection[str] | None = None) -> list[tuple[str, ...]]:
    """Split the nodes into parts whose golden tensors fit the batch limit; one part when they all do.

    Left out are nodes outside ``only`` (None for all), and those that need a tensor without golden value (of a model
    that the golden run was not made with).
    """
    unknown = {value for value in inv.question.values if value not in golden}
    nodes = {
        node.outputs[0]: node.name
        for node in inv.model.graph.nodes
        if node.op_type != "Constant"
        and node.outputs
        and unknown.isdisjoint(node.uses)
        and (only is None or node.name in only)
    }
    specs: dict[str, ValueSpec] = {name: golden.spec(name) for name in golden.names()}
    limit = inv.question.batch_bytes
    groups = batches(list(nodes), specs, batch_bytes=limit // 3 if limit else None)
    return [tuple(nodes[value] for value in group) for group in groups]


def suspects(local: Local) -> list[tuple[str, float]]:
    """Return values whose local error exceeds its limit, with its ratio to the floor, worst first."""
    found = [(name, local.floor_ratio(name) or math.inf) for name in suspicious(local)]
    return sorted(found, key=lambda item: -item[1])[:MOST_SUSPECTS]


def suspicious(local: Local) -> list[str]:
    """Return every value whose local error exceeds its limit, in the order in which they were measured."""
    return [name for name, over in local.over.items() if over > 1.0]
