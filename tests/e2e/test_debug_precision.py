"""``triage debug precision`` end to end, in processes of their own."""

import json
import re
import sys

import onnx
import pytest

from machine import bf16_target
from models import chain
from precision_numbers import write_loud
from running_cli import EXAMPLES, triage

pytestmark = pytest.mark.slow

CASTS = {"Cast", "Constant"}


def precision(folder, *words, **options):
    return triage("debug", "precision", *words, cwd=folder, **options)


def wide_nodes(path):
    """Return the nodes of a typed model with a float32 result that are no Cast, read by onnx alone."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    return {
        node.name
        for node in graph.node
        if node.op_type not in CASTS and types.get(node.output[0]) == onnx.TensorProto.FLOAT
    }


@pytest.fixture
def loud(tmp_path):
    """Write a small model with two nodes whose constants fp16 cannot hold, and a feed; return their names."""
    return write_loud(tmp_path)


@pytest.mark.lengthy
def test_the_overflowing_transformer_reads_digits_as_well_as_in_fp32(tmp_path):
    """Task accuracy as in fp32, nearly all heavy work in fp16; the values are those of examples/README.md."""
    words = [EXAMPLES / "digits_vit_overflow.onnx", "--target", "emulate:precision=fp16", "-o", "mixed.onnx"]
    words += ["--inputs", EXAMPLES / "digits_vit_overflow.npz", "--metric", EXAMPLES / "accuracy.py", "--json"]
    done = precision(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["format"] == "tensortriage.precision/1"
    assert "/norm_pre/Pow" in plan["kept"]
    assert len(plan["kept"]) <= 3
    assert plan["error"]["metric"] == plan["error"]["metric_reference"] == 1.0
    assert plan["low_share"] > 0.8
    assert plan["builds"] <= 10
    assert json.loads((tmp_path / "precision.json").read_text()) == plan
    assert wide_nodes(tmp_path / "mixed.onnx") == set(plan["kept"])
    assert re.search(r"Pow '/norm_pre/Pow': max 4\d\d,\d+ > 65,504", done.stderr)
    assert "--layerPrecisions=/norm_pre/Pow:fp32" in done.stderr
    onnx.checker.check_model(onnx.load(tmp_path / "mixed.onnx"), full_check=True)


@pytest.mark.lengthy
def test_positions_stay_in_fp32_and_bf16_does_for_the_rest(tmp_path):
    """Task accuracy as in fp32 where bf16 reads a fifth of the digits, on OpenVINO where the CPU has bf16."""
    model, feed = (EXAMPLES / f"digits_vit_positions.{kind}" for kind in ("onnx", "npz"))
    words = [model, "--target", bf16_target(), "--inputs", feed, "--metric", EXAMPLES / "accuracy.py"]
    done = precision(tmp_path, *words, "-o", "mixed.onnx", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["pareto"][0]["metric"] < 0.5  # nothing kept, or one node
    assert {"/positions/Cast", "/positions/Mul"} <= set(plan["kept"])
    assert all(name.startswith("/positions/") for name in plan["kept"])
    assert plan["error"]["metric"] == plan["error"]["metric_reference"] == 1.0
    assert plan["low_share"] > 0.8
    assert plan["builds"] <= 10
    assert "Cast '/positions/Cast': whole numbers up to 1,015; bf16 has all only up to 256" in done.stderr
    assert "angles up to 3,001 rad, off by up to 8 rad in bf16" in done.stderr


def test_a_real_engine_confirms_and_a_second_run_asks_nothing(tmp_path, loud):
    words = ["m.onnx", "--target", "onnxruntime:precision=fp16", "--inputs", "m.npz", "-o", "mixed.onnx", "--json"]
    plans = []
    for _ in range(2):
        done = precision(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        plans.append(json.loads(done.stdout))
    assert plans[0]["kept"] == loud
    assert plans[0]["minimality"] == "one-minimal"
    assert {node["without"] for node in plans[0]["nodes"]} == {"fails"}
    assert plans[1]["kept"] == loud
    assert (plans[1]["builds"], plans[1]["checks"], plans[1]["emulated"]) == (0, 0, 0)
    assert plans[1]["known"] == plans[0]["builds"]
    words = ["m.onnx", "--target", "onnxruntime", "--target-model", "mixed.onnx", "--inputs", "m.npz"]
    mixed = triage("run", *words, "--snr-threshold", "40", cwd=tmp_path)
    assert mixed.returncode == 0, mixed.stdout + mixed.stderr


CHECK = """
import sys
import numpy as np, onnxruntime as ort
feed = dict(np.load("m.npz"))
answers = [ort.InferenceSession(path).run(None, feed)[0] for path in ("m.onnx", "polygraphy_debug.onnx")]
sys.exit(not np.allclose(*answers, atol=0.1))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ([], lambda kept, loud: kept == loud),
        (["--mode", "bisect"], lambda kept, loud: kept[-1] == loud[1]),
        (["--mode", "linear", "--direction", "reverse"], lambda kept, loud: kept[0] == loud[0]),
    ],
    ids=["auto", "bisect", "linear"],
)
def test_a_command_judges(tmp_path, loud, mode, found):
    (tmp_path / "check.py").write_text(CHECK)
    words = ["m.onnx", "--fp16", "-p", "float32", "-o", "mixed.onnx", "--inputs", "m.npz", "--json", *mode]
    done = precision(tmp_path, *words, "--check", sys.executable, "check.py")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert found([name for name in plan["kept"] if name in {n["node"] for n in plan["nodes"]}], loud)
    assert wide_nodes(tmp_path / "mixed.onnx") == set(plan["kept"])
    assert not (tmp_path / "polygraphy_debug.onnx").exists()


