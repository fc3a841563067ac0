"""Checks and cells on a Ray cluster: the same results as in one process, how much faster, and what a lost node costs.

Needs Ray (`pip install ray`). Four questions: checks that sleep half a second, on 8 workers against one; `debug reduce`
with such a check and with an engine, against one process; `debug precision` likewise; a matrix of 40 cells of
`triage batch`; and a node that is killed in mid-search, of a cluster of two nodes on this machine.

    python bench/cluster.py [PART...]    e.g. matrix
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from cluster_nodes import cluster, kill_one  # noqa: E402 - found once tests/ is on the path
from models import chain  # noqa: E402 - as above
from tensortriage.search.execution.executors import InProcess, OracleQuestion  # noqa: E402 - as above
from tensortriage.search.problem import CandidateOutcome, OracleVerdict  # noqa: E402 - as above
from tensortriage_fleet.cluster.cluster_checks import ClusterChecks  # noqa: E402 - as above
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds  # noqa: E402 - as above
from tensortriage_fleet.cluster.ray_cluster import open_cluster  # noqa: E402 - as above

SECONDS = 0.5
EXAMPLES = ROOT / "examples"
NEEDED = ("op_7", "op_30")
CHECK = """#!/bin/sh
echo $$ >> LOG
sleep SECONDS
for node in NODES; do grep -aq "$node\\b" polygraphy_debug.onnx || exit 0; done
exit 1
"""

TYPED = """
import sys, time
import onnx

