"""TensorRT on the command line where it cannot run: one line, the way to install it, and nothing else is touched."""

import ctypes
import subprocess
import sys

import pytest

from running_cli import EXAMPLES, triage

MODEL = EXAMPLES / "digits_cnn.onnx"
BLOCKED = """
import importlib.util, sys
real = importlib.util.find_spec
hidden = ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")
importlib.util.find_spec = lambda name, *rest: None if name in hidden else real(name, *rest)
from tensortriage.cli import main
try:
    main()
finally:
    print(sorted(name for name in sys.modules if name.split(".")[0] in (*hidden, "cuda")), file=sys.stderr)
"""


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def without_tensorrt(*words, cwd):
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ["run", MODEL, "--onnxrt", "--trt", "--fp16"],
        ["diagnose", MODEL, "--target", "tensorrt:precision=fp16"],
        ["convert", MODEL, "--convert-to", "trt", "-o", "a.engine"],
    ],
    ids=lambda words: words[0],
)
def test_without_tensorrt_the_way_to_install_it_is_told(tmp_path, words):
    done = without_tensorrt(*words, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    first, second, *modules = done.stderr.splitlines()
    assert first == "triage: error[engine-missing]: engine 'tensorrt' cannot be used here: TensorRT is not installed"
    assert second.startswith("  cure: pip install tensorrt cuda-bindings")
    assert modules == ["[]"]
    assert not list(tmp_path.iterdir())


@pytest.mark.lengthy
def test_an_engine_is_calibrated_with_the_feeds_named_by_either_option(tmp_path):
    words = ["convert", MODEL, "--int8", "-o", "a.engine"]
    both = [without_tensorrt(*words, name, "absent.npz", cwd=tmp_path) for name in ("--load-inputs", "--inputs")]
    assert [done.returncode for done in both] == [2, 2]
    assert both[0].stderr == both[1].stderr
    assert "absent.npz" in both[1].stderr


def test_no_other_command_imports_tensorrt(tmp_path):
    done = without_tensorrt("run", MODEL, "--onnxrt", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.skipif(has_driver(), reason="there is an NVIDIA driver here")
def test_without_a_driver_that_is_told(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--trt", cwd=tmp_path)
    assert done.returncode == 3
    assert "TensorRT is not installed" in done.stderr or "no NVIDIA driver" in done.stderr


def test_flags_without_the_runner_are_an_error(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--fp16", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[flag-without-runner]: --fp16" in done.stderr


def test_another_python_that_lacks_tensorrt_is_named(tmp_path):
    """The worker's Python is this one, told to use a TensorRT that nobody has."""
    done = triage("run", MODEL, "--target", f"tensorrt:worker={sys.executable},library=tensorrt", cwd=tmp_path)
    if "tensorrt-missing" not in done.stderr:
        pytest.skip("TensorRT is installed here")
    assert done.returncode == 3
