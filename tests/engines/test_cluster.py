"""Ray: the same results as in one process, nodes that are lost, and nothing that is left behind or sent."""

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from cluster_nodes import cluster, kill_one
from models import chain, mlp
from reducing import NEEDS, dag

pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]
CHECK = """#!/bin/sh
md5sum < polygraphy_debug.onnx >> {log}
sleep 0.2
grep -aq 'op_3"' polygraphy_debug.onnx && grep -aq 'op_19"' polygraphy_debug.onnx && exit 1
exit 0
"""


TYPED = """
import sys
import onnx

graph = onnx.shape_inference.infer_shapes(onnx.load("polygraphy_debug.onnx")).graph
types = {info.name: info.type.tensor_type.elem_type for info in (*graph.value_info, *graph.output)}
wide = {node.name for node in graph.node if types.get(node.output[0]) == 1}
sys.exit(0 if {"op_2", "op_5"} <= wide else 1)
"""
"""Passes while two nodes compute in float32."""

SLOW = """
import time
import onnxruntime


class Engine:
    def compile(self, path, options):
        self.session = onnxruntime.InferenceSession(str(path))
        return self

    def run(self, feed):
        with open("runs", "a") as log:
            log.write("run\\n")
        time.sleep(0.5)
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, dict(feed))))
"""
"""An engine that says when it runs, and takes its time."""


def triage(*words, cwd, env=None):
    command = [sys.executable, "-m", "tensortriage", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


def reduced(folder, name, *words, env=None):
    done = triage(
        "debug", "reduce", "m.onnx", "-o", f"{name}.onnx", "--case", name, "--json", *words, cwd=folder, env=env
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return [node["name"] for node in found["kept"]], found["checks"], (folder / f"{name}.onnx").read_bytes()


def test_engines_on_a_cluster_give_the_same_result_and_nothing_stays(tmp_path):
    names = dag(tmp_path)
    (tmp_path / "needs.py").write_text(NEEDS.format(needed=(names[4], names[15])))
    with tempfile.TemporaryDirectory(prefix="t") as scratch:
        env = {**os.environ, "TMPDIR": scratch, "HOME": str(tmp_path / "home")}
        words = ("--target", "script:needs.py:Engine", "--inputs", "m.npz", "--shrink-budget", "0")
        alone = reduced(tmp_path, "alone", *words, env=env)
        assert reduced(tmp_path, "there", *words, "--cluster", "local:2", env=env) == alone
        assert alone[0] == [names[4], names[15]] or set(alone[0]) >= {names[4], names[15]}
        assert list(Path(scratch).iterdir()) == []
        assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("where", [(), ("--cluster", "local:2")], ids=["here", "cluster"])
def test_ctrl_c_gives_what_was_found(tmp_path, where):
    chain(24).save(tmp_path / "m.onnx")
    (tmp_path / "check.sh").write_text(CHECK.format(log=tmp_path / "log"))
    (tmp_path / "check.sh").chmod(0o755)
    command = [sys.executable, "-m", "tensortriage", "debug", "reduce", "m.onnx", "-o", "r.onnx", "--json", *where,
               "--check", "./check.sh"]  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as search:
        for line in search.stderr:
            if re.match("check 6:", line):
                search.send_signal(signal.SIGINT)
                break
        out, err = search.communicate()
    assert search.returncode == 130, err
    found = json.loads(out)
    assert found["format"] == "tensortriage.reduction/1"
    assert (found["stop"], found["verified"]) == ("interrupted", None)
    assert {"op_3", "op_19"} <= {node["name"] for node in found["kept"]}
    assert (tmp_path / "r.onnx").exists()


def test_a_node_that_is_lost_costs_what_runs_on_it(tmp_path):
    chain(24).save(tmp_path / "m.onnx")
    log = tmp_path / "log"
    (tmp_path / "check.sh").write_text(CHECK.format(log=log))
    (tmp_path / "check.sh").chmod(0o755)
    alone = reduced(tmp_path, "alone", "--check", "./check.sh")
    once = Counter(log.read_text().split("\n"))  # the premise and what is confirmed are asked several times
    log.unlink()
    command = [sys.executable, "-m", "tensortriage", "debug", "reduce", "m.onnx", "-o", "there.onnx", "--case", "there",
               "--json", "--cluster", "auto", "--check", "./check.sh"]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="c") as short, cluster(short, nodes=2, cpus=2) as (running, env):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=tmp_path, env=env, **pipes) as search:
            for line in search.stderr:
                if re.match("check 5:", line):
                    kill_one(running)
                    break
            out, err = search.communicate()
        assert search.returncode == 0, err
        found = json.loads(out)
        there = [node["name"] for node in found["kept"]], found["checks"], (tmp_path / "there.onnx").read_bytes()
        assert there == alone
        often = Counter(log.read_text().split("\n"))
        assert sum(max(count - max(once[asked], 1), 0) for asked, count in often.items()) <= 2  # tasks on the lost node

        (tmp_path / "batch.yaml").write_text(
            "models: {a: m.onnx, b: n.onnx}\ntargets: {x: onnxruntime, y: 'emulate:precision=fp16'}\n"
            "commands: {run: {run: run}, lint: {run: check lint, options: [--no-engine]}}\n"
        )
        mlp().save(tmp_path / "n.onnx")
        results = []
        for words in (("--case", "one"), ("--case", "many", "--cluster", "auto")):
            done = triage("batch", "batch.yaml", "--json", *words, cwd=tmp_path, env=env)
            assert done.returncode == 0, done.stderr
            cells = json.loads(done.stdout)["cells"]
            results.append([(cell["name"], cell["outcome"], cell["ending"]["summary"]) for cell in cells])
        assert len(results[0]) == 6
        assert results[0] == results[1]

        (tmp_path / "typed.py").write_text(TYPED)
        chain(8, "Tanh").save(tmp_path / "tanh.onnx")
        plans = []
        for name, words in (("plain", ()), ("spread", ("--cluster", "auto"))):
            done = triage("debug", "precision", "tanh.onnx", "-o", f"{name}.onnx", "--case", name, "--json", "--fp16",
                          *words, "--check", sys.executable, "typed.py", cwd=tmp_path, env=env)  # fmt: skip
            assert done.returncode == 0, done.stderr
            plan = json.loads(done.stdout)
            plans.append((plan["kept"], plan["checks"], (tmp_path / f"{name}.onnx").read_bytes()))
        assert plans[0] == plans[1]
        assert plans[0][0] == ["op_2", "op_5"]

        missing = triage("batch", "batch.yaml", "--case", "no", "--cluster", "auto,tag=jetson", cwd=tmp_path, env=env)
        assert missing.returncode == 2
        assert "error[cluster-resource-missing]" in missing.stderr
    gone = triage("batch", "batch.yaml", "--case", "no", "--cluster", "ray://127.0.0.1:1", cwd=tmp_path)
    assert gone.returncode == 2
    assert "error[cluster-unreachable]" in gone.stderr


