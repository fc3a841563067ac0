"""What does kill -9 cost? Commands are killed at random moments, again and again, and then left to end.

    python bench/killed.py [diagnose reduce precision build convert] [--kills 100] [--seed N]

Each command works on a model of 24 nodes in a folder of its own, is killed with its whole process group at a moment
drawn from the time that an undisturbed run takes, and started again, at most five times in a row before it may end.
Then must hold: the result is that of the undisturbed run; every answer that was in the case before a kill is there
unchanged, so none was asked for again; and no file is left but those of the undisturbed run, also in TMPDIR.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from compiled import compile_packages

from tensortriage_testing import feed_for, residual_dag, save_model

ENGINES = {
    "faulty.py": "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine): pass\n",
    "varying.py": "from tensortriage_testing import VaryingEngine as Engine\n",
}
NODES, FAULTY_NODE, IN_A_ROW = 24, 9, 5
VOLATILE = {"seconds", "cost", "created", "elapsed", "build_seconds", "run_seconds", "milliseconds", "checks", "builds"}
"""Keys of documents that tell what it took; a run that was resumed took something else."""
FIXED_ENGINE = "script:faulty.py,kind=scale,node={node}"
COMMANDS = {
    "diagnose": (["diagnose", "m.onnx", "--target", FIXED_ENGINE], ["triage-case/verdict.json"]),
    "reduce": (
        ["debug", "reduce", "m.onnx", "-o", "r.onnx", "--target", FIXED_ENGINE],
        ["r.onnx", "r_repro/model.onnx"],
    ),
    "precision": (
        ["debug", "precision", "m.onnx", "-o", "p.onnx", "--sqnr", "60", "--target", "emulate:precision=bf16"],
        ["p.onnx"],
    ),
    "build": (
        ["debug", "build", "m.onnx", "--target", "script:varying.py,node={node},kind=scale,tactics=2,draws=draws"],
        ["triage-case/builds.json"],
    ),
    "convert": (["convert", "m.onnx", "--precision", "fp16", "-o", "c.onnx"], ["c.onnx"]),
}  # fmt: skip
"""Words, and the files that are the result."""


@dataclasses.dataclass
class Tally:
    """What was seen of one command."""

    kills: int = 0
    chains: int = 0
    answers: int = 0
    repeated: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)


class Trial:
    """One command in a folder of its own.

    Attributes:
        takes_inputs: Whether it is given feeds.
    """

    takes_inputs = True

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        words, self.results = COMMANDS[name]
        for inside in ("work", "tmp", "home"):
            (folder / inside).mkdir(parents=True)
        self.work = folder / "work"
        model = residual_dag(NODES, seed=0)
        save_model(model, self.work / "m.onnx")
        np.savez(self.work / "m.npz", **feed_for(model))
        for file, text in ENGINES.items():
            (self.work / file).write_text(text)
        node = model.graph.node[FAULTY_NODE].name
        self._given = set(self.files())
        self._words = [word.format(node=node) for word in words]

    def start(self) -> subprocess.Popen[bytes]:
        """Start it."""
        program = "from tensortriage.__main__ import main; main()"
        inputs = ["--load-inputs", "m.npz"] if self.takes_inputs else []
        env = os.environ | {"TMPDIR": str(self.folder / "tmp"), "HOME": str(self.folder / "home")}
        with open(self.folder / "log", "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", program, *self._words, *inputs],
                cwd=self.work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def finish(self) -> tuple[int, float]:
        """Let it end, and return its exit code and how long it took."""
        started = time.monotonic()
        return self.start().wait(), time.monotonic() - started

    def kill_after(self, seconds: float) -> bool:
        """Start it, kill it after some time, and say whether it was still there."""
        process = self.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
            return False
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True

    def grow_old(self) -> None:
        """What a killed command leaves in TMPDIR goes with the next one that starts a minute later."""
        time.sleep(1.0)  # until its workers have noticed
        hour_ago = time.time() - 3600
        for path in (self.folder / "tmp").iterdir():
            os.utime(path, (hour_ago, hour_ago))

    def answers(self) -> dict[str, float]:
        """Return when each answer in the case was given."""
        path = self.work / "triage-case" / "checks.sqlite"
        if not path.exists():
            return {}
        with contextlib.closing(sqlite3.connect(path)) as db:
            try:
                return dict(db.execute("SELECT key, created FROM checks").fetchall())
            except sqlite3.OperationalError:  # killed before the table was made
                return {}

    def files(self) -> list[str]:
        """Return the files by path, without those of the case whose names go by content or by the number of a build."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        passing = ("/runs/", "/good/", "/bad/")
        return sorted(name for name in found if name != "log" and not any(part in name for part in passing))

    def result(self) -> list[object]:
        """Return what the command found, without what it took."""
        return [_content(self.work / name) for name in self.results]


