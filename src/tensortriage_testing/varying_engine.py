"""An engine whose builds differ: for every node it picks one of several tactics, and one tactic of one node is faulty.

Intermittent failures of real engines come about in that way: timing chooses the kernel of a layer, so a wrong kernel is
in some builds and not in others. Here the choice is drawn at random. Choices can be recorded and forced, as with real
engines. The fault is any of `tensortriage_testing.Fault`, in the words of `FaultyEngine`::

    # varying.py
    from tensortriage_testing import VaryingEngine as Engine

    triage debug build model.onnx --target script:varying.py,node=/fc/Gemm,kind=scale --inputs real.npz
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    Availability,
    BuildFailed,
    Choice,
    Limits,
    Model,
    Options,
    PinsTactics,
    Plan,
    Region,
    ReportsPrecision,
    SavesEngines,
    Session,
    TellsTactics,
    VariesBuilds,
    read_options,
)
from tensortriage_testing.faulty_engine import FaultyEngine

_OWN = ("tactics", "draws", "also", "load_tactics", "save_engine", "timing_cache", "keyed")
FAULTY_TACTIC = 0


class VaryingEngine(ReportsPrecision, VariesBuilds, PinsTactics, SavesEngines):
    """ONNX Runtime behind tactics that are drawn again in every build; the fault shows with tactic 0 of its node."""

    name: ClassVar[str] = "varying"
    options: ClassVar[Mapping[str, str]] = {
        **FaultyEngine.options,
        "tactics": "tactics of every node (default 3)",
        "draws": "file that counts the builds; with it the sequence of draws is the same every time",
        "also": "node that must have drawn tactic 0 as well for the fault to show",
        "load_tactics": "file of tactics (tensortriage.tactics/1) to take instead of drawing",
        "timing_cache": "file of the keys that tactics can be given for; read if it exists, and written",
        "keyed": "true: tactics are entries of a timing cache, and can be given only where it has them",
        "save_engine": "file to write the engine to (here: its choices)",
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._faulty = FaultyEngine(limits=limits)

    def availability(self) -> Availability:
        """Return whether ONNX Runtime is usable."""
        return self._faulty.availability()

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision that results are rounded to."""
        return self._faulty.precision({key: value for key, value in options.items() if key not in _OWN})

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Builds differ unless there is one tactic only."""
        return read_options(options, self.options).integer("tactics", 3, minimum=1) > 1

    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options unchanged: tactics are always reported."""
        return options

    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Return options that take the tactics of a file."""
        return {**options, "load_tactics": str(record)}

    def saving(self, options: Mapping[str, str], path: Path) -> Mapping[str, str]:
        """Return options that write the engine to a file."""
        return {**options, "save_engine": str(path)}

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build a model with drawn or given tactics.

        Raises:
            UsageError: For an unknown option, or a fault that cannot be planted.
            BuildFailed: When a given tactic does not exist.
        """
        given = read_options(options, self.options)
        loaded = Model.load(model)
        names = [node.name for node in loaded.graph.nodes]
        drawn = _drawn(names, given)
        needed = {given.text("node"), given.text("also", given.text("node"))}
        shows = all(drawn.get(name, FAULTY_TACTIC) == FAULTY_TACTIC for name in needed)
        keep = ("precision",) if not shows else tuple(FaultyEngine.options)
        session = self._faulty.compile(model, {key: value for key, value in options.items() if key in keep})
        if "save_engine" in given:
            made_of = {"model": hashlib.sha256(model.read_bytes()).hexdigest(), "tactics": drawn}
            Path(given.text("save_engine")).write_text(json.dumps(made_of))
        if "timing_cache" in given:
            Path(given.text("timing_cache")).write_text(json.dumps(names))
        return VaryingSession(session, drawn, keyed=given.text("keyed") == "true")


class VaryingSession(TellsTactics):
    """A model built with one tactic for every node; made by `VaryingEngine.compile`."""

    def __init__(self, session: Session, drawn: Mapping[str, int], *, keyed: bool) -> None:
        self._keyed = keyed
        self.inputs, self.outputs = session.inputs, session.outputs
        self._session = session
        self._drawn = drawn

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; wrong when the faulty tactic was drawn."""
        return self._session.run(feed)

    def plan(self) -> Plan | None:
        """Return one region per node, with its tactic."""
        return Plan(tuple(Region(n, (n,), implementation=f"tactic_{t}") for n, t in self._drawn.items()))

    def tactics(self) -> Sequence[Choice]:
        """Return the drawn tactics."""
        keys = dict.fromkeys(self._drawn, "") if not self._keyed else {name: f"key of {name}" for name in self._drawn}
        return [Choice(n, f"{t:#x}", f"tactic_{t}", nodes=(n,), key=keys[n]) for n, t in self._drawn.items()]

    def close(self) -> None:
        """Release the session."""
        self._session.close()


def _drawn(names: Sequence[str], given: Options) -> dict[str, int]:
    many = given.integer("tactics", 3, minimum=1)
    rng = random.Random(_count(Path(given.text("draws")))) if "draws" in given else random.Random()
    drawn = {name: rng.randrange(many) for name in names}
    if "load_tactics" in given:
        wanted = json.loads(Path(given.text("load_tactics")).read_text())["choices"]
        known = _keys(given) if given.text("keyed") == "true" else names
        for choice in wanted:
            if choice["layer"] not in known:
                raise BuildFailed(f"the timing cache has no entry for '{choice['layer']}'", slug="build-failed")
            tactic = int(choice["tactic"], 16)
            if choice["layer"] in drawn and tactic >= many:
                raise BuildFailed(f"node '{choice['layer']}' has no tactic {tactic}", slug="build-failed")
            if choice["layer"] in drawn:
                drawn[choice["layer"]] = tactic
    return drawn


def _keys(given: Options) -> Sequence[str]:
    """Return the nodes that the timing cache has entries for."""
    path = Path(given.text("timing_cache"))
    return tuple(json.loads(path.read_text())) if "timing_cache" in given and path.is_file() else ()


def _count(path: Path) -> int:
    """Return how many builds a file has counted, and count one more."""
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    return count
