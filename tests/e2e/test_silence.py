"""No process of ours opens a connection, and nothing stays in HOME, the caches or the folder for temporary files."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from offline import forbid_sockets, needs_socket_filter
from tensortriage.engines.registry import availabilities

pytestmark = pytest.mark.lengthy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL, FEED = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"
TORCH = Path(__file__).resolve().parents[1] / "data" / "torch"
SCRIPT = """
import os, tempfile
import neighbour
import numpy as np
import onnxruntime
class Engine:
    def compile(self, model, options):
        open(os.path.join(tempfile.gettempdir(), "left-behind"), "w").close()
        session = onnxruntime.InferenceSession(str(model))
        names = [output.name for output in session.get_outputs()]
        class Session:
            def run(self, feed):
                return dict(zip(names, session.run(names, dict(feed))))
        return Session()
"""


@pytest.fixture
def home(tmp_path):
    """Return an environment whose every place for files is new, and a function that lists what lies there."""
    places = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
    for name in places.values():
        (tmp_path / name).mkdir()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ORT_", "CI"))}
    env = inherited | {key: str(tmp_path / name) for key, name in places.items()}
    return env, lambda: [str(path) for name in places.values() for path in sorted((tmp_path / name).rglob("*"))]


def triage(env, folder, *words):
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words)]
    return subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=forbid_sockets
    )


def target(name, folder):
    if name == "script":
        (folder / "engine.py").write_text(SCRIPT)
        (folder / "neighbour.py").write_text("")
        return f"script:{folder / 'engine.py'}"
    if not availabilities()[name].usable:
        pytest.skip(f"{name} is not usable here")
    return "emulate:precision=fp16" if name == "emulate" else name


@pytest.mark.parametrize("name", ["float64", "emulate", "onnxruntime", "openvino", "tensorrt", "script"])
def test_an_engine_keeps_to_itself(name, home, tmp_path):
    needs_socket_filter()
    env, left = home
    work = tmp_path / "work"
    work.mkdir()
    spec = target(name, work)
    before = set(work.rglob("*"))
    done = triage(env, work, "run", MODEL, "--target", spec, "--inputs", FEED, "--rtol", "0.1", "--json")
    assert done.returncode != -signal.SIGSYS, "it opened a socket"
    assert "SIGSYS" not in done.stderr, "its engine opened a socket"
    outcomes = json.loads(done.stdout)["outcomes"]
    assert {outcome["kind"] for outcome in outcomes.values()} == {"ok"}, done.stderr
    assert left() == []
    assert set(work.rglob("*")) == before


@pytest.mark.parametrize("name", ["torch", "onnxruntime"])
def test_an_engine_of_another_python_keeps_to_itself(name, home, tmp_path):
    """As engines in environments are: here the other Python is this one, in a process of its own."""
    needs_socket_filter()
    env, left = home
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    spec = f"torch:{TORCH / 'small_transformer.py'}:network" if name == "torch" else "onnxruntime:optimization=all"
    words = ["run", TORCH / "small_transformer.onnx", "--target", f"{spec},worker={sys.executable}", "--rtol", "0.1"]
    done = triage(env, tmp_path, *words, "--json")
    assert done.returncode != -signal.SIGSYS, "it opened a socket"
    assert "SIGSYS" not in done.stderr, "its engine opened a socket"
    assert {outcome["kind"] for outcome in json.loads(done.stdout)["outcomes"].values()} == {"ok"}, done.stderr
    assert left() == []
    assert {path.name for path in tmp_path.iterdir()} == {"home", "tmp", "cache", "config"}


def test_a_diagnosis_writes_to_its_case_only(home, tmp_path):
    needs_socket_filter()
    env, left = home
    spec = target("openvino", tmp_path)
    done = triage(env, tmp_path, "diagnose", MODEL, "--target", f"{spec}:precision=fp32", "--inputs", FEED)
    assert done.returncode == 0, done.stderr
    assert left() == []
    assert {path.name for path in tmp_path.iterdir()} == {"home", "tmp", "cache", "config", "triage-case"}


def test_programs_that_check_inherit_the_silence(home, tmp_path):
    env, left = home
    check = f"{sys.executable} -c \"import onnxruntime as o; o.InferenceSession('{MODEL}')\""
    done = triage(env, tmp_path, "debug", "reduce", MODEL, "-o", "piece.onnx", "--check", "sh", "-c", check)
    assert done.returncode == 2, done.stderr  # the whole model does not fail
    assert left() == []
