"""A whole command as one task of a cluster, for work that asks one thing after the other.

Such a command gains nothing from many workers, but it needs a node with the engine, or with a GPU. What it keeps in its
case makes it go on where it stood, should that node be lost.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence

from tensortriage.cluster.cluster_spec import ClusterSpec, needs_of_engine
from tensortriage.cluster.ray_cluster import open_cluster
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.commands.cluster_commands import ClusterCommands, WholeRun


def run_on_cluster(
    where: ClusterSpec, words: Sequence[str], hear: Callable[[str, bytes], object], *, target: EngineSpec
) -> WholeRun:
    """Run a command of this program on a node that has what its target needs.

    Args:
        where: The cluster.
        words: The command line after ``triage``.
        hear: Is given the name of a stream, ``stdout`` or ``stderr``, and what has come there.
        target: The engine that it asks.

    Raises:
        UsageError: When no node has what it needs (``cluster-resource-missing``), the cluster does not answer, or the
            node does not see the folder of this process.
        EngineMissing: When node after node is lost (``cluster-worker-lost``), or the cluster as a whole.
    """
    with contextlib.ExitStack() as entered:
        cluster = entered.enter_context(open_cluster(where))
        on_gpu = resolve(target).on_gpu
        needs = needs_of_engine(target.name, on_gpu=on_gpu, asked=where.needs, offered=cluster.offered())
        cluster.slots(needs)
        commands = entered.enter_context(contextlib.closing(ClusterCommands(cluster, needs)))
        return commands.run_whole([sys.executable, "-P", "-m", "tensortriage", *words], hear)