def _content(path: Path) -> object:
    if not path.exists():
        return f"no {path.name}"
    return _steady(json.loads(path.read_text())) if path.suffix == ".json" else path.read_bytes()


def _steady(value: object) -> object:
    if isinstance(value, dict):
        if value.get("format") == "tensortriage.verdict/1":  # its steps count what this very run asked
            value = {**value, "steps": [step["question"] for step in value["steps"]]}
        return {key: _steady(part) for key, part in value.items() if key not in VOLATILE}
    return [_steady(part) for part in value] if isinstance(value, list) else value


def disturbed(folder: Path, name: str, undisturbed: Trial, seconds: float, kills: int, rng: random.Random) -> Tally:
    """Kill a command so many times, let it end, and compare."""
    trial, tally = Trial(folder, name), Tally(chains=1)
    known: dict[str, float] = {}
    for _ in range(kills):
        if not trial.kill_after(rng.uniform(0, seconds)):
            break
        tally.kills += 1
        trial.grow_old()
        known = _compare_answers(known, trial.answers(), tally)
    code, _ = trial.finish()
    _compare_answers(known, trial.answers(), tally)
    tally.answers = len(trial.answers())
    said = (folder / "log").read_text(errors="replace")
    if code not in (0, 1) or "Traceback" in said:
        tally.faults.append(f"ended with {code}: {said[-1500:]}")
    if name == "build":  # its draws are another sequence after a build that was lost: what is guilty counts
        if _guilty(said) != _guilty((undisturbed.folder / "log").read_text()):
            tally.faults.append(f"another guilty choice: {said[-1500:]}")
    elif (found := trial.result()) != (wanted := undisturbed.result()):
        tally.faults.append(f"another result: {_difference(wanted, found)}")
    if left := set(trial.files()) - set(undisturbed.files()):
        tally.faults.append(f"left {sorted(left)}")
    return tally


def _guilty(said: str) -> list[str]:
    return [line.split("(")[0] for line in said.splitlines() if line.startswith("guilty")]


def _difference(wanted: object, found: object, place: str = "") -> str:
    """Return where two documents differ first."""
    if type(wanted) is type(found) and isinstance(wanted, dict | list):
        assert isinstance(found, dict | list)
        keys = list(wanted) if isinstance(wanted, dict) else list(range(len(wanted)))
        if len(wanted) == len(found):
            for key in keys:
                if wanted[key] != found[key]:
                    return _difference(wanted[key], found[key], f"{place}/{key}")
    return f"{place}: {str(wanted)[:200]} became {str(found)[:200]}"


def _compare_answers(before: dict[str, float], after: dict[str, float], tally: Tally) -> dict[str, float]:
    again = [key for key, created in before.items() if after.get(key) != created]
    tally.repeated += len(again)
    if again:
        tally.faults.append(f"{len(again)} answers were lost or asked for again")
    return after


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    given = parser.parse_args(arguments)
    compile_packages()
    print("seed", given.seed)
    rng = random.Random(given.seed)
    failed = False
    for name in given.commands:
        total = Tally()
        with tempfile.TemporaryDirectory() as place:
            undisturbed = Trial(Path(place) / "undisturbed", name)
            code, seconds = undisturbed.finish()
            if code not in (0, 1):
                sys.exit(f"{name} ended with {code}: {(undisturbed.folder / 'log').read_text()}")
            while total.kills < given.kills:
                kills = min(IN_A_ROW, given.kills - total.kills)
                one = disturbed(Path(place) / str(total.chains), name, undisturbed, seconds, kills, rng)
                total = Tally(*(getattr(total, f.name) + getattr(one, f.name) for f in dataclasses.fields(Tally)))
        print(f"{name:10s} {total.kills:4d} kills in {total.chains} chains of {seconds:.1f} s, "
              f"{total.answers} answers kept, {total.repeated} asked again, {len(total.faults)} faults")  # fmt: skip
        for fault in total.faults:
            print("   ", fault)
        failed |= bool(total.faults)
    sys.exit(failed)


if __name__ == "__main__":
    main()
