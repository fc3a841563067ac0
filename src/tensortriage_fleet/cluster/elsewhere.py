"""Runs the current command on a node of a cluster, with its output shown live, as if it ran here.

A command that asks one thing after the other gains nothing from many workers, but it needs a node with the engine, or
with a GPU. If that node is lost, its case lets it resume on another one.
"""

import codecs
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from tensortriage.sdk import EngineSpec, own_words, print_document, resolved_engine
from tensortriage_fleet.cluster.cluster_commands import ClusterCommands, WholeRun
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, needs_of_engine
from tensortriage_fleet.cluster.ray_cluster import open_cluster
from tensortriage_fleet.cluster.relay import STDERR, STDOUT


def go_elsewhere(spec: ClusterSpec, target: str, *, as_json: bool) -> NoReturn:
    """Run this command there, show its output and exit.

    Args:
        spec: What ``--cluster`` says.
        target: Spec of the engine that the command asks.
        as_json: Whether its stdout is a document.
    """
    words = without_cluster(click.get_current_context().find_root().obj)
    click.echo(f"running on the cluster {spec.text}", err=True)
    texts = {stream: codecs.getincrementaldecoder("utf-8")(errors="replace") for stream in (STDOUT, STDERR)}

    def hear(stream: str, new: bytes) -> None:
        if stream == STDERR or not as_json:
            click.echo(texts[stream].decode(new), err=stream == STDERR, nl=False)

    done = run_on_cluster(spec, words, hear, target=EngineSpec.parse(target))
    if as_json and done.stdout:
        print_document(done.stdout.decode(errors="replace").removesuffix("\n"))
    sys.exit(done.code if done.code >= 0 else 128 - done.code)


def run_on_cluster(
    where: ClusterSpec, words: Sequence[str], hear: Callable[[str, bytes], object], *, target: EngineSpec
) -> WholeRun:
    """Run a command of this program on a node that has the resources of its target.

    Args:
        where: The cluster.
        words: The command line after ``triage``.
        hear: Called with the name of a stream, ``stdout`` or ``stderr``, and its new output.
        target: The engine that it asks.

    Raises:
        UsageError: When no node has its resources (``cluster-resource-missing``), the cluster does not answer, or the
            node does not see the folder of this process.
        EngineMissing: When node after node is lost (``cluster-worker-lost``), or the cluster as a whole.
    """
    with contextlib.ExitStack() as entered:
        cluster = entered.enter_context(open_cluster(where))
        on_gpu = resolved_engine(target).on_gpu
        needs = needs_of_engine(target.name, on_gpu=on_gpu, asked=where.needs, offered=cluster.offered())
        cluster.slots(needs)
        commands = entered.enter_context(contextlib.closing(ClusterCommands(cluster, needs)))
        return commands.run_whole([sys.executable, "-P", "-m", "tensortriage", *words], hear)


def without_cluster(words: Sequence[str]) -> list[str]:
    """Return a command line without its own ``--cluster``; words of a check stay as they are."""
    left = list(words)
    for place in reversed(range(len(left))):
        option, equals, _ = left[place].partition("=")
        shorter = left[:place] + left[place + (1 if equals else 2) :]
        if option == "--cluster" and len(own_words(shorter)) < len(own_words(left)):
            left = shorter
    return left
