"""What does looking into a model cost, next to Polygraphy?

    python bench/inspect_model.py --polygraphy /path/to/venv/bin/polygraphy [MODEL ...]

`triage inspect model` against `polygraphy inspect model`, in turns, each in a process of its own; the best of several
rounds counts, since other work on the machine only ever adds. Without MODEL: DenseNet-121 as it comes with the onnx
package (1,746 nodes). Peak memory is the largest resident set that the kernel saw (ru_maxrss of the child).
"""

import argparse
import dataclasses
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from compiled import compile_packages

# onnx is not imported: a child's ru_maxrss begins with what its parent had in memory (Linux keeps it across exec).
_ONNX = importlib.util.find_spec("onnx")
DENSENET = (
    Path(_ONNX.origin if _ONNX and _ONNX.origin else "").parent / "backend/test/data/light/light_densenet121.onnx"
)
TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run of a command took."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def measure(command: Sequence[str]) -> Cost:
    """Run a command to its end and return what the kernel says of it."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def best(costs: Sequence[Cost]) -> Cost:
    """Return the smallest of each number."""
    return Cost(
        min(cost.wall_seconds for cost in costs),
        min(cost.cpu_seconds for cost in costs),
        min(cost.peak_bytes for cost in costs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy", required=True, help="the polygraphy program of another environment")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("models", nargs="*", type=Path, default=[DENSENET])
    given = parser.parse_args()
    compile_packages()
    worse = 0
    for model in given.models:
        contestants = {"polygraphy": [given.polygraphy], "triage": TRIAGE}
        costs: dict[str, list[Cost]] = {name: [] for name in contestants}
        for _ in range(given.rounds):
            for name, program in contestants.items():
                costs[name].append(measure([*program, "inspect", "model", str(model)]))
        theirs, ours = best(costs["polygraphy"]), best(costs["triage"])
        print(f"{model.name}, best of {given.rounds}")
        for name, cost in (("polygraphy", theirs), ("triage", ours)):
            peak = cost.peak_bytes / 1e6
            print(f"  {name:10s}  {cost.wall_seconds:6.2f} s wall  {cost.cpu_seconds:6.2f} s CPU  {peak:8.1f} MB peak")
        ratios = (ours.wall_seconds / theirs.wall_seconds, ours.peak_bytes / theirs.peak_bytes)
        print(f"  triage takes {ratios[0]:.2f} x the time and {ratios[1]:.2f} x the memory")
        worse += max(ratios) > 1
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