@pytest.mark.lengthy
def test_an_edited_check_is_asked_anew_and_what_it_writes_does_not_matter(tmp_path):
    chain(2, "Tanh").save(tmp_path / "m.onnx")
    (tmp_path / "log").write_text("")
    kept = []
    for judge in ("exit 1", "exit 1", "exit 0"):
        (tmp_path / "check.sh").write_text(f"echo asked >> $1; {judge}\n")
        done = precision(tmp_path, "m.onnx", "--fp16", "-o", "mixed.onnx", "--json", "--check", "sh", "check.sh", "log")
        kept.append((done.returncode, len((tmp_path / "log").read_text().split())))
    assert kept == [(4, 2), (4, 2), (0, 3)]


@pytest.mark.lengthy
def test_a_fault_that_is_not_precision_is_said_to_be_none(tmp_path, loud):
    (tmp_path / "faulty.py").write_text(
        "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine): pass\n"
    )
    target = f"script:faulty.py,precision=fp16,kind=scale,amount=1.5,node={loud[1]}"
    done = precision(tmp_path, "m.onnx", "--target", target, "--inputs", "m.npz", "-o", "mixed.onnx")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "error[precision-not-the-cause]" in done.stderr
    assert "debug reduce" in done.stderr
    assert "exceeds it by more than rounding explains" in done.stdout or "NaN" in done.stdout
    assert not (tmp_path / "mixed.onnx").exists()


def test_fp8_tells_the_nodes_in_emulation(tmp_path, loud):
    done = precision(
        tmp_path, "m.onnx", "--inputs", "m.npz", "--target", "emulate:precision=fp8e4m3", "--sqnr", "6", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert set(loud) <= set(json.loads(done.stdout)["kept"])


@pytest.mark.lengthy
def test_in_int8_the_engine_confirms_the_nodes_without_pairs(tmp_path):
    words = [EXAMPLES / "digits_cnn.onnx", "--target", "onnxruntime", "--int8", "--inputs", EXAMPLES / "digits.npz"]
    done = precision(tmp_path, *words, "--sqnr", "42", "-o", "mixed.onnx", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert json.loads((tmp_path / "precision.json").read_text()) == plan
    assert 0 < len(plan["kept"]) < plan["candidates"] == 6  # Convs: an Add between them has no choice
    assert plan["builds"] <= 10
    graph = onnx.load(tmp_path / "mixed.onnx").graph
    pairs = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    heavy = [node for node in graph.node if node.op_type in ("Conv", "Gemm")]
    left = {node.name for node in heavy if node.input[0] not in pairs}
    kept = {node.name for node in heavy} & {*plan["kept"]}
    cheap = {"/fc/Gemm", "/block2/skip/Conv"}  # of too little work to gain from 8 bits
    assert kept <= left <= kept | cheap
    words = [EXAMPLES / "digits_cnn.onnx", "--target", "onnxruntime", "--target-model", "mixed.onnx"]
    words += ["--inputs", EXAMPLES / "digits.npz"]
    assert triage("run", *words, "--snr-threshold", "42", cwd=tmp_path).returncode == 0
    done = precision(tmp_path, EXAMPLES / "digits_cnn.onnx", "--target", "onnxruntime", "--int8")
    assert done.returncode == 2
    assert "error[precision-goal-missing]" in done.stderr


@pytest.mark.lengthy
def test_remedies_are_offered_when_they_were_seen_to_work(tmp_path, loud):
    words = ["m.onnx", "--target", "emulate:precision=fp16", "--inputs", "m.npz", "-o", "mixed.onnx", "--sqnr", "30"]
    done = precision(tmp_path, *words, "--remedies", "--json")
    assert done.returncode == 0, done.stderr
    remedies = {remedy["name"]: remedy for remedy in json.loads(done.stdout)["remedies"]}
    assert "clamp-constants" in remedies  # the two constants cancel, whatever they are
    assert remedies["clamp-constants"]["kept"] == 0
    assert wide_nodes(tmp_path / remedies["clamp-constants"]["file"]) == set()
