"""Engines that are known by a name as those of other packages are: by an entry point."""

from pathlib import Path

import pytest


def register(monkeypatch: pytest.MonkeyPatch, folder: Path, **engines: str) -> None:
    """Make classes, written ``module:Class``, engines of these names for the rest of a test."""
    info = folder / "registered_engines-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: registered-engines\nVersion: 1\n")
    rows = [f"{name} = {place}\n" for name, place in engines.items()]
    (info / "entry_points.txt").write_text("[tensortriage.engines]\n" + "".join(rows))
    monkeypatch.syspath_prepend(folder)
