"""Does anything pile up? A thousand checks in one process, and two hundred commands in a row.

    python bench/soak.py [--checks 1000] [--commands 200]

The checks compile and run a model in ONNX Runtime, in the emulator, in a worker and in the float64 engine, and are kept
in a case. What the process holds (memory, file handles, threads, children, temporary files) is counted after a tenth of
them and at the end. After the commands no process and no file may be left that was not there before.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
from compiled import compile_packages

from tensortriage.engines.process.workers import close_idle
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace
from tensortriage_testing import feed_for, residual_dag, save_model

NODES, MOST_GROWTH = 12, 1.05
ENGINES = ("onnxruntime", "emulate:precision=fp16", "script:plain.py", "float64")
SCRIPT = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine): pass\n"


@dataclasses.dataclass(frozen=True)
class Held:
    """What a process holds: resident bytes, and numbers of things."""

    resident_bytes: int
    handles: int
    threads: int
    children: int
    temporary_files: int

    @classmethod
    def now(cls, temporary: Path) -> "Held":
        """Count."""
        process = psutil.Process()
        children = process.children(recursive=True)
        resident = sum(one.memory_info().rss for one in (process, *children) if one.is_running())
        files = sum(1 for _ in temporary.rglob("*"))
        return cls(resident, process.num_fds(), process.num_threads(), len(children), files)

    def excess(self, before: "Held") -> list[str]:
        """Return what is more than it was, in words."""
        found = []
        if self.resident_bytes > MOST_GROWTH * before.resident_bytes:
            found.append(f"memory grew from {before.resident_bytes >> 20} to {self.resident_bytes >> 20} MB")
        for field in ("handles", "threads", "children", "temporary_files"):
            if getattr(self, field) > getattr(before, field):
                found.append(f"{field} grew from {getattr(before, field)} to {getattr(self, field)}")
        return found


def soak_checks(folder: Path, checks: int) -> tuple[Held, Held]:
    """Put so many checks to engines in this process, and return what it held after a tenth of them and at the end.

    Args:
        folder: Where the model, the case and temporary files go.
        checks: How many.
    """
    message = residual_dag(NODES, seed=0)
    path = save_model(message, folder / "m.onnx")
    (folder / "plain.py").write_text(SCRIPT)
    temporary = Path(tempfile.gettempdir())
    feed = Feed("feed", feed_for(message), Origin.REAL)
    specs = [EngineSpec.parse(text.replace("plain.py", str(folder / "plain.py"))) for text in ENGINES]
    early = None
    with Case(folder / "case") as case, Workspace(case.temporary) as workspace:
        for number in range(checks):
            spec = specs[number % len(specs)]

            def ask(spec: EngineSpec = spec) -> float:
                with Runner(spec, Model.load(path), workspace=workspace) as runner:
                    return float(sum(np.abs(value).sum() for value in runner.run(feed).values()))

            case.checks.remember(f"{number}", f"check {number}", float, ask)
            if number == max(checks // 10, len(specs) * 2) - 1:
                early = Held.now(temporary)
        late = Held.now(temporary)
    close_idle()
    assert early is not None, "too few checks"
    return early, late


def soak_commands(folder: Path, commands: int) -> list[str]:
    """Run so many commands one after the other, and return what they left behind, in words."""
    model = save_model(residual_dag(NODES, seed=0), folder / "m.onnx")
    np.savez(folder / "m.npz", **feed_for(residual_dag(NODES, seed=0)))
    (folder / "plain.py").write_text(SCRIPT)
    for name in ("tmp", "home"):
        (folder / name).mkdir()
    env = os.environ | {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    lines = [
        ["run", model, "--target", "onnxruntime", "--inputs", "m.npz"],
        ["run", model, "--target", "script:plain.py", "--inputs", "m.npz"],
        ["convert", model, "--precision", "fp16", "-o", "o.onnx"],
        ["inspect", "model", model],
        ["diagnose", model, "--target", "emulate:precision=fp16", "--inputs", "m.npz"],
    ]
    shared = Path("/dev/shm")
    before = set(shared.glob("triage-*")) if shared.exists() else set()
    files: set[Path] = set()
    found = []
    for number in range(commands):
        done = subprocess.run(
            [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, lines[number % len(lines)])],
            cwd=folder, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            found.append(f"command {number} ended with {done.returncode}: {done.stderr[-300:]}")
        if number == len(lines) - 1:
            files = set(folder.rglob("*"))
    found += [f"left {path}" for path in set(folder.rglob("*")) - files if commands > len(lines)]
    found += [f"left {path}" for name in ("tmp", "home") for path in (folder / name).rglob("*")]
    found += [f"left process {one.pid}" for one in psutil.process_iter() if _works_in(one, folder)]
    return found + [f"left {path}" for path in set(shared.glob("triage-*")) - before if _is_ours(path)]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd().startswith(str(folder)) and process.pid != os.getpid()
    except psutil.Error:
        return False


def _is_ours(path: Path) -> bool:
    """Whether nobody holds the lock of a folder for tensors: another command's is none of ours."""
    import fcntl

    try:
        with open(path / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checks", type=int, default=1000)
    parser.add_argument("--commands", type=int, default=200)
    given = parser.parse_args(arguments)
    compile_packages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("checks", "commands", "tmp"):
            (folder / place).mkdir()
        tempfile.tempdir = str(folder / "tmp")
        early, late = soak_checks(folder / "checks", given.checks)
        tempfile.tempdir = None
        print(f"after a tenth of {given.checks} checks: {early}")
        print(f"after all of them:          {late}")
        found = late.excess(early) + soak_commands(folder / "commands", given.commands)
    print(f"{given.commands} commands; " + ("; ".join(found) or "nothing piled up"))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
