"""Local errors of a model too large for one build: one copy of every repeated block first, then its suspects' copies.

The layers of a transformer are alike, and so are their kernels: a fault in one is a fault in most. So where the ops of
a model do not fit into one exploded build, those of one copy of each block run first, with all that are in no block;
then the other instances of those that turn out wrong. If that does not explain the failure, the others run: a fault in
a single instance is found too, only later.
"""

from tensortriage.diagnose.measurements.local_errors.local import Local, joined, local_errors, parts_of, suspicious
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.inputs.feed import Feed
from tensortriage.model.similarity.instances import Instances


def by_representatives(inv: Investigation, feed: Feed) -> Local | None:
    """Measure representatives of repeated blocks, and all instances of those that are wrong.

    Returns:
        None when one build holds every op, nothing repeats, or no representative is wrong: then ask for all.

    Raises:
        EngineError: When the target refuses or fails the exploded model.
    """
    golden = inv.golden.of(feed)
    if len(parts_of(inv, golden)) < 2:
        return None
    repeated = Instances.of(inv.model)
    if not repeated.alike:
        return None
    graph = inv.model.graph
    first = [node.name for node in graph.nodes if repeated.copies.get(node.name, 0) == 0]
    inv.lab.progress(f"measuring {len(first)} of {len(graph.nodes)} ops: the first copy of every repeated block")
    local = local_errors(inv, feed, only=first)
    wrong = {made.name for value in suspicious(local) if (made := graph.producer(value)) is not None}
    if not wrong:
        return None
    others = {name for node in wrong for name in repeated.alike.get(node, ())} - set(first)
    return joined([local, local_errors(inv, feed, only=others)]) if others else local
