"""Engines and timings cached in a folder by content: a resumed case runs the very engine that it found wrong.

Two builds of one model may differ, so building again would be another experiment. And most of a build's time goes into
timing tactics: candidates that share their layers share the timings, and get the tactics of the engine in question.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.engines.sdk import placed, read_regular

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

_NOT_KEPT = ("load_engine", "load_tactics", "record_tactics", "timing_cache", "calibration_cache", "calibration_feeds")
"""Options that load or write other files than the model: builds with them are not cached."""
_ELSEWHERE = ("worker", "model_name")
_TOLD = ("version", "device", "compute", "driver")


class Shelf:
    """A folder of engines.

    Args:
        folder: Made when something is put there.
        engines: Whether engines are cached, or timings alone.
    """

    def __init__(self, folder: Path, *, engines: bool = True) -> None:
        self.folder = folder
        self.engines = engines

    def key(self, model: "Model", words: Mapping[str, str], features: Mapping[str, Any]) -> str:
        """Return the identity of a build; empty when it is not to be cached.

        Args:
            model: The user's model.
            words: Options for the adapter.
            features: Release and device of the build.
        """
        if any(word in words for word in _NOT_KEPT):
            return ""
        own = {key: value for key, value in words.items() if key not in _ELSEWHERE}
        names = [[node.name, *node.inputs, *node.outputs] for node in model.graph.nodes]
        parts = [model.fingerprint, names, sorted(own.items()), [str(features.get(key)) for key in _TOLD]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def find(self, key: str) -> tuple[Path, Mapping[str, Any]] | None:
        """Return the engine of a build and its report; None when there is none."""
        engine, facts = self._paths(key)
        try:
            info: Mapping[str, Any] = json.loads(read_regular(facts))
        except (OSError, ValueError, RecursionError):
            return None
        return (engine, info) if engine.is_file() else None

    def put(self, key: str, engine: bytes | memoryview, info: Mapping[str, Any]) -> None:
        """Cache an engine and its report."""
        path, facts = self._paths(key)
        replace_file(path, engine)
        replace_file(facts, json.dumps(info).encode())

    def timing_cache(self, features: Mapping[str, Any]) -> Path:
        """Return the file of timings for a release and a device."""
        text = json.dumps([str(features.get(key)) for key in _TOLD])
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.timings"

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self.folder / f"{key}.engine", self.folder / f"{key}.json"


def replace_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file in one step, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placed(path) as file:
        file.write(data)
