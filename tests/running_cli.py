"""Running the command line as users do: in a process of its own, in a directory of its own."""

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples"


def triage(*words, cwd, timeout=300, stdin=None):
    """Run ``triage`` and return the finished process, text captured; busy machines need the time."""
    return subprocess.run(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words)],
        cwd=cwd, capture_output=True, text=True, timeout=timeout, stdin=stdin or subprocess.DEVNULL, check=False,
    )  # fmt: skip


def verdict_in(case):
    """Return the content of a case's verdict.json."""
    return json.loads((Path(case) / "verdict.json").read_text())
