"""The script of a repro, run as its reader runs it: the model computes ``y = x + x``, so x thrice is wrong."""

import ast
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper

import models
from engine_scripts import engine_file
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.engine_half import engine_half
from tensortriage.reduce.repro.repro_case import Repro, ReproSample
from tensortriage.reduce.repro.repro_script import script

X = np.array([1.0, -2.0, 4.0], np.float32)
LIMIT = 0.01
WRONG = Failure(FailureKind.WRONG, "y", 0.1)


def text_of(folder, target, failure=WRONG, **more):
    """Return the script of a target, and write what calls its engine."""
    repro = Repro(Model.load(folder / "model.onnx"), (ReproSample({"x": X}, {"y": 2 * X}),))
    half = engine_half(EngineSpec.parse(target), repro, Limits())
    for path, content in half.files.items():
        (folder / "engine" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "engine" / path).write_bytes(content)
    return script(half.code, limit=LIMIT, failure=failure, **more)


@pytest.fixture
def folder(tmp_path):
    models.write(tmp_path / "model.onnx", "g (float[3] x) => (float[3] y) { y = Add(x, x) }")
    return tmp_path


@pytest.fixture
def run(folder):
    """Return what runs the script of a target on data sets, and gives its exit code and what it printed."""

    def ended(target, *expected, **more):
        for number, array in enumerate(expected):
            place = folder / f"test_data_set_{number}"
            place.mkdir()
            for name, values in (("input_0", numpy_helper.from_array(X, "x")), ("output_0", _named(array))):
                (place / f"{name}.pb").write_bytes(values.SerializeToString())
        (folder / "repro.py").write_text(text_of(folder, target, **more))
        done = subprocess.run(
            [sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
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
    assert "test_data_set_0 'y' relative error 0 in 0 of 3 elements\n" in printed
    assert printed.endswith("it does not fail here: relative error 0, which counts from 0.01 on\n")


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "wrong", [3 * X, np.append(2 * X, 0.0), [2.0, -4.0, np.inf], 2 * X * (1 + 1.5 * LIMIT)],
    ids=["numbers", "shape", "infinity", "just beyond the limit"],
)  # fmt: skip
def test_one_wrong_data_set_ends_with_1(run, wrong):
    assert run("onnxruntime", 2 * X, wrong)[0] == 1


def test_the_worst_elements_come_first_with_their_places(run):
    """y is [2, -4, 8]: the last is off by 4, the second is NaN on one side, the first is right."""
    code, printed = run("onnxruntime", [2.0, np.nan, 4.0])
    places = [line.strip() for line in printed.splitlines() if line.startswith("  at ")]
    assert code == 1
    assert places == ["at [1] expected nan got -4.0", "at [2] expected 4.0 got 8.0"]
    assert printed.endswith("it fails again: relative error inf, which counts from 0.01 on\n")


def test_another_engine_is_asked_where_one_is_named(run, folder):
    """A file that gives y = 0, and the same engine by its provider."""
    run("onnxruntime", 2 * X)
    (folder / "mine.py").write_text("def opened(path):\n    return lambda inputs, names: {'y': 0 * inputs['x']}\n")
    ended = {}
    for word in ("mine.py", "onnxruntime:CPUExecutionProvider", "tensorrt"):
        words = [sys.executable, "repro.py", "--engine", word]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        ended[word] = (done.returncode, done.stdout.splitlines()[-1])
    assert ended["mine.py"] == (1, "it fails again: relative error 1, which counts from 0.01 on")
    assert ended["onnxruntime:CPUExecutionProvider"][0] == 0
    assert ended["tensorrt"][0] == 2
    assert ended["tensorrt"][1].endswith("openvino[:DEVICE] or FILE.py, not tensorrt")


def test_help_says_what_it_does_and_runs_nothing(run, folder):
    run("onnxruntime", 2 * X)
    words = [sys.executable, "repro.py", "--help"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Exit code 0: it does not fail here" in done.stdout
    assert "--engine" in done.stdout
    assert "relative error" not in done.stdout


def test_what_is_within_the_limit_ends_with_0(run):
    assert run("onnxruntime", 2 * X * (1 + 0.5 * LIMIT))[0] == 0


@pytest.mark.lengthy
@pytest.mark.parametrize("target", ["onnxruntime", "onnxruntime:threads=1", "openvino:precision=fp32,threads=1"])
def test_an_engine_is_asked_as_its_options_say(run, target):
    if target.startswith("openvino"):
        pytest.importorskip("openvino")
    assert run(target, 2 * X)[0] == 0


def test_an_engine_takes_other_models_than_the_packs(folder):
    """As the module next to it, exported again, whose inputs have other names."""
    models.write(folder / "other.onnx", "g (float[3] given) => (float[3] made) { made = Neg(given) }")
    file = engine_file(WRAPPER)
    for target in ("onnxruntime", f"script:{file}"):
        scope = {"__file__": str(folder / "repro.py")}
        exec(text_of(folder, target).rpartition("main()")[0], scope)
        found = scope["opened"](folder / "other.onnx")({"given": X}, ["made"])
        np.testing.assert_array_equal(found["made"], -X)


WRAPPER = """
import onnxruntime

class Engine:
    def compile(self, path, options):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return self

    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, dict(feed))))
"""


def test_openvino_is_asked_for_its_precision(run, folder):
    pytest.importorskip("openvino")
    assert run("openvino:precision=fp32", 2 * X)[0] == 0
    assert "'INFERENCE_PRECISION_HINT': 'bf16'" in text_of(folder, "openvino:precision=bf16")


IMPORTS = {"numpy", "onnxruntime", "openvino", "tensortriage_worker", "importlib"}


@pytest.mark.parametrize(
    ("target", "plain"),
    [
        ("onnxruntime", True), ("onnxruntime:optimization=basic", True), ("onnxruntime:threads=1", True),
        ("openvino", True), ("emulate:precision=fp16", False),
    ],
)  # fmt: skip
def test_only_engines_of_this_package_need_it(folder, target, plain):
    imported = set()
    sources = [text_of(folder, target), *(path.read_text() for path in (folder / "engine").rglob("*.py"))]
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert ("tensortriage" in imported) == (not plain)
    assert "onnx" not in imported
    assert imported - {"tensortriage"} <= IMPORTS | set(sys.stdlib_module_names) | {"ml_dtypes"}


@pytest.mark.parametrize(
    ("word", "level"),
    [("none", "DISABLE_ALL"), ("basic", "ENABLE_BASIC"), ("extended", "ENABLE_EXTENDED"), ("all", "ENABLE_ALL")],
)
def test_the_level_of_optimization_is_that_of_the_target(folder, word, level):
    assert f"GraphOptimizationLevel.ORT_{level}\n" in text_of(folder, f"onnxruntime:optimization={word}")


ENGINE = """
import os, signal, time
import numpy as np

class Engine:
    def compile(self, path, options):
        {building}
        return self

    def run(self, feed):
        {running}
        return {{"y": 2 * feed["x"]}}
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("building", "running", "kind", "code", "told"),
    [
        ("import no_such_package", "pass", "wrong", 2, "missing: no_such_package"),
        ("raise ValueError('no kernel')", "pass", "wrong", 2, "cannot be run here: ValueError: no kernel"),
        ("raise ValueError('no kernel')", "pass", "build-failed", 1, "build-failed: no kernel"),
        ("pass", "raise ValueError('too large')", "run-failed", 1, "run-failed: too large"),
        ("pass", "raise ValueError('too large')", "build-failed", 2, "cannot be run here: ValueError: too large"),
        ("pass", "pass", "build-failed", 0, "relative error 0 in"),
        ("pass", "os.kill(os.getpid(), signal.SIGSEGV)", "engine-crash", 1, "the process ended with -11"),
        ("pass", "pass", "engine-crash", 0, "relative error 0 in"),
        ("pass", "time.sleep(60)", "engine-hang", 1, "it was still running after 600 s"),
    ],
)
def test_failing_as_reported_is_told_from_failing_to_run(folder, run, building, running, kind, code, told):
    engine = folder / "own" / "engine.py"
    engine.parent.mkdir()
    engine.write_text(ENGINE.format(building="pass", running="pass"))
    (folder / "repro.py").write_text("")
    target, failure = f"script:{engine}", Failure(FailureKind(kind), message="as it was")
    assert run(target, 2 * X, failure=failure)[0] == 0
    seconds = 2 if kind == "engine-hang" else 60
    script_file = folder / "repro.py"
    script_file.write_text(script_file.read_text().replace("timeout=600", f"timeout={seconds}"))
    (folder / "engine/engine.py").write_text(ENGINE.format(building=building, running=running))
    done = subprocess.run([sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stdout) == (code, True), done.stdout + done.stderr


def test_a_pack_without_numpy_says_so(folder, run):
    run("onnxruntime", 2 * X)
    words = [sys.executable, "-I", "-S", "repro.py"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "numpy is missing" in done.stdout) == (2, True), done.stdout + done.stderr


def test_what_it_was_run_with_is_printed(run):
    _, printed = run("onnxruntime", 2 * X)
    assert f"numpy {np.__version__}\n" in printed
    assert "onnxruntime " in printed
    assert "python 3." in printed
    assert "CPU " in printed


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float16([[1.5, -2.0]]), np.float16([[1.5, -2.0]])),
        (np.array([True, False]), np.array([True, False])),
        (np.int64(-7), np.int64(-7)),
        (np.array(["a", "bc"], object), np.array(["a", "bc"], object)),
        (np.complex64([1 + 2j]), np.complex64([1 + 2j])),
        (np.float32([1.0, -3.0]).astype(ml_dtypes.bfloat16), np.uint16([0x3F80, 0xC040])),
        (np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.uint8)),
    ],
)
def test_tensors_are_read_without_onnx(folder, array, expected):
    source = text_of(folder, "onnxruntime")
    scope = {"__file__": str(folder / "repro.py")}
    exec(source.rpartition("main()")[0], scope)
    name, found = scope["tensor"](numpy_helper.from_array(np.asarray(array), "a tensor").SerializeToString())
    assert (name, found.dtype, found.shape) == ("a tensor", expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
