"""Runs the command at hand on a node of a cluster, and shows what it says there while it runs, as if it ran here."""

import codecs
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from tensortriage.cli import own_words
from tensortriage.cli.documents import print_document
from tensortriage.cluster.cluster_spec import ClusterSpec
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.commands.relay import STDERR, STDOUT
from tensortriage.workflows.whole_command import run_on_cluster


def go_elsewhere(spec: ClusterSpec, target: str, *, as_json: bool) -> NoReturn:
    """Run this command there, show what it says and exit.

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


def without_cluster(words: Sequence[str]) -> list[str]:
    """Return a command line without its own ``--cluster``; words of a check stay as they are."""
    left = list(words)
    for place in reversed(range(len(left))):
        option, equals, _ = left[place].partition("=")
        shorter = left[:place] + left[place + (1 if equals else 2) :]
        if option == "--cluster" and len(own_words(shorter)) < len(own_words(left)):
            left = shorter
    return left
