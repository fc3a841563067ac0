"""Golden files: what people see is kept as a file, so that a change of it is seen in review.

Accept new output with ``ACCEPT_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

import os
from difflib import unified_diff
from pathlib import Path

SWITCH = "ACCEPT_GOLDEN"


def check_golden(actual: str, golden: Path) -> None:
    """Compare text with a golden file, or write the file when the switch is set.

    Raises:
        AssertionError: With a diff and the way to accept it.
    """
    if os.environ.get(SWITCH):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(actual, encoding="utf-8", newline="")
        return
    assert golden.exists(), f"{golden.name} does not exist; write it with {SWITCH}=1"
    with golden.open(encoding="utf-8", newline="") as file:
        expected = file.read()
    diff = "\n".join(unified_diff(expected.splitlines(), actual.splitlines(), "golden", "actual", lineterm=""))
    assert expected == actual, f"{golden.name} differs; accept with {SWITCH}=1 when it should:\n{diff}"