def processes_below(root):
    """Return the command lines of a process's descendants by process id."""
    parents, lines = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                lines[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
    found = {root}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return {each: lines.get(each, "") for each in found - {root}}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for Ray's processes in /proc")
def test_a_batch_whose_cluster_loses_an_agent_of_ray_has_found_nothing_and_goes_on(tmp_path):
    """The raylet ends with its agents, and every task with it."""
    chain(4, "Tanh").save(tmp_path / "m.onnx")
    (tmp_path / "slow.py").write_text(SLOW)
    names = ", ".join(f"m{number}: m.onnx" for number in range(6))
    (tmp_path / "batch.yaml").write_text(
        f"models: {{{names}}}\ntargets: {{x: 'script:slow.py:Engine'}}\ncommands: {{run: {{run: run}}}}\n"
    )
    words = [sys.executable, "-m", "tensortriage", "batch", "batch.yaml", "--case", "c"]
    with tempfile.TemporaryDirectory(prefix="a") as short:
        env = {**os.environ, "TMPDIR": short}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen([*words, "--cluster", "local:2"], cwd=tmp_path, env=env, **pipes) as running:
            while running.poll() is None and not (tmp_path / "runs").exists():
                time.sleep(0.1)
            agents = [each for each, line in processes_below(running.pid).items() if line.startswith("ray::RuntimeEnv")]
            for agent in agents:
                os.kill(agent, signal.SIGKILL)
            _, err = running.communicate(timeout=300)
    assert len(agents) == 1
    assert running.returncode == 3, err
    assert "error[cluster-failed]" in err
    again = triage("batch", "batch.yaml", "--case", "c", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert len(json.loads(again.stdout)["cells"]) == 6
