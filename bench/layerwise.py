"""What does comparing every tensor of a model cost, next to Polygraphy and next to the engines alone?

    python bench/layerwise.py --generate 250mb --polygraphy-python /path/to/venv/bin/python
    python bench/layerwise.py --model model.onnx --inputs feed.npz

Four contestants in one run, on one model and one feed, each in processes of its own: `polygraphy run` on two ONNX
Runtime runners with everything marked, `triage run` doing the same, `triage run --low-memory`, and the floor: two bare
ONNX Runtime sessions with everything marked, one after the other, that throw their results away. Only the ratios mean
anything on another machine. Everything is written to a temporary folder.

Peak memory is the largest of two numbers sampled every 10 ms: the high-water mark of the started process, and the sum
of what it and its children hold (memory-mapped files included).
"""

import argparse
import dataclasses
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import psutil
from compiled import compile_packages

from tensortriage_testing.models import encoder, feed_for, save_model

BATCHES = {"250mb": 1, "1gb": 4}
"""Batch of the generated model (418 nodes, 27 MB of weights) that gives about that much of intermediate tensors."""

SAMPLE_SECONDS = 0.01
MARK_ALL = ["--onnx-outputs", "mark", "all"]

BARE = """
import sys
import numpy, onnxruntime
feed = dict(numpy.load(sys.argv[2]))
for _ in range(2):
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    count, size = 0, 0
    for value in session.run(None, feed):
        count, size = count + 1, size + value.nbytes
    del session
print(count, size)
"""

TO_POLYGRAPHY = """
import sys
import numpy
from polygraphy.json import save_json
save_json([dict(numpy.load(sys.argv[1]))], sys.argv[2])
"""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A command to measure."""

    name: str
    command: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run of a command took; ``output`` is its stdout and stderr, ``cpu_seconds`` user and system time."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    exit_code: int
    output: str


def measure(command: Sequence[str], folder: Path) -> Cost:
    """Run ``command`` in ``folder`` and watch its time and memory."""
    log = folder / "output.txt"
    with log.open("w") as sink:
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        process = psutil.Popen(list(command), cwd=folder, stdout=sink, stderr=subprocess.STDOUT)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _high_water_bytes(process.pid), sum(_resident_bytes(process)))
            time.sleep(SAMPLE_SECONDS)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, peak, process.returncode, log.read_text())


def _high_water_bytes(pid: int) -> int:
    """Return the VmHWM of a process as Linux reports it; 0 elsewhere or when the process has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _resident_bytes(process: psutil.Process) -> Iterator[int]:
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return
    for member in family:
        try:
            yield member.memory_info().rss
        except psutil.Error:
            continue


def mark_everything(model_path: Path, folder: Path) -> Path:
    """Write a copy of the model with every tensor as an output: what the bare sessions run."""
    model = onnx.load(model_path)
    known = {value.name for value in model.graph.output}
    produced = [n for node in model.graph.node if node.op_type != "Constant" for n in node.output if n]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in produced if n not in known)
    marked = folder / "marked.onnx"
    onnx.save_model(model, marked)
    return marked


def contestants(model: Path, inputs: Path, folder: Path, *, triage: str, polygraphy_python: str) -> list[Contestant]:
    marked = mark_everything(model, folder)
    run = [triage, "run", str(model), "--reference", "onnxruntime", "--target", "onnxruntime", *MARK_ALL]
    run += ["--inputs", str(inputs)]
    entries = [
        Contestant("two bare sessions", [sys.executable, "-c", BARE, str(marked), str(inputs)]),
        Contestant("triage run", run),
        Contestant("triage run --low-memory", [*run, "--low-memory"]),
    ]
    if polygraphy_python:
        feed = folder / "feed.json"
        subprocess.run([polygraphy_python, "-c", TO_POLYGRAPHY, str(inputs), str(feed)], check=True)
        tool = str(Path(polygraphy_python).with_name("polygraphy"))
        command = [polygraphy_python, tool, "run", str(model), "--onnxrt", "--onnxrt", *MARK_ALL]
        entries.append(Contestant("polygraphy run", [*command, "--load-inputs", str(feed)]))
    return entries


def compete(entries: Sequence[Contestant], folder: Path, repeat: int) -> dict[str, Cost]:
    """Return the fastest of ``repeat`` runs of each contestant, interleaved so that a busy minute hits all of them."""
    best: dict[str, Cost] = {}
    for _ in range(repeat):
        for entry in entries:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                cost = measure(entry.command, Path(own))
            if entry.name not in best or cost.wall_seconds < best[entry.name].wall_seconds:
                best[entry.name] = cost
    return best


def table(costs: dict[str, Cost]) -> Iterator[str]:
    bare, polygraphy = costs["two bare sessions"], costs.get("polygraphy run")
    yield (
        f"{'':26}{'wall s':>8}{'x bare':>8}{'faster than polygraphy':>24}{'cpu s':>8}{'less than polygraphy':>22}"
        f"{'peak MB':>9}{'over bare MB':>14}"
    )
    for name, cost in costs.items():
        if cost.exit_code:
            yield f"{name:26}  exit code {cost.exit_code}: {cost.output.strip()[-400:]}"
            continue
        gain = f"{polygraphy.wall_seconds / cost.wall_seconds:.1f}x" if polygraphy and not polygraphy.exit_code else "-"
        less = f"{polygraphy.cpu_seconds / cost.cpu_seconds:.1f}x" if polygraphy and not polygraphy.exit_code else "-"
        ratio = cost.wall_seconds / bare.wall_seconds
        over = (cost.peak_bytes - bare.peak_bytes) / 1e6
        yield (
            f"{name:26}{cost.wall_seconds:8.2f}{ratio:8.2f}{gain:>24}{cost.cpu_seconds:8.2f}{less:>22}"
            f"{cost.peak_bytes / 1e6:9.0f}{over:+14.0f}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--generate", choices=BATCHES, help="make a transformer with that many bytes of tensors")
    source.add_argument("--model", type=Path, help="an ONNX file; needs --inputs")
    parser.add_argument("--inputs", type=Path, help="npz with one feed for --model")
    parser.add_argument("--polygraphy-python", default="", help="interpreter of the environment that has polygraphy")
    parser.add_argument("--triage", default=str(Path(sys.executable).with_name("triage")), help="the triage command")
    parser.add_argument("--repeat", type=int, default=1, help="the fastest of so many runs counts (default: 1)")
    given = parser.parse_args()
    if given.model and not given.inputs:
        parser.error("--model needs --inputs")
    return given


def main() -> int:
    given = arguments()
    compile_packages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.generate:
            model = encoder(layers=8, width=256, heads=8, tokens=312, batch=BATCHES[given.generate])
            inputs = folder / "feed.npz"
            np.savez(inputs, **feed_for(model))
            path = save_model(model, folder / "encoder.onnx")
        else:
            path, inputs = given.model.resolve(), given.inputs.resolve()
        entries = contestants(path, inputs, folder, triage=given.triage, polygraphy_python=given.polygraphy_python)
        costs = compete(entries, folder, given.repeat)
        bare = costs["two bare sessions"]
        if not bare.exit_code:
            count, size = map(int, bare.output.split()[-2:])
            print(f"{path.name}: {count} tensors, {size / 1e6:.0f} MB")
        print("\n".join(table(costs)))
    return int(any(cost.exit_code for cost in costs.values()))


if __name__ == "__main__":
    sys.exit(main())