time.sleep(0.5)
graph = onnx.shape_inference.infer_shapes(onnx.load("polygraphy_debug.onnx")).graph
types = {info.name: info.type.tensor_type.elem_type for info in (*graph.value_info, *graph.output)}
wide = {node.name for node in graph.node if types.get(node.output[0]) == 1}
sys.exit(0 if {"op_5", "op_17"} <= wide else 1)
"""


def sleeping(candidate, attempt):
    time.sleep(SECONDS)
    return OracleVerdict(CandidateOutcome.PASS)


def made(parts):
    return sleeping


def seconds_of(executor, checks):
    started = time.perf_counter()
    for number in range(checks):
        executor.submit(OracleQuestion((number,), 0))
    left = checks
    while left:
        answers = executor.wait()
        assert all(answer.verdict is not None for _, answer in answers), answers
        left -= len(answers)
    return time.perf_counter() - started


def checks_that_sleep(_, workers=8, checks=64):
    alone = seconds_of(InProcess(sleeping), 8) / 8 * checks
    with open_cluster(ClusterSpec.parse(f"local:{workers}")) as found:
        shared = found.share(made, None)
        executor = ClusterChecks(found, TaskNeeds(), oracle=sleeping, send=lambda: shared)
        seconds_of(executor, 3 * workers)  # the workers start
        there = seconds_of(executor, checks)
    print(f"{checks} checks of {SECONDS} s: {alone:.1f} s in one process, {there:.1f} s on {workers} workers: "
          f"{alone / there:.1f}x")  # fmt: skip


def triage(*words, cwd, env=None):
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tensortriage", *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True
    )
    return done, time.perf_counter() - started


def laid_out(folder):
    chain(48).save(folder / "chain.onnx")
    text = CHECK.replace("LOG", str(folder / "log")).replace("SECONDS", str(SECONDS)).replace("NODES", " ".join(NEEDED))
    (folder / "check.sh").write_text(text)
    (folder / "check.sh").chmod(0o755)


def runs_of(folder):
    count = len((folder / "log").read_text().split())
    (folder / "log").unlink()
    return count


def reduced(folder, name, *words, env=None):
    """Reduce with the check; return kept nodes, checks that the search used, checks that ran, and seconds."""
    done, seconds = triage("debug", "reduce", "chain.onnx", "-o", f"{name}.onnx", "--case", name, "--json", *words,
                           "--check", "./check.sh", cwd=folder, env=env)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return [node["name"] for node in found["kept"]], found["checks"], runs_of(folder), seconds


def reduce_by_command(folder):
    laid_out(folder)
    alone = reduced(folder, "alone")
    for words in (("--jobs", "8"), ("--cluster", "local:8")):
        there = reduced(folder, "".join(words).strip("-").replace(":", ""), *words)
        same = "the same" if there[:2] == alone[:2] else f"NOT THE SAME: {there[:2]} for {alone[:2]}"
        counts = f"{', '.join(there[0])}; {there[1]} checks used, {there[2]} run"
        times = f"{alone[3]:.1f} s -> {there[3]:.1f} s: {alone[3] / there[3]:.1f}x"
        print(f"debug reduce --check ({SECONDS} s) {' '.join(words)}: {same} ({counts}), {times}")


def reduce_by_engine(folder):
    model, feed = EXAMPLES / "digits_vit_overflow.onnx", EXAMPLES / "digits_vit_overflow.npz"
    found = {}
    for name, words in (("one", ()), ("four", ("--cluster", "local:4"))):
        done, seconds = triage("debug", "reduce", model, "-o", f"{name}.onnx", "--case", f"engine-{name}", "--json",
                               "--target", "emulate:precision=fp16", "--inputs", feed, *words, cwd=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        found[name] = [node["name"] for node in said["kept"]], said["checks"], (folder / f"{name}.onnx").read_bytes()
        print(f"debug reduce --target, {name}: {found[name][:2]}, {seconds:.1f} s")
    print("the same file" if found["one"] == found["four"] else "NOT THE SAME")


def precision_by_command(folder):
    """Keep two nodes by a check that looks whether they are typed as float32."""
    model = chain(24, "Tanh")
    model.save(folder / "m.onnx")
    (folder / "check.py").write_text(TYPED)
    found = {}
    for name, words in (("one", ()), ("four", ("--cluster", "local:4"))):
        done, seconds = triage("debug", "precision", "m.onnx", "-o", f"{name}.onnx", "--case", name, "--json", "--fp16",
                               *words, "--check", sys.executable, "check.py", cwd=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        found[name] = said["kept"], said["checks"], (folder / f"{name}.onnx").read_bytes()
        print(f"debug precision --check, {name}: {found[name][:2]}, {seconds:.1f} s")
    print("the same file" if found["one"] == found["four"] else "NOT THE SAME")


def matrix(folder, cells=40):
    rows = [f"  m{number}: {EXAMPLES / 'digits_cnn.onnx'}" for number in range(cells // 4)]
    targets = ["onnxruntime", "emulate:precision=fp16", "emulate:precision=bf16"]
    text = "\n".join(["models:", *rows, f"feeds: {{digits: {EXAMPLES / 'digits.npz'}}}", "targets:",
                      *(f"  t{number}: {target}" for number, target in enumerate(targets)),
                      "commands: {run: {run: run}, lint: {run: check lint, options: [--no-engine]}}"])  # fmt: skip
    (folder / "matrix.yaml").write_text(text)
    found = {}
    for name, words in (("one", ()), ("ray", ("--cluster", "local:4"))):
        done, seconds = triage("batch", "matrix.yaml", "--case", f"matrix-{name}", "--json", *words, cwd=folder)
        said = json.loads(done.stdout)
        found[name] = [
            (cell["name"], cell["outcome"], cell["ending"]["code"], cell["ending"]["summary"]) for cell in said["cells"]
        ]
        print(f"batch of {len(found[name])} cells, {name}: exit code {done.returncode}, {seconds:.1f} s")
    print("the same outcomes" if found["one"] == found["ray"] else "NOT THE SAME")


def node_killed(folder):
    laid_out(folder)
    alone = reduced(folder, "undisturbed")
    with tempfile.TemporaryDirectory(prefix="c") as short, cluster(short, nodes=2, cpus=2) as (running, env):
        words = ("debug", "reduce", "chain.onnx", "-o", "lost.onnx", "--case", "lost", "--json", "--cluster", "auto",
                 "--check", "./check.sh")  # fmt: skip
        command = [sys.executable, "-m", "tensortriage", *words]
        with subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as search:
            for line in search.stderr:
                if re.match(r"check 6:", line):
                    kill_one(running)
                    break
            out, err = search.communicate()
        assert search.returncode == 0, err
        found = json.loads(out)
        kept = [node["name"] for node in found["kept"]]
        same = "the same" if (kept, found["checks"]) == alone[:2] else f"NOT THE SAME: {kept}"
        print(
            f"a node of two killed after check 6: {same} result; {found['checks']} checks used, {runs_of(folder)} run"
        )


def main():
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    parts = [checks_that_sleep, reduce_by_command, reduce_by_engine, precision_by_command, node_killed, matrix]
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
                place = Path(folder) / part.__name__
                place.mkdir()
                part(place)


if __name__ == "__main__":
    main()
