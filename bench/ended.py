"""How long does a command take to end once it is told to? SIGTERM and Ctrl-C come at random moments of its run.

    python bench/ended.py [diagnose reduce ...] [--times 20] [--seed N]

Each command works in a folder of its own on the model and engines of `killed`, or as the table here says. SIGTERM goes
to the process that the user started, as from a supervisor; Ctrl-C to its whole process group, as from a terminal.
Must hold: it has ended within two seconds, with 130, its own exit code or the signal; it told no traceback; a second
later no process that it started is left, and no temporary file.
"""

import argparse
import contextlib
import dataclasses
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import killed
import numpy as np
from compiled import compile_packages

FURTHER = {
    "run": (["run", "m.onnx", "--target", "openvino", "--onnx-outputs", "mark", "all"], []),
    "worker": (["diagnose", "m.onnx", "--target", "openvino:precision=bf16"], []),
    "check": (["debug", "reduce", "m.onnx", "-o", "r.onnx", "--check", "sleep 0.3; false"], []),
    "int8": (["convert", "m.onnx", "--int8", "-o", "c.onnx"], []),
    "sanitize": (["surgeon", "sanitize", "m.onnx", "--fold-constants", "--cleanup", "-o", "c.onnx"], []),
    "extract": (["surgeon", "extract", "m.onnx", "--op-types", "MatMul", "Add", "-o", "c.onnx"], []),
    "inspect": (["inspect", "model", "m.onnx", "--show", "layers", "attrs", "weights"], []),
    "plan": (["inspect", "plan", "m.onnx", "--target", "openvino"], []),
    "lint": (["check", "lint", "m.onnx"], []),
    "data": (["data", "convert", "big.npz", "-o", "big.json"], []),
    "torch": (["diagnose", "--torch", "network.py:make", "--target", "onnxruntime"], []),
}
NETWORK = """
import torch
def make():
    return torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)]).eval(), (torch.ones(2, 64),)
"""
WITHOUT_INPUTS = {"inspect", "plan", "lint", "data", "torch", "check", "sanitize", "extract"}
ALLOWED_SECONDS, AFTERWARDS_SECONDS = 2.0, 1.0
MARK = "TRIAGE_BENCH_ENDED"


class Trial(killed.Trial):
    """A command whose processes carry a mark in their environment."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        np.savez(self.work / "big.npz", x=np.random.default_rng(0).normal(size=(2_000_000,)))
        (self.work / "network.py").write_text(NETWORK)
        self.takes_inputs = name not in WITHOUT_INPUTS
        self.mark = uuid.uuid4().hex

    def start(self) -> subprocess.Popen[bytes]:
        """Start it."""
        with killed_environment(MARK, self.mark):
            return super().start()

    def processes(self) -> list[str]:
        """Return the command lines of the processes with the mark."""
        found, wanted = [], f"{MARK}={self.mark}".encode()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:80])
        return found


@contextlib.contextmanager
def killed_environment(name: str, value: str):
    """Let what is started meanwhile have a variable."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@dataclasses.dataclass
class Seen:
    """How the ends of one command by one signal went."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    codes: set[int] = dataclasses.field(default_factory=set)
    faults: list[str] = dataclasses.field(default_factory=list)


def end(trial: Trial, moment: float, number: signal.Signals, whole: int, seen: Seen) -> None:
    """Start a command that ends with `whole`, tell it to end at a moment, and look at what became of it."""
    process = trial.start()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=moment)
        return  # it was faster
    started = time.monotonic()
    if number is signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.wait()
    seconds = time.monotonic() - started
    seen.seconds.append(seconds)
    seen.codes.add(process.returncode)
    time.sleep(AFTERWARDS_SECONDS)
    said = (trial.folder / "log").read_text(errors="replace")
    at = f"{number.name} after {moment:.2f} s"
    if seconds > ALLOWED_SECONDS:
        seen.faults.append(f"{at}: it took {seconds:.2f} s")
    if "Traceback" in said or process.returncode not in (130, -number, whole):
        seen.faults.append(f"{at}: {said[-1500:]}")
    if left := trial.processes():
        seen.faults.append(f"{at}: left {left}")
    if files := sorted(path.name for path in (trial.folder / "tmp").iterdir()):
        seen.faults.append(f"{at}: left {files} in TMPDIR")


def main(arguments: Sequence[str] | None = None) -> None:
    killed.COMMANDS.update(FURTHER)
    parser = argparse.ArgumentParser()
    parser.add_argument("commands", nargs="*", default=list(killed.COMMANDS), metavar="COMMAND")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    given = parser.parse_args(arguments)
    compile_packages()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it puts in the background ignore it
    rng, failed = random.Random(given.seed), False
    print("seed", given.seed)
    for name in given.commands:
        with tempfile.TemporaryDirectory() as place:
            whole, length = Trial(Path(place) / "whole", name).finish()
            for number in (signal.SIGTERM, signal.SIGINT):
                seen = Seen()
                for turn in range(given.times):
                    trial = Trial(Path(place) / f"{number.name}-{turn}", name)
                    end(trial, rng.uniform(0, length), number, whole, seen)
                seconds = seen.seconds or [0.0]
                print(f"{name:10s} {number.name:8s} {len(seen.seconds):3d} times in {length:4.1f} s: "
                      f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s, "
                      f"exit codes {sorted(seen.codes)}, {len(seen.faults)} faults", flush=True)  # fmt: skip
                for fault in seen.faults:
                    print("   ", fault, flush=True)
                failed |= bool(seen.faults)
    sys.exit(failed)


if __name__ == "__main__":
    main()
