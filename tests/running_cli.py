"""Running the command line as users do: in a process of its own, in a directory of its own."""

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from command_server import CommandServer
from documents import check_documents

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
    server = _server()
    if server is not None and server.can_run():
        return server.run(words, cwd=cwd, timeout=timeout, stdin=stdin)
    return subprocess.run(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", *words],
        cwd=cwd, capture_output=True, text=True, timeout=timeout, stdin=stdin or subprocess.DEVNULL, check=False,
    )  # fmt: skip


@functools.cache
def _server():
    """Return what starts commands quickly; None where every process is to be fresh."""
    if os.environ.get("TRIAGE_FRESH_COMMANDS") or not hasattr(os, "memfd_create"):
        return None
    server = CommandServer()
    atexit.register(server.close)
    return server


def verdict_in(case):
    """Return the content of a case's verdict.json."""
    return json.loads((Path(case) / "verdict.json").read_text())
