"""Engines' processes that answer garbage, lie or fall silent: outcomes with what was said, and nothing else."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.onnxruntime.optimizer_passes import passes_of
from tensortriage.engines.process import interpreters, workers
from tensortriage.engines.process.interpreters import check_interpreter
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import EngineCrashed, RunFailed, UsageError

LIMITS = Limits(build_seconds=60, run_seconds=60)
# The pipe of answers is a copy of the first standard output: the engine finds it among its own descriptors.
ENGINE = """
import json, os, stat
def pipes():
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and stat.S_ISFIFO(os.stat(int(name)).st_mode) and "w" in mode(int(name)):
                yield int(name)
        except OSError:
            pass
def mode(fd):
    flags = int(open(f"/proc/self/fdinfo/{{fd}}").read().split("flags:")[1].split()[0], 8)
    return "r" if flags & 3 == 0 else "w"
def say(text):
    for pipe in pipes():
        os.write(pipe, text if isinstance(text, bytes) else text.encode())
class Engine:
    def compile(self, model, options):
        self.model = model
        {at_compile}
        return self
    def run(self, feed):
        {at_run}
        return {{"y": feed["x"]}}
"""
GARBAGE = {
    "text": "say('hello\\n')",
    "bytes": "say(bytes(range(128, 256)) + b'\\n')",
    "deep": "say('[' * 100000 + '\\n')",
    "a list": "say('[1, 2]\\n')",
    "a number": "say('7\\n')",
    "an answer to nothing": "say(json.dumps({'shards': []}) + '\\n')",
    "an old answer": "say(json.dumps({'shards': [], 'id': 1}) + '\\n')",
    "lost keys": "say(json.dumps({'id': ID}) + '\\n')",
    "keys of another kind": "say(json.dumps({'id': ID, 'shards': 3, 'inputs': 'x', 'outputs': {}}) + '\\n')",
    "half an error": "say(json.dumps({'id': ID, 'error': {'kind': 'usage'}}) + '\\n')",
    "rows of no specs": "say(json.dumps({'id': ID, 'inputs': [1], 'outputs': [], 'info': {}, 'shards': [1]}) + '\\n')",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Identity(x) }'
    onnx.save(parser.parse_model(text), path)
    return path


def engine(tmp_path, *, at_compile="pass", at_run="pass"):
    path = tmp_path / "engine.py"
    path.write_text(ENGINE.format(at_compile=at_compile, at_run=at_run))
    return {"file": str(path)}


def run(model, options):
    session = ScriptEngine(limits=LIMITS).compile(model, options)
    try:
        return session.run({"x": np.ones(3, np.float32)})
    finally:
        session.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("when", ["at_compile", "at_run"])
@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_a_crash_that_quotes_it(said, when, model, tmp_path):
    workers.close_idle()  # a fresh process: its first question, the compiling, has number 1, and the run number 2
    said = said.replace("ID", "1" if when == "at_compile" else "2")
    with pytest.raises(EngineCrashed, match="gave an unexpected answer") as caught:
        run(model, engine(tmp_path, **{when: said}))
    assert caught.value.slug == "engine-crashed"
    assert np.array_equal(run(model, engine(tmp_path))["y"], np.ones(3, np.float32))  # the next one is well


def test_files_outside_of_the_folders_are_not_taken(model, tmp_path):
    from tensortriage_worker.shards import write_shard

    secret = tmp_path / "mine.safetensors"
    write_shard(secret, {"y": np.zeros(3, np.float32)})
    workers.close_idle()
    lie = f"say(json.dumps({{'id': 2, 'shards': [{str(secret)!r}]}}) + '\\n')"
    with pytest.raises(RunFailed, match="not in the folder for tensors"):
        run(model, engine(tmp_path, at_run=lie))
    assert secret.exists()


@pytest.mark.parametrize(
    "address",
    [
        "ssh://h -oproxycommand=touch${IFS}pwned",
        "ssh://-oproxycommand=touch pwned",
        "ssh://-oProxyCommand=x",
        "ssh://u@-ox",
        "ssh://-u@h",
        "ssh://h/x\ny",
        "ssh://h:99999",
        "ssh://h:-1",
        "ssh://u:password@h",
        "ssh://h?x=1",
        "ssh://h\t-ox",
        "ssh://",
        "ssh://a@b@c",
    ],
)
def test_an_address_is_no_option_of_ssh(address, tmp_path, monkeypatch):
    log = tmp_path / "called"
    (tmp_path / "ssh").write_text(f"#!/bin/sh\necho called >> {log}\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UsageError) as caught:
        check_interpreter(address)
    assert caught.value.slug == "worker-address"
    assert not log.exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ssh://jetson", ["--", "jetson"]),
        ("ssh://me@10.0.0.7:2222/opt/my python", ["-p", "2222", "--", "me@10.0.0.7"]),
        ("ssh://[fe80::1%eth0]", ["--", "[fe80::1%eth0]"]),
    ],
)
def test_hosts_come_behind_the_end_of_options(address, words):
    arguments, _ = interpreters._behind_ssh(address)
    assert arguments.split(" ")[-len(words) :] == words


def test_a_supervisor_that_is_killed_leaves_an_outcome_and_no_traceback(model, tmp_path):
    options = engine(tmp_path, at_run="os.kill(os.getppid(), 15); __import__('time').sleep(60)")
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", "run", str(model), "--json"]
    command += ["--target", f"script:{options['file']}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    kinds = [outcome["kind"] for outcome in json.loads(done.stdout)["outcomes"].values()]
    assert "engine-crash" in kinds
    assert "Traceback" not in done.stderr
    assert "RemoteError" not in done.stderr
    assert not Path(tmp_path / "pwned").exists()


def test_modules_beside_the_users_files_are_not_imported(tmp_path, monkeypatch):
    """What starts another Python does not look for modules in the current folder, where a stranger's may lie."""
    for name in ("numpy", "pathlib", "tensortriage"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\nraise SystemExit\n")
    x = onnx.helper.make_tensor_value_info("x", 1, [2])
    y = onnx.helper.make_tensor_value_info("y", 1, [2])
    nodes = [onnx.helper.make_node("Identity", ["x"], ["a"]), onnx.helper.make_node("Relu", ["a"], ["y"])]
    opsets = [onnx.helper.make_opsetid("", 18)]
    onnx.save(
        onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=8),
        tmp_path / "m.onnx",
    )
    monkeypatch.chdir(tmp_path)
    check_interpreter.cache_clear()
    assert check_interpreter(sys.executable) == os.path.abspath(sys.executable)
    assert passes_of(tmp_path / "m.onnx", {})
    assert not (tmp_path / "imported").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_a_ctrl_c_in_the_terminal_is_not_the_supervisors(tmp_path):
    worker = workers.lease(sys.executable, "ctrl-c")
    status = Path(f"/proc/{worker.supervisor_pid}/status").read_text()
    worker.close()
    (ignored,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn")]
    assert ignored & 1 << signal.SIGINT - 1
