"""Thousands of cells on Ray nodes: what the driver costs a cell, whether its memory stays flat, and a head that dies.

Needs Ray (`pip install 'ray[client]'`). Nodes are raylets on this machine, which offer more processors than it has: a
cell is a command that sleeps, started and kept as `triage batch` does it.

    python bench/many_cells.py cells [CELLS [WORKERS]]    e.g. 2000 64
    python bench/many_cells.py head                       the head dies amid a batch of `triage`, which then goes on
    python bench/many_cells.py zoo                        what 100,000 cells take, from the figures of the first
"""

import concurrent.futures
import dataclasses
import functools
import heapq
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import psutil  # noqa: E402 - found once tests/ is on the path

from cluster_nodes import cluster  # noqa: E402 - as above
from tensortriage_fleet.batch.run_cell import CellTask, run_cell  # noqa: E402 - as above
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec  # noqa: E402 - as above
from tensortriage_fleet.cluster.command_pool import CommandNeeds, CommandPool  # noqa: E402 - as above

SLEEP = 1.0
NODES = 4


@dataclasses.dataclass(frozen=True, slots=True)
class SleepingTask(CellTask):
    """A cell whose command only waits."""

    def command(self) -> list[str]:
        """Return program and arguments."""
        return ["sleep", *self.words]


def drive(folder, cells):
    """Run sleeping cells on the cluster of the environment and as many at once here; print what that cost as JSON."""
    with CommandPool.open(ClusterSpec.parse("auto"), 1, {CommandNeeds()}) as there:
        ended(there, folder, "warm", 2 * there.jobs)  # the workers start
        with CommandPool.open(None, there.jobs, {CommandNeeds()}) as here:
            rounds = [ended(pool, folder, f"{name}{number}", cells)
                      for number in range(2) for name, pool in (("here", here), ("there", there))]  # fmt: skip
        print(json.dumps({"jobs": there.jobs, "here": rounds[::2], "there": rounds[1::2]}), flush=True)


def ended(pool, folder, kind, cells):
    """Run cells to their end; return seconds, seconds of this process's processor time, and MB that it then holds."""
    own = psutil.Process()
    before, started, memory = own.cpu_times(), time.perf_counter(), []
    tasks = (SleepingTask(f"key {kind} {number}", (str(SLEEP),), folder, f"{folder}/{kind}{number}", case=False)
             for number in range(cells))  # fmt: skip
    pending = [pool.submit(CommandNeeds(), functools.partial(run_cell, task)) for task in tasks]
    for number, future in enumerate(concurrent.futures.as_completed(pending), 1):
        future.result()
        if number in (cells // 10, cells // 2, cells):
            memory.append(own.memory_info().rss >> 20)
    after = own.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return time.perf_counter() - started, spent, memory


def cells_that_sleep(cells=2000, workers=64):
    """Run sleeping cells on four nodes of a cluster on this machine."""
    with (
        tempfile.TemporaryDirectory(prefix="z") as folder,
        tempfile.TemporaryDirectory(prefix="c") as short,
        cluster(short, nodes=NODES, cpus=workers // NODES) as (_, env),
    ):
        command = [sys.executable, __file__, "drive", folder, str(cells)]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[-1])
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores; {cells} cells of {SLEEP:g} s on {told['jobs']} "
          f"workers of {NODES} nodes, {-(-cells // told['jobs']) * SLEEP:.0f} s without any overhead")  # fmt: skip
    for place in ("here", "there", "here", "there"):
        seconds, spent, memory = told[place].pop(0)
        print(f"{place}: {seconds:.1f} s; {spent / cells * 1000:.1f} ms of the driver's processor time a cell; "
              f"it holds {', '.join(map(str, memory))} MB after a tenth, half and all of them")  # fmt: skip


def head_that_dies(_=0):
    """Kill the head of a cluster amid a batch; the batch ends, and goes on with another cluster."""
    model, feed = ROOT / "examples/digits_cnn.onnx", ROOT / "examples/digits.npz"
    with tempfile.TemporaryDirectory(prefix="z") as place:
        folder = Path(place)
        rows = "\n".join(f"  m{number}: {model}" for number in range(16))
        text = f"models:\n{rows}\nfeeds: {{d: {feed}}}\ntargets: {{o: onnxruntime}}\ncommands: {{run: {{run: run}}}}\n"
        (folder / "b.yaml").write_text(text)
        command = [
            sys.executable,
            "-m",
            "tensortriage",
            "batch",
            "b.yaml",
            "--case",
            "case",
            "--json",
            "--cluster",
            "auto",
        ]
        for kills in (True, False):
            with tempfile.TemporaryDirectory(prefix="c") as short, cluster(short, nodes=2, cpus=1) as (running, env):
                with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as batch:  # fmt: skip
                    while kills and batch.poll() is None and ended_in(folder) < 3:
                        time.sleep(0.5)
                    if kills:
                        head = [
                            p for p in psutil.Process(running.pid).children(recursive=True) if p.name() == "gcs_server"
                        ]
                        for each in head:
                            each.kill()
                    started = time.perf_counter()
                    out, err = batch.communicate()
                found = json.loads(out).get("cells", [])
                outcomes, kept = [cell["outcome"] for cell in found], sum(cell["kept"] for cell in found)
                counted = {word: outcomes.count(word) for word in sorted({*outcomes})}
                print(f"{'the head is killed' if kills else 'again, on another cluster'}: exit code {batch.returncode} "
                      f"after {time.perf_counter() - started:.0f} s, {kept} of {len(outcomes)} cells known before, "
                      f"{counted}")  # fmt: skip
                if not outcomes:
                    print("\n".join(err.splitlines()[-2:]))


def ended_in(folder):
    """Return how many cells of a batch have ended."""
    return len([*folder.glob("case/cells/*/messages.txt")])


def zoo(_=0):
    """What 100,000 cells take: 1,000 networks, each on 20 targets with 5 commands."""
    rng = random.Random(1)
    networks = [rng.lognormvariate(4.2, 1.2) for _ in range(1000)]  # MB of weights: median 67, mean 137
    minutes = [rng.lognormvariate(-0.7, 1.3) for _ in range(100_000)]  # of a cell: median half a minute
    alone = sum(minutes)
    golden = [2.5 * size for size in networks]  # all values of one sample, as exported networks have them
    print(f"networks {sum(networks) / 1e3:.0f} GB; golden values {sum(golden) / 1e3:.0f} GB a copy, "
          f"{100 * sum(golden) / 1e3:.0f} GB with one in every cell")  # fmt: skip
    for workers in (64, 256, 1024):
        for order, durations in (("as listed", minutes), ("longest first", sorted(minutes, reverse=True))):
            ends = [0.0] * workers
            for each in durations:
                heapq.heapreplace(ends, ends[0] + each)
            print(f"{workers} workers, {order}: {max(ends) / 60:.1f} h, {alone / workers / max(ends):.1%} busy")


PARTS = {"cells": cells_that_sleep, "head": head_that_dies, "zoo": zoo}

if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        drive(sys.argv[2], int(sys.argv[3]))
    else:
        PARTS[sys.argv[1]](*map(int, sys.argv[2:]))
