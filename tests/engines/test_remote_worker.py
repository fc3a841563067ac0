"""Workers behind ssh: the stand-in for ssh runs the command here, but nothing else of this machine may be relied on."""

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.process import interpreters, workers
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import EngineCrashed, EngineMissing, StoreError
from tensortriage_engines.openvino.engine import OpenVinoEngine
from tensortriage_worker import exchange, supervisor

pytestmark = pytest.mark.lengthy

LIMITS = Limits(build_seconds=30, run_seconds=20)
FAKE_SSH = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in *unreachable*) echo "ssh: connect to host unreachable: No route" >&2; exit 255;; esac
for last; do :; done
TMPDIR="{there}" exec /bin/sh -c "$last"
"""
SCRIPT = """
import os, numpy as np
class Engine:
    def compile(self, model, options):
        self.seen = sorted(os.listdir(model.parent)) + [str(model), __file__, os.getcwd()]
        return self
    inputs = [("x", "float32", None)]
    outputs = [("y", "float32", None), ("seen", "string", None)]
    def run(self, feed):
        if feed["x"].size == 1: os.abort()
        return {"y": feed["x"] * 2, "seen": np.array(self.seen, dtype=object)}
"""


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a stand-in for ssh on the PATH; its machine has a temporary folder of its own."""
    there = tmp_path / "there"
    there.mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(FAKE_SSH.format(log=tmp_path / "ssh.log", there=there))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    interpreters.check_interpreter.cache_clear()
    yield tmp_path
    workers.close_idle()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }'
    )
    tensor = proto.graph.initializer[0]
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.array([2], np.float32), "w"))
    onnx.external_data_helper.set_external_data(tensor, "weights.bin")
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    return path


@pytest.fixture
def python() -> str:
    import sys

    return f"ssh://me@jetson:2222{sys.executable}"


def test_model_script_and_tensors_travel_and_nothing_remains(remote, model, python, monkeypatch):
    monkeypatch.setattr(exchange, "SHARD_BYTES", 1 << 20)
    script = remote / "engine.py"
    script.write_text(SCRIPT)
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script), "worker": python})
    x = np.arange(1_500_000, dtype=np.float32)  # 6 MB: several chunks, mapped when it comes back
    result = session.run({"x": x})
    np.testing.assert_array_equal(result["y"], x * 2)
    listing, path, file, folder = *[list(result["seen"][:-3])], *result["seen"][-3:]
    assert "model.onnx" in listing
    assert Path(path).is_relative_to(remote / "there")
    assert Path(file).is_relative_to(remote / "there")
    assert folder == str(Path.cwd())  # it exists there too
    session.close()
    trial, connection = (remote / "ssh.log").read_text().splitlines()
    assert trial.startswith("-o BatchMode=yes -p 2222 -- me@jetson ")
    assert connection.startswith("-C -o BatchMode=yes -p 2222 -- me@jetson cd / && exec ")
    workers.close_idle()
    assert gone(remote / "there")


def test_a_real_engine_behind_ssh(remote, model, python):
    engine = OpenVinoEngine(limits=LIMITS)
    if not engine.availability().usable:
        pytest.skip("OpenVINO is not installed")
    for _ in range(2):
        session = engine.compile(model, {"worker": python, "precision": "fp32"})
        np.testing.assert_array_equal(session.run({"x": np.array([1, -3], np.float32)})["y"], [2, -6])
        session.close()
    connections = [line for line in (remote / "ssh.log").read_text().splitlines() if line.startswith("-C")]
    assert len(connections) == 1  # it serves both


def test_a_crash_over_there_is_told_here(remote, model, python):
    script = remote / "engine.py"
    script.write_text(SCRIPT)
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script), "worker": python})
    with pytest.raises(EngineCrashed, match="SIGABRT"):
        session.run({"x": np.zeros(1, np.float32)})
    session.close()


def test_a_host_that_cannot_be_reached(remote, model):
    with pytest.raises(EngineMissing, match="No route") as caught:
        OpenVinoEngine(limits=LIMITS).compile(model, {"worker": "ssh://unreachable"})
    assert caught.value.slug == "worker-unusable"


def test_a_full_machine_over_there(remote, model, python, monkeypatch):
    monkeypatch.setattr(workers, "_texts", full_machine(workers._texts("tensortriage_worker")))
    with pytest.raises(StoreError, match="no room for") as caught:
        OpenVinoEngine(limits=LIMITS).compile(model, {"worker": python})
    assert caught.value.slug == "exchange-full"


def full_machine(texts):
    supervisor = "tensortriage_worker/supervisor.py"
    changed = texts[supervisor].replace("FAST_FOLDER_MINIMUM_BYTES = 32 << 20", "FAST_FOLDER_MINIMUM_BYTES = 1 << 60")
    assert changed != texts[supervisor]
    return lambda package: {**texts, supervisor: changed}


def gone(folder: Path, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not list(folder.glob(supervisor.PREFIX + "*")):
            return True
        time.sleep(0.02)
    return False
