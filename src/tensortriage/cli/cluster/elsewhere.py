"""Runs the command at hand on a node of a cluster, and shows what it says there as if it ran here."""

import sys
from collections.abc import Sequence

import click

from tensortriage.cli import own_words
from tensortriage.cli.cluster.option import OPTION
from tensortriage.cli.documents import print_document
from tensortriage.cli.requests import cluster_of
from tensortriage.engines.spec import EngineSpec
from tensortriage.workflows.whole_command import run_on_cluster


def go_elsewhere(where: str, target: str, *, as_json: bool) -> None:
    """Run this command there, show what it said and exit; return when no cluster is named.

    Args:
        where: What ``--cluster`` says; empty for nothing.
        target: Spec of the engine that the command asks.
        as_json: Whether its stdout is a document.
    """
    spec = cluster_of(where)
    if spec is None:
        return
    words = without_cluster(click.get_current_context().find_root().obj)
    click.echo(f"running on the cluster {spec.text}; what it says is shown at its end", err=True)
    done = run_on_cluster(spec, words, target=EngineSpec.parse(target))
    click.echo(done.stderr, err=True, nl=False)
    said = done.stdout.decode(errors="replace")
    if as_json and said:
        print_document(said.removesuffix("\n"))
    else:
        click.echo(said, nl=False)
    sys.exit(done.code if done.code >= 0 else 128 - done.code)


def without_cluster(words: Sequence[str]) -> list[str]:
    """Return a command line without its own ``--cluster``; words of a check stay as they are."""
    left = list(words)
    for place in reversed(range(len(left))):
        option, equals, _ = left[place].partition("=")
        shorter = left[:place] + left[place + (1 if equals else 2) :]
        if option == OPTION and len(own_words(shorter)) < len(own_words(left)):
            left = shorter
    return left
