"""Searching 8 bits in this process: a chain of MatMuls with the identity of which one operand holds an outlier."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
import running
from engine_scripts import engine_file
from machine import OLDER, be_processor
from quantization_aware import IDENTITIES
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.precision.goal import GoalReading
from tensortriage.precision.search.request import GoalRequest, PrecisionMode, PrecisionRequest
from tensortriage.precision.selection.switchable_model import Choosable
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.find_precision import find_precision
from tensortriage_quantize.search.quantized_candidates import QuantizedCandidates

GOAL = GoalRequest(sqnr_db=33.5)


class Listening:
    def __init__(self):
        self.heard = []

    def progress(self, text):
        pass

    def tell(self, text):
        self.heard.append(text)


@pytest.fixture
def feed(tmp_path):
    models.write(tmp_path / "m.onnx", IDENTITIES)
    rng = np.random.default_rng(0)
    arrays = {name: rng.uniform(-1, 1, (16, 8)).astype(np.float32) for name in ("x", "big")}
    arrays["big"][0, :2] = 60.0, -60.0  # of both signs: symmetric or not, a step is of one size
    np.savez(tmp_path / "m.npz", **arrays)
    return arrays


def search(folder, listener=None, **wanted):
    wanted = {"target": "onnxruntime", "output": folder / "mixed.onnx", "goal": GOAL, **wanted}
    feeding = FeedRequest(paths=[str(folder / "m.npz")])
    request = PrecisionRequest(model=folder / "m.onnx", feeding=feeding, case=folder / "case", **wanted)
    return find_precision(request, listener=listener or Listening())


def quantized_nodes(path):
    """Return the MatMuls of a model whose first operand comes from a DequantizeLinear, by onnx alone."""
    graph = onnx.load(path).graph
    pairs = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    return {node.name for node in graph.node if node.op_type == "MatMul" and node.input[0] in pairs}


def activation_types(path):
    """Return the types that numbers which are no weights are quantized to, by onnx alone."""
    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = (node for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] not in stored)
    return {stored[node.input[2]].dtype for node in pairs}


@pytest.mark.parametrize(
    ("target", "low", "kind", "said"),
    [
        ("onnxruntime", Precision.INT8, np.uint8, "--precision int8"),
        ("emulate:precision=int8", None, np.int8, "--precision int8 --for tensorrt"),
    ],
    ids=["engine", "emulated"],
)
def test_the_engine_confirms_the_fewest_and_the_written_model_is_that(tmp_path, feed, target, low, kind, said):
    plan = search(tmp_path, target=target, low=low)
    assert "outlier" in plan.kept
    assert activation_types(tmp_path / "mixed.onnx") == {np.dtype(kind)}
    assert plan.settings["triage"] == f"{said} --keep-nodes {' '.join(plan.kept)}"
    assert quantized_nodes(tmp_path / "mixed.onnx") == {"first", "outlier", "last"} - set(plan.kept)
    assert (plan.precision, plan.candidates, plan.minimality) == ("int8", 3, "one-minimal")
    assert plan.builds <= 10
    # the figure of the plan, from the files alone: noise power over signal power of numpy arrays
    exact = (feed["x"] + feed["big"]).astype(np.float64)
    found = running.run(Model.load(tmp_path / "mixed.onnx"), feed)["y"]
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert plan.error.measured == pytest.approx(error, rel=1e-3)
    assert error <= 10 ** (-33.5 / 20) < plan.error.as_asked
    assert json.loads((tmp_path / "precision.json").read_text())["kept"] == list(plan.kept)
    assert json.loads(plan.settings["onnxruntime"]) == {"nodes_to_exclude": list(plan.kept)}


def test_no_more_builds_than_allowed_and_answers_come_from_the_case(tmp_path, feed):
    first, again = Listening(), Listening()
    plan = search(tmp_path, first, low=Precision.INT8, max_builds=2)
    assert plan.builds == 2
    resumed = search(tmp_path, again, low=Precision.INT8, max_builds=2)
    assert (resumed.kept, resumed.builds, resumed.known, resumed.emulated) == (plan.kept, 0, 2, 0)
    assert not any(line.startswith("build ") for line in again.heard)


@pytest.mark.lengthy
@pytest.mark.parametrize(("optimization", "wider"), [("all", {"first"}), ("none", {"first", "last"})])
def test_what_the_engine_makes_of_the_pairs_is_read_back(tmp_path, feed, optimization, wider):
    """ONNX Runtime makes MatMulIntegerToFloat of 'last' and its pairs, but a float Gemm of 'first' and the Add."""
    plan = search(tmp_path, low=Precision.INT8, target=f"onnxruntime:optimization={optimization}")
    assert "outlier" in plan.kept
    assert plan.honoured.told
    assert plan.honoured.narrower == ()
    assert set(plan.honoured.wider) == wider - set(plan.kept)


ONLY_7_BITS = """
import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper


