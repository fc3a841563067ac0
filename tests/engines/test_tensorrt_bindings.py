"""The adapter on the real bindings of any release, without TensorRT: its libraries are replaced by nine functions.

Opt-in, since the bindings are to be fetched first: TRIAGE_TRT_BINDINGS names folders, separated by colons, each with a
``tensorrt_bindings`` package (``pip download --no-deps tensorrt_cu13_bindings==11.4.0.106``, unzipped). Builders are
null there, so what runs is import, feature detection, and that the binding takes the adapter's subclasses.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = [Path(folder) for folder in os.environ.get("TRIAGE_TRT_BINDINGS", "").split(":") if folder]
pytestmark = pytest.mark.skipif(
    not FOLDERS or shutil.which("gcc") is None, reason="opt-in: TRIAGE_TRT_BINDINGS names folders with real bindings"
)
RECORD = json.loads((Path(__file__).parents[1] / "data" / "tensorrt" / "bindings.json").read_text())
WORKER = Path(__file__).parents[2] / "worker"
LIBRARIES = {
    "nvinfer": ("createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL",
                "getBuilderPluginRegistry", "getPluginRegistry"),
    "nvinfer_plugin": ("initLibNvInferPlugins",),
    "nvonnxparser": ("createNvOnnxParserRefitter_INTERNAL", "createNvOnnxParser_INTERNAL", "getNvOnnxParserVersion"),
}  # fmt: skip
PROGRAM = """
import importlib, json, sys
sys.path[:0] = sys.argv[1:3]
trt = importlib.import_module("tensorrt_bindings")
from tensortriage_worker import tensorrt_adapter, tensorrt_calibration, tensorrt_debug
from tensortriage_worker import tensorrt_session, tensorrt_tactics
from tensortriage_worker.adapter import AdapterError
from tensortriage_worker.tensorrt.library import features, make_logger
from tensortriage_worker.tensorrt.logs import LogMiner

miner = LogMiner(echo=False)
logger = make_logger(trt, miner)
told = features(trt)
assert isinstance(tensorrt_session._make_allocator(trt, None, "y"), trt.IOutputAllocator)
if told["mark_debug"]:
    assert isinstance(tensorrt_debug.make_listener(trt, None, None, print), trt.IDebugListener)
if told["algorithm_selector"]:
    assert isinstance(tensorrt_tactics.make_selector(trt, []), trt.IAlgorithmSelector)
if told["calibrator"]:
    base = trt.IInt8EntropyCalibrator2
    assert isinstance(tensorrt_calibration._make(trt, base, [], b"cache", {}), base)
try:
    tensorrt_adapter.make_builder(trt, logger, miner)
except AdapterError as error:
    assert error.slug == "device-missing", error
print(json.dumps({"features": told, "classes": {c: sorted(vars(getattr(trt, c))) for c in dir(trt)
                                                if isinstance(getattr(trt, c), type)}}))
"""


@pytest.fixture
def stand_ins(tmp_path):
    """Return a folder with libraries that have the functions the binding looks for, and nothing behind them."""
    for name, functions in LIBRARIES.items():
        source = tmp_path / f"{name}.c"
        source.write_text("".join(f"void *{function}(void) {{ return 0; }}\n" for function in functions))
        for major in (10, 11):
            library = f"lib{name}.so.{major}"
            command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", str(tmp_path / library), str(source)]
            subprocess.run(command, check=True)
    return tmp_path


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_release(folder, stand_ins):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(WORKER)],
        env={**os.environ, "LD_LIBRARY_PATH": str(stand_ins)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    recorded = RECORD.get(told["features"]["version"])
    if recorded is not None:
        assert {name: sorted(members) for name, members in recorded.items()} == {
            name: sorted(set(told["classes"][name]) & set(members)) for name, members in recorded.items()
        }
