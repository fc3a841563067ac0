"""The script of a repro, run as its reader runs it: the model computes ``y = x + x``, so x thrice is wrong."""

import ast
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from onnx import numpy_helper

import models
from tensortriage.reduce.repro.repro_script import script

X = np.array([1.0, -2.0, 4.0], np.float32)
LIMIT = 0.01


@pytest.fixture
def run(tmp_path):
    """Return what runs the script of a target on data sets, and gives its exit code and what it printed."""
    models.write(tmp_path / "model.onnx", "g (float[3] x) => (float[3] y) { y = Add(x, x) }")

    def ended(target, *expected):
        for number, array in enumerate(expected):
            folder = tmp_path / f"test_data_set_{number}"
            folder.mkdir()
            for name, values in (("input_0", numpy_helper.from_array(X, "x")), ("output_0", _named(array))):
                (folder / f"{name}.pb").write_bytes(values.SerializeToString())
        (tmp_path / "repro.py").write_text(script(target, limit=LIMIT))
        done = subprocess.run(
            [sys.executable, "repro.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    return ended


def _named(array):
    return numpy_helper.from_array(np.asarray(array, np.float32), "y")


@pytest.mark.parametrize("target", ["onnxruntime", "onnxruntime:optimization=none", "emulate:precision=fp16"])
def test_what_is_right_ends_with_0(run, target):
    code, printed = run(target, 2 * X)
    assert code == 0
    assert "test_data_set_0 'y' relative error 0.0" in printed


@pytest.mark.parametrize(
    "wrong", [3 * X, np.append(2 * X, 0.0), [2.0, -4.0, np.inf], 2 * X * (1 + 1.5 * LIMIT)],
    ids=["numbers", "shape", "infinity", "just beyond the limit"],
)  # fmt: skip
def test_one_wrong_data_set_ends_with_1(run, wrong):
    assert run("onnxruntime", 2 * X, wrong)[0] == 1


def test_what_is_within_the_limit_ends_with_0(run):
    assert run("onnxruntime", 2 * X * (1 + 0.5 * LIMIT))[0] == 0


def test_openvino_is_asked_for_its_precision(run):
    pytest.importorskip("openvino")
    assert run("openvino:precision=fp32", 2 * X)[0] == 0
    assert "'INFERENCE_PRECISION_HINT': 'bf16'" in script("openvino:precision=bf16", limit=LIMIT)


@pytest.mark.parametrize(
    ("target", "plain"),
    [
        ("onnxruntime", True), ("onnxruntime:optimization=basic", True), ("onnxruntime:threads=1", False),
        ("openvino", True), ("openvino:threads=1", False), ("emulate:precision=fp16", False),
    ],
)  # fmt: skip
def test_plain_engines_need_no_tensortriage(target, plain):
    imported = {
        name
        for node in ast.walk(ast.parse(script(target, limit=LIMIT)))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
        )
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert any(name.startswith("tensortriage") for name in imported) == (not plain)
    assert all(importlib.util.find_spec(name.partition(".")[0]) for name in imported - {"openvino"})


@pytest.mark.parametrize(
    ("word", "level"),
    [("none", "DISABLE_ALL"), ("basic", "ENABLE_BASIC"), ("extended", "ENABLE_EXTENDED"), ("all", "ENABLE_ALL")],
)
def test_the_level_of_optimization_is_that_of_the_target(word, level):
    assert f"GraphOptimizationLevel.ORT_{level}\n" in script(f"onnxruntime:optimization={word}", limit=LIMIT)
