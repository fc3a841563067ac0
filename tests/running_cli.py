"""Running the command line as users do: in a process of its own, in a directory of its own."""

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import processor_time
from command_server import CommandServer
from documents import check_documents
from forked_workers import FRESH

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples"


def triage(*words, cwd, timeout=300, stdin=None):
    """Run ``triage`` and return the finished process, text captured; busy machines need the time.

    Raises:
        AssertionError: When a document that it wrote is not as its schema says.
    """
    done = _done([str(word) for word in words], cwd=cwd, timeout=timeout, stdin=stdin)
    check_documents(done.stdout, cwd)
    return done


def _done(words, *, cwd, timeout, stdin):
    forking = None if os.environ.get(FRESH) else server()
    if forking is not None and forking.can_run():
        return forking.run(words, cwd=cwd, timeout=timeout, stdin=stdin)
    return subprocess.run(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", *words],
        cwd=cwd, capture_output=True, text=True, timeout=timeout, stdin=stdin or subprocess.DEVNULL, check=False,
    )  # fmt: skip


@functools.cache
def server():
    """Return what starts commands, and workers, quickly; None where there is no such."""
    if not hasattr(os, "memfd_create"):
        return None
    with processor_time.common():
        started = CommandServer()
        atexit.register(started.close)
        started.run(["--version"], cwd=REPOSITORY, timeout=300, stdin=None)  # it has imported what it is to
    return started


def verdict_in(case):
    """Return the content of a case's verdict.json."""
    return json.loads((Path(case) / "verdict.json").read_text())