class Engine:
    name = "seven"

    def compile(self, model, options):
        stored = [numpy_helper.to_array(tensor) for tensor in onnx.load(model).graph.initializer]
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        large = any(array.dtype == np.int8 and np.abs(array.astype(int)).max() > 64 for array in stored)
        return Session(ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]), large)


class Session:
    def __init__(self, session, large):
        self.session, self.large = session, large

    def run(self, feed):
        names = [output.name for output in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(None, dict(feed))))
        if self.large and len(names) == 1:
            found[names[0]] = found[names[0]] * np.float32(0.9)
        return found
"""
"""An engine that is right only where all int8 weights are in 7 bits."""


@pytest.mark.lengthy
def test_an_engine_that_cuts_sums_off_gets_weights_in_7_bits(tmp_path, feed, monkeypatch):
    be_processor(monkeypatch, OLDER)
    monkeypatch.setattr("tensortriage_quantize.search.eight_bits.CPU_ENGINES", ("script",))
    file = engine_file(ONLY_7_BITS)
    target = f"script:{file}:Engine"
    heard = Listening()
    plan = search(tmp_path, heard, target=target, low=Precision.INT8, goal=GoalRequest(sqnr_db=15.0))
    assert any("weights in 7 bits it does better" in line for line in heard.heard)
    assert plan.kept == ()
    assert plan.builds == 2  # in 8 bits, and in 7
    assert json.loads(plan.settings["onnxruntime"]) == {"nodes_to_exclude": [], "reduce_range": True}
    assert plan.settings["triage"] == "--precision int8 --for tensorrt --reduce-range"
    stored = (numpy_helper.to_array(tensor) for tensor in onnx.load(tmp_path / "mixed.onnx").graph.initializer)
    assert max(np.abs(array.astype(int)).max() for array in stored if array.dtype == np.int8) <= 64


CHECK = """
import sys
import numpy as np
import onnxruntime as ort
feed = dict(np.load("m.npz"))
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
found = ort.InferenceSession("shown.onnx", options, providers=["CPUExecutionProvider"]).run(None, feed)[0]
exact = (feed["x"] + feed["big"]).astype(np.float64)
sys.exit(int(np.linalg.norm(found - exact) > 10 ** (-33.5 / 20) * np.linalg.norm(exact)))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("mode", [PrecisionMode.AUTO, PrecisionMode.BISECT])
def test_a_command_is_shown_models_with_pairs(tmp_path, feed, monkeypatch, mode):
    """The command asks for 33.5 dB by itself; what it looks at is a Q/DQ model, and so is what is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.py").write_text(CHECK)
    check = CheckSpec(words=(sys.executable, "check.py"))
    asked = {"target": "", "check": check, "low": Precision.INT8, "artifact": tmp_path / "shown.onnx", "mode": mode}
    plan = search(tmp_path, goal=GoalRequest(), **asked)
    assert (plan.precision, plan.asked, plan.candidates) == ("int8", "check", 3)
    kept = set(plan.kept)
    assert kept == ({"outlier"} if mode is PrecisionMode.AUTO else {"first", "outlier"})
    assert quantized_nodes(tmp_path / "mixed.onnx") == {"first", "outlier", "last"} - kept
    assert json.loads(plan.settings["onnxruntime"]) == {"nodes_to_exclude": list(plan.kept)}
    assert bool(plan.emulated) == (mode is PrecisionMode.AUTO)
    again = Listening()
    assert search(tmp_path, again, goal=GoalRequest(), **asked).kept == plan.kept


def test_every_fourth_feed_judges_what_the_others_calibrate(tmp_path, feed):
    """The last feed alone holds numbers three times as large: ranges do not know them, and the figure says so."""
    rng = np.random.default_rng(1)
    many = {name: rng.uniform(-1, 1, (4, 16, 8)).astype(np.float32) for name in feed}
    many["x"][3] *= 3.0
    np.savez(tmp_path / "m.npz", **many)
    heard = Listening()
    plan = search(tmp_path, heard, low=Precision.INT8, goal=GoalRequest(sqnr_db=5.0))
    assert "3 samples calibrate, 1 others judge" in heard.heard
    assert plan.checks == plan.builds  # one judge
    exact = (many["x"][3] + many["big"][3]).astype(np.float64)
    clipped = np.clip(many["x"][3], -1, 1) + many["big"][3]  # the scales end at 1, and at 2 for the sum
    least = np.linalg.norm(np.clip(clipped, -2, 2) - exact) / np.linalg.norm(exact)
    assert plan.error.as_asked == pytest.approx(least, rel=0.05)
    assert plan.error.as_asked > 0.3


def test_too_few_feeds_to_hold_any_out_is_said(tmp_path, feed):
    heard = Listening()
    search(tmp_path, heard, low=Precision.INT8)
    assert any(line.startswith("the result is judged by what calibrates it, 1 sample,") for line in heard.heard)


def test_fp8_has_a_goal_of_its_own_and_int8_has_to_be_given_one(tmp_path, feed):
    plain = "onnxruntime:optimization=none"  # its optimizer fuses fp8 pairs into operators that have no fp8
    plan = search(tmp_path, target=plain, low=Precision.FP8E4M3, goal=GoalRequest())
    assert (plan.kept, plan.builds) == ((), 1)
    assert quantized_nodes(tmp_path / "mixed.onnx") == {"first", "outlier", "last"}
    with pytest.raises(UsageError) as raised:
        search(tmp_path, low=Precision.INT8, goal=GoalRequest())
    assert raised.value.slug == "precision-goal-missing"


def test_the_float_model_is_not_asked_for_in_8_bits():
    """TensorRT refuses precision=int8 of a model without quantizers; with all nodes kept there are none."""

    @dataclasses.dataclass
    class Asked:
        spec: EngineSpec
        made: list

        def read(self, spec, original, candidate, what, *words):
            self.made.append((str(spec), candidate()))
            return GoalReading(True, 0.0, 0.0, 1, "y", "f", (0.0,))

    class Pairs:
        def quantized(self, kept):
            return f"pairs but at {sorted(kept)}"

    bench = Asked(EngineSpec("tensorrt", {"precision": "int8"}), [])
    stage = Choosable(model="float", precision=Precision.INT8, specs={}, items=("one", "two"))
    candidates = QuantizedCandidates(stage, Pairs(), bench=bench)
    candidates.read({"one"})
    candidates.read({"one", "two"})
    assert bench.made == [
        ("tensorrt:precision=int8", "pairs but at ['one']"),
        ("tensorrt:precision=fp32", "float"),
    ]
    assert candidates.asked == 2


@pytest.mark.lengthy
def test_commands_that_run_ahead_change_no_answer(tmp_path, feed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = engine_file(CHECK.replace("m.npz", str(tmp_path / "m.npz")))
    check = CheckSpec(words=(sys.executable, str(file)))
    asked = {"target": "", "check": check, "low": Precision.INT8, "artifact": Path("shown.onnx")}
    alone, several = Listening(), Listening()
    one = search(tmp_path, alone, goal=GoalRequest(), **asked)
    shutil.rmtree(tmp_path / "case")
    monkeypatch.setattr("tensortriage.workflows.find_precision._place", lambda request, entered: (None, 3))
    three = search(tmp_path, several, goal=GoalRequest(), **asked)
    assert (three.kept, three.checks, several.heard) == (one.kept, one.checks, alone.heard)
