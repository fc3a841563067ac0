"""What does a healthy diagnosis cost, in runs and builds of the deployed target?

    python bench/diagnose_cost.py minilm.onnx vit.onnx --targets openvino:precision=bf16 emulate:precision=fp16

Each MODEL.onnx comes with MODEL.npz. A build and a run of the target are timed in this process before the diagnosis and
after it, so that a machine whose speed drifts counts for both; the diagnosis is timed as a command, from start to end.
The bar is 60 runs and 3 builds, and no step above a third of the whole.
CPU seconds are those of all processes together.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tensortriage.engines.base import Limits
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec

TARGETS = ("openvino:precision=bf16", "emulate:precision=fp16")
RUNS, BUILDS, LARGEST = 60, 3, 1 / 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--steps", action="store_true", help="print the seconds of each step")
    arguments = parser.parse_args()
    print("| model | target | verdict | run s | build s | diagnosis s | CPU s | of 60 runs + 3 builds | largest step |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in arguments.models:
        for target in arguments.targets:
            told(model, target, steps=arguments.steps)


def told(model: Path, target: str, *, steps: bool) -> None:
    """Print the row of a model on a target."""
    before = build_and_run(model, target)
    started, spent = time.perf_counter(), processor_seconds()
    found = diagnosed(model, target)
    seconds, spent = time.perf_counter() - started, processor_seconds() - spent
    build, run = np.mean([before, build_and_run(model, target)], axis=0)
    longest = max(found["steps"], key=lambda step: step["seconds"])
    largest = longest["seconds"] / seconds
    print(
        f"| {model.stem} | {target} | {found['verdict']} | {run:.3f} | {build:.2f} | {seconds:.1f} | "
        f"{spent:.1f} | {seconds / (RUNS * run + BUILDS * build):.2f} | {largest:.0%}: {longest['question']} |",
        flush=True,
    )
    if steps:
        for step in found["steps"]:
            print(f"    {step['seconds']:7.2f} s  {step['checks']:3} runs  {step['question']}")
        print(f"    {seconds - sum(step['seconds'] for step in found['steps']):7.2f} s  start and end")


def processor_seconds() -> float:
    """Return what the processes that have ended took of the processors, with those that they started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def build_and_run(model: Path, target: str) -> tuple[float, float]:
    """Return the seconds of a build, and the median of five runs after a first one."""
    feed = dict(np.load(model.with_suffix(".npz")))
    spec = EngineSpec.parse(target)
    started = time.perf_counter()
    session = create(spec, limits=Limits(600.0, 600.0)).compile(model, spec.options)
    built = time.perf_counter() - started
    session.run(feed)
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        session.run(feed)
        taken.append(time.perf_counter() - started)
    session.close()
    return built, float(np.median(taken))


def diagnosed(model: Path, target: str) -> dict:  # type: ignore[type-arg] # as JSON has it
    """Return the verdict of the command, as its JSON has it."""
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        words = ("diagnose", model, "--inputs", model.with_suffix(".npz"), "--target", target, "--json")
        command = [sys.executable, "-m", "tensortriage", *map(str, words), "--case", f"{folder}/case"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["verdict"]


if __name__ == "__main__":
    main()
