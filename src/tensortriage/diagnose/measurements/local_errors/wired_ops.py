"""Ops that stay wired to each other, run on the target with golden inputs: differences then originate in them.

Between single ops (`local`) and the whole model there are regions and windows: sets of ops that the target may fuse as
it does in the whole model. Any number of sets that do not overlap fits into one exploded model, so one build measures
them all. Only the ends of a set are observed; marking a value that the set uses itself would break the very fusion that
is looked for. Floors are measured on the same exploded model, so that an error which rounding passes on is allowed.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.diagnose.measurements.local_errors.golden_operands import GoldenOperands, golden_operands
from tensortriage.diagnose.measurements.local_errors.local import parts_of
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.ops import op_limits
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph
from tensortriage.runs.observation.capture import size_of
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.values.store import TensorStore


@frozen_dataclass
class Wired:
    """A set of ops as one piece on the target.

    Attributes:
        nodes: Names, in topological order.
        errors: Relative error of every end that is beyond its limit, by value name.
        ratio: Largest error over floor of any end that no freedom accounts for; 0 when nothing could be compared.
        taken: Freedoms that explain errors at its ends, with that error.
    """

    nodes: tuple[str, ...]
    errors: dict[str, float]
    ratio: float
    taken: Mapping[str, tuple[Explanation, float]] = dataclasses.field(default_factory=dict)

    @property
    def wrong(self) -> bool:
        """Whether any end is beyond its limit."""
        return bool(self.errors)


def runnable(inv: Investigation, feed: Feed) -> tuple[str, ...]:
    """Return the nodes that can be fed with golden values, in topological order."""
    return tuple(name for part in parts_of(inv, inv.golden.of(feed)) for name in part)


def measure_wired(inv: Investigation, feed: Feed, sets: Sequence[Sequence[str]], *, what: str) -> list[Wired]:
    """Run sets of ops that do not overlap, all in one exploded model (in several when memory demands it).

    Args:
        inv: The investigation.
        feed: The feed of the golden values.
        sets: Node names of each.
        what: Completes the progress line, e.g. ``regions``.

    Raises:
        EngineError: When the target refuses or fails the exploded model.
        ModelError: When a set cannot be cut out.
    """
    found: list[Wired] = []
    operands = golden_operands(inv, feed)
    for number, group in enumerate(groups := in_memory(inv, operands.golden, sets), 1):
        words = what + (f", part {number} of {len(groups)}" if len(groups) > 1 else "")
        found += _measure_group(inv, operands, group, words)
    return found


def _measure_group(
    inv: Investigation, operands: GoldenOperands, sets: Sequence[Sequence[str]], what: str
) -> list[Wired]:
    target, golden = inv.question.target, operands.golden
    ops = operands.apart(sets, ends_only=True)
    floors = floors_of(inv.setting(ops.feed, ops.model), ops.values, specs=operands.specs, what=what)
    wanted = ObservedFigures(ops.values, golden, partly=True)
    answer = inv.lab.figures(target, ops.model, ops.feed, wanted, what=f"{what} on {target}").figures
    errors = {name: error_of(figure) for name, figure in answer.metrics.items()}
    setting = inv.setting(ops.feed, ops.model)
    allowed = op_limits(setting, floors, errors, op_types=pieces(inv, sets), what=what)
    errors |= dict.fromkeys(answer.misshapen, math.inf)
    over = {
        name: math.inf if name in answer.misshapen else allowed.over(name, error) or 0.0
        for name, error in errors.items()
    }
    ratios = {name: ratio_of(error, floors.target.get(name)) or 0.0 for name, error in errors.items()}
    graph, found = inv.model.graph, []
    for nodes in sets:
        own = [value for name in nodes for value in graph.node(name).outputs if value in ratios]
        wrong = {value: errors[value] for value in own if over[value] > 1.0}
        taken = {value: (allowed.chosen[value], errors[value]) for value in own if value in allowed.chosen}
        ratio = max((ratios[value] for value in own if value not in taken), default=0.0)
        found.append(Wired(tuple(nodes), wrong, ratio, taken))
    return found


def wrong_ends(inv: Investigation, feed: Feed, sets: Sequence[Wired]) -> dict[str, np.ndarray]:
    """Return the target's results at the wrong ends of sets, to inject them elsewhere."""
    found: dict[str, np.ndarray] = {}
    operands = golden_operands(inv, feed)
    for group in apart(sets):
        ops = operands.apart([item.nodes for item in group], ends_only=True)
        wanted = {value for item in group for value in item.errors}
        made = inv.lab.outputs(inv.question.target, ops.model, ops.feed)
        found |= {name: array for name, array in made.items() if name in wanted}
    return {name: array for name, array in found.items() if array.shape == operands.golden[name].shape}


def in_memory(inv: Investigation, golden: TensorStore, sets: Sequence[Sequence[str]]) -> list[list[Sequence[str]]]:
    """Split sets into groups whose golden tensors fit the batch limit; one group when they all do."""
    graph, limit = inv.model.graph, inv.question.batch_bytes
    groups: list[list[Sequence[str]]] = []
    filled = 0
    for nodes in sets:
        values = {value for name in nodes for value in (*graph.node(name).uses, *graph.node(name).outputs)}
        size = sum(size_of(golden.spec(value)) for value in values if value in golden)
        if not groups or (limit and filled + size > limit // 3):
            groups.append([])
            filled = 0
        groups[-1].append(nodes)
        filled += size
    return groups


def apart(sets: Iterable[Wired]) -> list[list[Wired]]:
    """Split sets into groups within which none overlap."""
    groups: list[tuple[set[str], list[Wired]]] = []
    for item in sets:
        for names, members in groups:
            if names.isdisjoint(item.nodes):
                names.update(item.nodes)
                members.append(item)
                break
        else:
            groups.append(({*item.nodes}, [item]))
    return [members for _, members in groups]


def inner_values(graph: Graph, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the values that one of given nodes makes and another uses, in topological order."""
    names = {*nodes}
    return tuple(
        value
        for node in graph.nodes
        if node.name in names
        for value in node.outputs
        if any(user.name in names for user in graph.consumers(value))
    )


def pieces(inv: Investigation, sets: Sequence[Sequence[str]]) -> Callable[[str], frozenset[str]]:
    """Return a function from a value to the operators of its set."""
    graph = inv.model.graph
    known: dict[str, frozenset[str]] = {}
    for nodes in sets:
        kinds = frozenset(graph.node(name).op_type for name in nodes)
        known.update((value, kinds) for name in nodes for value in graph.node(name).outputs)
    return lambda value: known.get(value, frozenset())
