"""Environments of engines and their Pythons, as ``triage engines install`` makes them.

An environment counts once its note is written, which is last.
"""

import os
from pathlib import Path

from tensortriage.errors import UsageError

ENVIRONMENT_NOTE = "tensortriage-environment.json"
"""The file that describes an environment."""


def environments_folder() -> Path:
    """Return the folder of environments: ``$XDG_DATA_HOME``, or ``~/.local/share`` (XDG base directories 0.8).

    Raises:
        UsageError: When the user has no home either (``home-missing``).
    """
    home = os.environ.get("XDG_DATA_HOME", "")
    if not Path(home).is_absolute():
        home = os.path.expanduser("~/.local/share")
    if not Path(home).is_absolute():
        raise UsageError(
            "there is no data folder, because this user has no home directory",
            slug="home-missing",
            cure="set XDG_DATA_HOME to a folder",
        )
    return Path(home) / "tensortriage" / "engines"


def installed_python(engine: str) -> str:
    """Return the Python of the environment that was made for an engine's default version; empty without one."""
    try:
        folder = environments_folder() / engine
    except UsageError:
        return ""
    python = folder / "bin" / "python"
    return str(python) if (folder / ENVIRONMENT_NOTE).is_file() and python.exists() else ""
