"""A pack is run as its reader will run it before it is called a repro: a fresh process, and a fresh environment.

That environment sees numpy and the packages that the pack imports, with their requirements, and no other package
installed here: links to them, in a virtual environment made for the trial. Where they do not suffice, as for a script
with imports that only show when it runs, the Python is tried that the engine has here.
"""

import contextlib
import importlib.metadata
import os
import re
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.process.interpreters import REMOTE
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.repro.engine_half import imported_names
from tensortriage.reduce.repro.repro_case import alike, failure_of, load_repro
from tensortriage.reduce.repro.repro_script import CANNOT_RUN, REPRODUCED, RIGHT
from tensortriage.runs.commands.process import CommandLine, Processes
from tensortriage.runs.lab import Lab

SCRIPT = "repro.py"
FRESH_SECONDS = 600.0
"""Longest trial."""
ENDING_SECONDS = 10.0
"""Time beyond the pack's own limit for its engine, so that the pack reports the hang itself."""
_OPTIONAL = frozenset({"torch", "ml_dtypes"})
"""Packages that packs do not need."""


@frozen_dataclass
class PackTrial:
    """The result of running a pack.

    Attributes:
        otherwise: Behaviour that differs from the expected failure; empty where it failed as expected.
        printed: Its output on the terminal.
        place: Its machine and Python, in words.
    """

    otherwise: str
    printed: str = ""
    place: str = ""


def tried(folder: Path, target: EngineSpec, local: Failure, limits: Limits, attempts: int = 1) -> PackTrial:
    """Run a pack where nothing of this process can help it.

    Args:
        folder: The pack.
        target: Spec of its engine.
        local: How it should fail.
        limits: Limits of the engine.
        attempts: Most runs; any that fails will do.
    """
    worker = target.options.get("worker", "")
    if worker.startswith(REMOTE):
        return _on_another_machine(folder, target, local, limits, attempts)
    seconds = min(FRESH_SECONDS, limits.build_seconds + limits.longest_run() + ENDING_SECONDS)
    trial = PackTrial("it was not run")
    with tempfile.TemporaryDirectory(prefix="triage-trial-", ignore_cleanup_errors=True) as place, Processes() as run:
        for words, python in _pythons(folder, worker, Path(place)):
            for _ in range(attempts):
                done = run.run(CommandLine([python, SCRIPT], folder=folder, timeout_seconds=seconds))
                printed = done.printed.text.strip()
                message = _told(done.code, printed)
                trial = PackTrial(message, printed, words)
                if not message:
                    return trial
            if done.code != CANNOT_RUN:
                break
    return trial


def _told(code: int | None, printed: str) -> str:
    """Return, in words, how a run ended that did not fail as expected."""
    if code == REPRODUCED:
        return ""
    last = next((line for line in printed.splitlines() if line.startswith("cannot be run")), "")
    if code == RIGHT:
        return "it passes"
    return f"it could not be run: {last.partition(': ')[2] or printed[-200:] or f'exit code {code}'}"


def _pythons(folder: Path, worker: str, place: Path) -> Iterator[tuple[str, str]]:
    """Yield Pythons to run a pack with, the emptiest first, each with words for it."""
    if worker:
        yield "the engine's own environment", os.path.expanduser(worker)
        return
    with contextlib.suppress(OSError, ValueError):
        yield "a fresh environment", str(_fresh(place, needed(folder)))
    yield "the environment of TensorTriage", sys.executable


def needed(folder: Path) -> list[str]:
    """Return the packages that a pack imports and does not hold."""
    sources = [*folder.glob("*.py"), *folder.rglob("engine/**/*.py")]
    held = {path.stem for path in sources} | {entry.name for entry in folder.glob("engine/*")}
    named = {name.partition(".")[0] for path in sources for name in imported_names(path.read_text(errors="replace"))}
    return sorted((named - held - _OPTIONAL - set(sys.stdlib_module_names)) | {"numpy"})


def _fresh(place: Path, roots: Iterable[str]) -> Path:
    """Make an environment that sees the given packages and their requirements, and return its Python."""
    venv.create(place, symlinks=os.name != "nt", with_pip=False)
    binaries = place / ("Scripts" if os.name == "nt" else "bin")
    site = next(iter((place / "Lib").glob("site-packages")), None) or next(place.glob("lib/python*/site-packages"))
    for distribution in _with_requirements(roots):
        for name in {file.parts[0] for file in distribution.files or () if ".." not in file.parts}:
            source = Path(str(distribution.locate_file(name)))
            if source.exists() and not (site / name).exists():
                (site / name).symlink_to(source, target_is_directory=source.is_dir())
    return binaries / "python"


def _with_requirements(roots: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """Yield the distributions of the given packages, and those that they require."""
    pending, seen = [name for root in roots for name in _distributions(root)], set[str]()
    while pending:
        name = pending.pop()
        if (key := re.sub(r"[-_.]+", "-", name).lower()) in seen:
            continue
        seen.add(key)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            distribution = importlib.metadata.distribution(name)
            yield distribution
            for line in distribution.requires or ():
                if "extra ==" not in line:
                    pending.append(re.split(r"[^\w.-]", line, maxsplit=1)[0])


def _distributions(package: str) -> list[str]:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return [importlib.metadata.distribution(package).metadata["Name"]]
    return importlib.metadata.packages_distributions().get(package, [])


def _on_another_machine(folder: Path, target: EngineSpec, local: Failure, limits: Limits, attempts: int) -> PackTrial:
    """Run the model of a pack in a fresh worker: the pack itself cannot be run on the machine that has the engine."""
    message = ""
    for _ in range(attempts):
        try:
            repro = load_repro(folder)
            with Lab(limits=limits) as lab, lab.session(target, repro.model, sequence=True) as run:
                failure = failure_of(repro, run, signal=local.signal)
        except TriageError as error:
            return PackTrial(f"it could not be run: {error.message}")
        if alike(failure, local):
            return PackTrial("", place=f"a fresh process on {target.options['worker']}")
        message = "it passes" if failure is None else failure.describe()
    return PackTrial(message)
