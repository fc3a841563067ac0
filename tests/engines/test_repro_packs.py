"""Packs handed on: they fail where there are numpy and the engine alone, and pass on an engine that is healthy.

Ten faults of an engine of the user's own, which computes with ONNX Runtime, and five of shipped releases, from the
atlas; two of those are of engines for phones, which run where their environments were made.
"""

import os
import shutil
import subprocess
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.reduce.repro.engine_half import engine_half
from tensortriage.reduce.repro.repro_case import Repro, ReproSample, failure_of
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.repro.repro_script import script
from tensortriage.reduce.repro.repro_texts import TextFacts
from tensortriage.runs.lab import Lab
from tensortriage_engines.install.environments import environments
from tensortriage_engines.openvino.engine import OpenVinoEngine

pytestmark = pytest.mark.lengthy

ATLAS = Path(__file__).parents[2] / "docs" / "atlas" / "repros"
NEEDED = {
    "onnxruntime": ("numpy", "onnxruntime", "flatbuffers", "packaging", "protobuf"),
    "openvino": ("numpy", "openvino", "openvino-telemetry"),
}
PLANTED = """
import os
import numpy as np
import onnxruntime
from faults import FAULTS, HEALTHY

class Engine:
    def compile(self, path, options):
        if not HEALTHY and options["fault"] == "refused":
            raise RuntimeError("no kernel for this")
        return Session(path, FAULTS[options["fault"]])

class Session:
    def __init__(self, path, fault):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.fault = fault

    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        found = self.session.run(names, dict(feed))
        return {name: array if HEALTHY else self.fault(array) for name, array in zip(names, found)}
"""
FAULTS = """
import os
import numpy as np

HEALTHY = False

def with_nan(array):
    array = array.copy()
    array.reshape(-1)[-1] = np.nan
    return array

def last_row_zero(array):
    array = array.copy()
    array[-1] = 0
    return array

FAULTS = {
    "scaled": lambda array: array * np.float32(1.03),
    "shifted": lambda array: array + np.float32(0.01),
    "rows exchanged": lambda array: array[::-1].copy(),
    "transposed": lambda array: np.ascontiguousarray(array.T).reshape(array.shape),
    "not finite": with_nan,
    "last row": last_row_zero,
    "saturated": lambda array: np.clip(array, -0.5, 0.5),
    "another shape": lambda array: array[None],
    "refused": lambda array: array,
    "crashed": lambda array: os.abort(),
}
"""
KINDS = ["scaled", "shifted", "rows exchanged", "transposed", "not finite", "last row", "saturated", "another shape",
         "refused", "crashed"]  # fmt: skip
OPS = ["MatMul(x, w)", "Softmax(x)", "Relu(x)", "Tanh(x)", "Sigmoid(x)", "Erf(x)", "Add(x, w)", "Mul(x, w)", "Exp(x)",
       "LogSoftmax(x)"]  # fmt: skip
DIVERGENT = ["dft_axis", "reduce_max_empty_set", "resize_downsample_scales_cubic_antialias"]
PHONES = [
    ("mnn", "mnn-3.6.1/batchnorm_without_epsilon"),
    ("ncnn", "ncnn-1.0.20261020/reduce_l2_default_axes_keepdims_random"),
]
MADE = {environment.engine: environment.python for environment in environments()}


@pytest.fixture(scope="module")
def pythons(tmp_path_factory):
    """Return Pythons that see numpy and one engine alone, and one that sees numpy alone."""
    made = {}
    for engine, names in {**NEEDED, "none": ("numpy",)}.items():
        if engine == "openvino" and not OpenVinoEngine().availability().usable:
            continue
        place = tmp_path_factory.mktemp(engine)
        venv.create(place, symlinks=True, with_pip=False)
        (site,) = place.glob("lib/python*/site-packages")
        for distribution in map(metadata.distribution, names):
            for name in {file.parts[0] for file in distribution.files if ".." not in file.parts}:
                if not (site / name).exists():
                    (site / name).symlink_to(distribution.locate_file(name))
        made[engine] = str(place / "bin" / "python")
    return made


