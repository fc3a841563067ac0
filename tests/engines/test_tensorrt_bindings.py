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
RECORD = json.loads((Path(__file__).parents[1] / "data" / "tensorrt" / "bindings.json").read_text())
WORKER = Path(__file__).parents[2] / "worker"
LIBRARIES = {
    "nvinfer": ("createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL",
                "getBuilderPluginRegistry", "getPluginRegistry"),
    "nvinfer_plugin": ("initLibNvInferPlugins",),
    "nvonnxparser": ("createNvOnnxParserRefitter_INTERNAL", "createNvOnnxParser_INTERNAL", "getNvOnnxParserVersion"),
}  # fmt: skip
IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
from tensortriage_worker.adapter import AdapterError
from tensortriage_engines.tensorrt.worker import adapter, calibration, debug_tensors, session, tactics
from tensortriage_engines.tensorrt.worker.library import features, make_logger
from tensortriage_engines.tensorrt.worker.logs import LogMiner
used = (adapter.make_builder, calibration._make, debug_tensors.make_listener, session._make_allocator,
        tactics.make_selector)
"""
PROGRAM = (
    IMPORTS
    + """
import importlib, json
sys.path.insert(0, sys.argv[2])
trt = importlib.import_module("tensorrt_bindings")
miner = LogMiner(echo=False)
logger = make_logger(trt, miner)
told = features(trt)
assert isinstance(session._make_allocator(trt, None, "y"), trt.IOutputAllocator)
if told["mark_debug"]:
    assert isinstance(debug_tensors.make_listener(trt, None, None, print), trt.IDebugListener)
if told["algorithm_selector"]:
    assert isinstance(tactics.make_selector(trt, []), trt.IAlgorithmSelector)
if told["calibrator"]:
    base = trt.IInt8EntropyCalibrator2
    assert isinstance(calibration._make(trt, base, [], b"cache", {}), base)
try:
    adapter.make_builder(trt, logger, miner)
except AdapterError as error:
    assert error.slug == "device-missing", error
print(json.dumps({"features": told, "classes": {c: sorted(vars(getattr(trt, c))) for c in dir(trt)
                                                if isinstance(getattr(trt, c), type)}}))
"""
)


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


def test_what_the_opt_in_program_uses_is_there():
    """Without bindings nothing else would tell that a module or function of the adapter moved."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(WORKER)], capture_output=True, text=True, check=False, cwd=WORKER
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    not FOLDERS or shutil.which("gcc") is None, reason="opt-in: TRIAGE_TRT_BINDINGS names folders with real bindings"
)
@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_release(folder, stand_ins):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(WORKER), str(folder)],
        env={**os.environ, "LD_LIBRARY_PATH": str(stand_ins)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    recorded = RECORD.get(told["features"]["version"])
    if recorded is not None:
        assert {name: sorted(members) for name, members in recorded.items()} == {
            name: sorted(set(told["classes"][name]) & set(members)) for name, members in recorded.items()
        }
