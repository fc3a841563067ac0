"""A pack that is tried: failing again, passing, and not running are told apart, and what it sees is what it needs."""

import subprocess

import pytest

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.trial import _fresh, tried

LOCAL = Failure(FailureKind.WRONG, "y", 0.5)


@pytest.mark.parametrize(
    ("script", "otherwise", "place"),
    [
        ("print('off by 0.5')\nsys.exit(1)", "", "a fresh environment"),
        ("pass", "it passes", "a fresh environment"),
        ("print('cannot be run here: it is too hot')\nsys.exit(2)", "it could not be run: it is too hot",
         "the environment of TensorTriage"),
        ("raise SystemExit(7)", "it could not be run: exit code 7", "a fresh environment"),
        ("import importlib\ntry:\n    importlib.import_module('on' + 'nx')\n    sys.exit(1)\nexcept ImportError:\n"
         "    sys.exit(2)", "", "the environment of TensorTriage"),
    ],
)  # fmt: skip
def test_what_a_pack_does_is_told(tmp_path, script, otherwise, place):
    (tmp_path / "repro.py").write_text(f"import sys\n{script}\n")
    trial = tried(tmp_path, EngineSpec.parse("onnxruntime"), LOCAL, Limits())
    assert (trial.otherwise, trial.place) == (otherwise, place), trial.printed


def test_it_is_run_until_it_fails(tmp_path):
    (tmp_path / "repro.py").write_text(
        "import pathlib, sys\nfile = pathlib.Path('runs')\nruns = file.read_text() if file.exists() else ''\n"
        "file.write_text(runs + 'x')\nsys.exit(len(runs) == 2)\n"
    )
    assert tried(tmp_path, EngineSpec.parse("onnxruntime"), LOCAL, Limits(), attempts=2).otherwise == "it passes"
    assert tried(tmp_path, EngineSpec.parse("onnxruntime"), LOCAL, Limits(), attempts=2).otherwise == ""


def test_a_fresh_environment_has_what_is_needed_and_nothing_else(tmp_path):
    python = _fresh(tmp_path / "env", {"onnxruntime"})
    code = "import importlib.util as u; print([n for n in {} if u.find_spec(n)])"
    words = [python, "-c", code.format(["numpy", "onnxruntime", "flatbuffers", "onnx", "tensortriage", "pytest"])]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['numpy', 'onnxruntime', 'flatbuffers']"
