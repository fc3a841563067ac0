"""pytest's side of the assertions: where cases are kept, and what a report ends with. It imports nothing heavy."""

import sys
from pathlib import Path
from typing import Any

FOLDER = "triage"


def pytest_configure(config: Any) -> None:
    """Keep the cases of tests in pytest's cache, where a test that is run again finds its answers."""
    if hasattr(config, "cache"):
        _Places.folder = Path(config.cache.mkdir(FOLDER))


def pytest_runtest_call() -> None:
    """Tell the assertions the folder, once they are imported."""
    checks: Any = sys.modules.get("tensortriage_fleet.assertions.checks")
    if checks is not None and _Places.folder is not None:
        checks.CASES[:] = [_Places.folder]


class _Places:
    folder: Path | None = None
