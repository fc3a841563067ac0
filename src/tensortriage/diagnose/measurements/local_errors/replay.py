"""Results of wrong ops together, each fed with the others' results.

Injecting local errors (`tensortriage.diagnose.measurements.local_errors.local`) puts an op's result on *golden*
operands into the reference's run. Where many ops are wrong, as all of one kind on an engine with a wrong kernel, the
next wrong op is overridden with its result after a right predecessor, and the errors do not add up as they do in the
target. Here the target runs the wrong ops on the operands that the reference's run has once their results are in it,
again and again: every round carries the errors one wrong op further along each path, so that after as many rounds as
such ops lie on one path, the run is that of an engine that is wrong in these ops and nowhere else.
"""

from collections.abc import Sequence

import numpy as np

from tensortriage.compare.judgement.within import is_decisive
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.measurements.local_errors.injection import injected_runs
from tensortriage.diagnose.measurements.local_errors.local import Local
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph

MOST_ROUNDS = 64
"""Rounds at most: wrong ops on one path of a network with 32 layers that are wrong in two places each."""


@frozen_dataclass
class JointRun:
    """A run of the reference with the target's wrong ops.

    Attributes:
        together: Largest relative error at the outputs.
        explained: Share of the target's output error that this reproduces.
        rounds: How often the wrong ops ran.
    """

    together: float
    explained: float
    rounds: int


def replay(inv: Investigation, feed: Feed, local: Local, values: Sequence[str]) -> JointRun:
    """Run the reference with ops computed by the target, until that explains the failure or nothing changes.

    Args:
        inv: The investigation.
        feed: The feed.
        local: Holds the target's results on golden operands.
        values: Results of the ops; those without an array of the right shape are left out.

    Raises:
        EngineError: When an engine refuses or fails its model.
    """
    graph, golden = inv.model.graph, inv.golden.of(feed)
    values = [name for name in values if name in local.arrays and local.arrays[name].shape == golden[name].shape]
    nodes = list(dict.fromkeys(node.name for name in values if (node := graph.producer(name)) is not None))
    ops = golden_operands(inv, feed).apart([[name] for name in nodes])
    outputs = [spec.name for spec in inv.model.outputs]
    read = [name for name in ops.reads.values() if graph.producer(name) is not None]
    made = {name: np.asarray(local.arrays[name]) for name in values}
    found = JointRun(0.0, 0.0, 0)
    engine = inv.question.target
    with injected_runs(inv, feed, values, shown=read) as runs, inv.lab.session(engine, ops.model) as target:
        for number in range(1, min(MOST_ROUNDS, longest_path(graph, nodes)) + 1):
            run = runs.with_results(made, values)
            seen = {name: run[name] for name in outputs}
            found = JointRun(runs.error(seen), runs.explained(seen), number)
            if is_decisive(found.explained):
                break
            operands = {name: run.get(ops.reads[name], array) for name, array in ops.feed.tensors.items()}
            answered = target(Feed(f"{feed.name} replayed", operands, feed.origin))
            again = {name: answered[name] for name in values}
            if all(np.array_equal(again[name], made[name], equal_nan=True) for name in values):
                break
            made = again
    return found


def longest_path(graph: Graph, names: Sequence[str]) -> int:
    """Return how many of given nodes lie on one path at most."""
    wanted, length = {*names}, dict[str, int]()
    for node in graph.nodes:
        before = max((length.get(name, 0) for name in node.uses), default=0)
        length.update(dict.fromkeys(node.outputs, before + (node.name in wanted)))
    return max(length.values(), default=0)
