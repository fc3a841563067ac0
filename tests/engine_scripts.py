"""Engines written as scripts by tests: each text is one file for all tests of a process, so that one worker serves all.

A worker that has nothing to do is kept for the next model of the same script, and starting one costs more processor
time than most tests. A script is executed again for every model, so nothing remains there of an earlier test.
"""

import functools
import hashlib
import tempfile
from pathlib import Path

FAULTY = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"


def engine_file(text=FAULTY):
    """Return the path of a script that holds the text."""
    path = Path(_folder().name) / f"engine-{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return path


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="engines-of-tests-")  # removed when the process ends