def packed(folder, target, model, feed):
    """Write the pack of a model whose right results are ONNX Runtime's, and return what its trial gave."""
    session = OnnxRuntimeEngine().compile(model, {"optimization": "none"})
    expected = {name: np.array(array) for name, array in session.run(feed).items()}
    session.close()
    repro, spec = Repro(Model.load(model), (ReproSample(feed, expected),)), EngineSpec.parse(target)
    with Lab() as lab, lab.session(spec, repro.model, sequence=True) as run:
        local = failure_of(repro, run)
    assert local is not None, "it is healthy"
    return write_pack(folder, repro, TextFacts(spec, {}, local), limits=Limits()), local


def ended(python, folder):
    """Run a pack and return its exit code and what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, "repro.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="links and folders of a virtual environment are those of Linux")
@pytest.mark.parametrize(("kind", "op"), [*zip(KINDS, OPS, strict=True)])
def test_planted_faults_fail_with_numpy_and_the_engine_alone(tmp_path, pythons, kind, op):
    own = tmp_path / "own"
    own.mkdir()
    (own / "planted.py").write_text(PLANTED)
    (own / "faults.py").write_text(FAULTS)
    text = f"g (float[3,3] x) => (float[3,3] y) <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}> {{ y = {op} }}"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), own / "m.onnx")
    feed = {"x": np.linspace(-2, 2, 9, dtype=np.float32).reshape(3, 3)}
    trial, _ = packed(tmp_path / "pack", f"script:{own / 'planted.py'},fault={kind}", own / "m.onnx", feed)
    assert (trial.otherwise, trial.place) == ("", "a fresh environment"), trial.printed
    readme = (tmp_path / "pack" / "README.md").read_text()
    assert str(own) not in readme + (tmp_path / "pack" / "repro.py").read_text()
    assert "onnxruntime " in readme
    assert "CPU " in readme
    shutil.move(tmp_path / "pack", tmp_path / "sent")
    shutil.rmtree(own)  # nothing of the sender's is there
    assert ended(pythons["onnxruntime"], tmp_path / "sent")[0] == 1
    code, printed = ended(pythons["none"], tmp_path / "sent")
    assert (code, "missing: onnxruntime" in printed) == (2, True), printed
    mended = tmp_path / "sent" / "engine" / "faults.py"
    mended.write_text(mended.read_text().replace("HEALTHY = False", "HEALTHY = True"))
    assert ended(pythons["onnxruntime"], tmp_path / "sent")[0] == 0


def check_divergence(folder, target, place, python, healthy):
    with np.load(ATLAS / f"{place}.npz") as data:
        feed = dict(data)
    trial, local = packed(folder, target, ATLAS / f"{place}.onnx", feed)
    assert trial.otherwise == "", trial.printed
    assert ended(python, folder)[0] == 1
    half = engine_half(EngineSpec.parse("onnxruntime"), None, Limits())
    (folder / "repro.py").write_text(script(half.code, limit=1e-4, failure=local))
    code, printed = ended(healthy, folder)
    assert code == 0, printed


@pytest.mark.skipif(OpenVinoEngine().availability().version != "2026.4.1", reason="the repros are of OpenVINO 2026.4.1")
@pytest.mark.parametrize("place", DIVERGENT)
def test_divergences_of_openvino_fail_on_it_and_pass_on_another(tmp_path, pythons, place):
    target = "openvino:precision=fp32"
    check_divergence(tmp_path / "p", target, f"openvino-2026.4.1/{place}", pythons["openvino"], pythons["onnxruntime"])


@pytest.mark.parametrize(("engine", "place"), PHONES)
def test_divergences_of_phone_engines_fail_on_them_and_pass_on_another(tmp_path, pythons, engine, place):
    if engine not in MADE:
        pytest.skip(f"no environment: triage engines install {engine}")
    python = MADE[engine]
    check_divergence(tmp_path / "p", f"{engine}:worker={python}", place, python, pythons["onnxruntime"])
