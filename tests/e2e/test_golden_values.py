"""Golden values are judged by the model before they judge: another model's fail in `run`, this one's pass."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from running_cli import EXAMPLES, triage, verdict_in

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

MODEL, FEED = EXAMPLES / "digits_vit.onnx", EXAMPLES / "digits.npz"


def changed(change, path):
    """Write the example with one square weight, or all weights, changed; return the name of the first changed one."""
    model = onnx.load(MODEL)
    first = ""
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim == 2 and (new := change(array)) is not None:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(new, np.float32), tensor.name))
            first = first or tensor.name
            if change is not everywhere:
                break
    onnx.save(model, path)
    return first


def eighth(weight):
    new = weight.copy()
    new[: len(new) // 8] *= 1.25
    return new


def transposed(weight):
    return weight.T if weight.shape[0] == weight.shape[1] else None


def everywhere(weight):
    return weight * 1.003


CHANGES = {"eighth": eighth, "transposed": transposed, "everywhere": everywhere}


@pytest.mark.parametrize("suffix", ["npz", "json"])
@pytest.mark.parametrize("change", CHANGES)
def test_golden_values_of_another_model_fail_and_the_first_wrong_tensor_is_named(change, suffix, tmp_path):
    weight = changed(CHANGES[change], tmp_path / "other.onnx")
    every = ["--onnx-outputs", "mark", "all", "--save-outputs", f"golden.{suffix}"]
    triage("run", "other.onnx", "--onnxrt", "--inputs", FEED, *every, cwd=tmp_path)
    done = triage(
        "run", MODEL, "--onnxrt", "--inputs", FEED, "--load-outputs", f"golden.{suffix}", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert not document["passed"]
    node = next(node for node in onnx.load(MODEL).graph.node if weight in node.input)
    assert document["disagreements"][0]["node"] == node.name


def test_golden_values_of_the_outputs_alone_fail_with_a_sentence_of_their_own(tmp_path):
    changed(everywhere, tmp_path / "other.onnx")
    triage("run", "other.onnx", "--onnxrt", "--inputs", FEED, "--save-outputs", "golden.npz", cwd=tmp_path)
    done = triage("run", MODEL, "--onnxrt", "--inputs", FEED, "--load-outputs", "golden.npz", cwd=tmp_path)
    assert done.returncode == 1
    assert "and the model disagree" in done.stdout
    assert any(line.startswith("failed") for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-1].startswith("  next: triage check feed ")


@pytest.mark.parametrize(
    "engine", ["onnxruntime", "onnxruntime:optimization=none", "openvino:precision=fp32", "float64"]
)
def test_golden_values_of_the_same_model_from_any_healthy_engine_pass(engine, tmp_path):
    if engine.startswith("openvino"):
        pytest.importorskip("openvino")
    triage("run", MODEL, "--reference", engine, "--inputs", FEED, "--save-outputs", "golden.npz", cwd=tmp_path)
    done = triage("run", MODEL, "--onnxrt", "--inputs", FEED, "--load-outputs", "golden.npz", cwd=tmp_path)
    assert "disagree" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("passed")


def test_a_script_that_computes_another_model_is_no_reference(tmp_path):
    changed(transposed, tmp_path / "other.onnx")
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "from tensortriage.engines.onnxruntime import OnnxRuntimeEngine\n\n\n"
        "class Engine(OnnxRuntimeEngine):\n"
        "    def compile(self, model, options):\n"
        f"        return super().compile(Path({str(tmp_path / 'other.onnx')!r}), {{}})\n"
    )
    done = triage(
        "run", MODEL, "--reference", "script:mine.py", "--target", "onnxruntime", "--inputs", FEED,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "and the model disagree" in done.stdout


SIMULATED = "from tensortriage_testing import SimulatedAccelerator as Engine\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("precision=fp32,operands=tf32", "TF32"),
        ("precision=fp32,functions=softmax:5e-6+sqrt:5e-6", "approximated"),
    ],
)
def test_what_a_healthy_accelerator_chooses_is_told_in_words(options, words, tmp_path):
    (tmp_path / "accelerator.py").write_text(SIMULATED)
    triage(
        "diagnose", MODEL, "--inputs", FEED, "--target", f"script:accelerator.py,{options}", "--case", "case",
        "--no-repro", cwd=tmp_path,
    )  # fmt: skip
    verdict = verdict_in(tmp_path / "case")
    assert verdict["verdict"] in ("match", "rounding")
    assert words in verdict["summary"]
    assert verdict["culprits"] == []


def test_a_scale_in_one_product_of_an_accelerator_with_narrow_sums_is_named(tmp_path):
    (tmp_path / "accelerator.py").write_text(SIMULATED)
    node = "/blocks.0/mlp/fc1/MatMul"
    options = f"precision=fp16,accumulator=fp16,block=16,kind=scale,amount=1.1,node={node}"
    triage(
        "diagnose", MODEL, "--inputs", FEED, "--target", f"script:accelerator.py,{options}", "--case", "case",
        "--no-repro", cwd=tmp_path,
    )  # fmt: skip
    verdict = verdict_in(tmp_path / "case")
    assert verdict["verdict"] == "local-fault"
    assert verdict["culprits"][0]["node"] == node
