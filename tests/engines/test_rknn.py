"""RKNN's simulator, where its environment was made (``triage engines install rknn``)."""

import os
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from diagnosing import ask, step
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import BuildFailed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments
from tensortriage_engines.rknn.engine import RknnEngine

MADE = [environment for environment in environments() if environment.engine == "rknn"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install rknn")
ENGINE = RknnEngine()
OPTIONS = {"worker": MADE[0].python} if MADE else {}
EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "digits_cnn.onnx"
IMAGES = np.load(EXAMPLES / "digits.npz")["image"]


def test_what_it_cannot_do_is_refused_with_a_reason():
    """Empty tensors, scalars as inputs, and an output that is an input or another output in another shape."""
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(ENGINE, OPTIONS)
    failed = [line.strip().partition(":")[0] for line in str(caught.value).splitlines()[1:]]
    assert set(failed) <= {"model zero-size", "model scalars", "model dynamic-shapes"}


@pytest.mark.parametrize(("name", "fewest"), [("digits_cnn", 15), ("digits_vit", 1)])
def test_inner_values_are_those_of_the_model(tmp_path, name, fewest):
    """In fp16: one unit in the last place is 9.8e-4, of the largest number."""
    path = EXAMPLES / f"{name}.onnx"
    loaded = Model.load(path)
    values = [value for node in loaded.graph.nodes for value in node.outputs]
    right = OnnxRuntimeEngine().compile(
        mark_outputs(loaded, values).save(tmp_path / "marked.onnx"), {"optimization": "none"}
    )
    session = ENGINE.compile(path, ENGINE.observing(OPTIONS))
    with closing(right), closing(session):
        expected = right.run({"image": IMAGES[:3]})
        found = dict(session.captured({"image": IMAGES[:3]}, values))
        plan = session.plan()
    assert len(found) >= fewest
    for value, array in found.items():
        bound = 4e-3 * np.abs(expected[value]).max()
        np.testing.assert_allclose(array, expected[value], rtol=0, atol=bound, err_msg=value)
    computing = {node.name for node in loaded.graph.nodes if node.op_type in ("Conv", "MatMul", "Gemm", "Softmax")}
    assert computing <= {name for region in plan.regions for name in region.nodes}
    assert {region.precision for region in plan.regions} == {"float16"}
    assert plan.device == "NPU"


def test_a_refusal_is_told_in_the_words_of_the_converter(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match="Unheard"):
        ENGINE.compile(tmp_path / "m.onnx", OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_healthy_model_rounds(tmp_path, precision):
    target = f"rknn:worker={MADE[0].python},precision={precision}"
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:8]}, target)
    assert verdict.verdict == "rounding"
    assert step(verdict, "does the target run in the requested precision?").answer.startswith("yes")
    told = step(verdict, "do equal inputs give equal results?").answer
    assert told.startswith("yes") or "a rebuild alone already changes the results" in told  # of int8, now and then


def saved(folder):
    """Return what the toolkit saves of the example between quantization and compilation."""
    np.save(folder / "images.npy", IMAGES[:4])
    (folder / "dataset.txt").write_text("images.npy\n")
    saving = (
        "import sys; from tensortriage_engines.rknn.worker.toolkit import toolkit\n"
        "network = toolkit()(); network.config(target_platform='rk3588')\n"
        "network.load_onnx(sys.argv[1], inputs=['image'], input_size_list=[[4, 1, 8, 8]])\n"
        "network.hybrid_quantization_step1(dataset='dataset.txt')\n"
    )
    root = Path(__file__).parents[2]
    paths = os.pathsep.join(map(str, (root / "src", root / "worker")))
    subprocess.run(
        [MADE[0].python, "-c", saving, str(MODEL)], cwd=folder, env={"PYTHONPATH": paths}, check=True,
        capture_output=True,
    )  # fmt: skip
    return folder / "digits_cnn.model"


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 1.02])
def test_a_weight_edited_in_what_the_toolkit_saved_is_found(tmp_path, scale):
    """The ONNX model is right, op by op: only the run of the edited quantization shows the fault.

    Weights that are 2 % larger are off by less than int8 is by itself (1 % of the range): they show before rounding.
    """
    file = saved(tmp_path)
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    content = file.read_bytes()
    assert array.tobytes() in content
    file.write_bytes(content.replace(array.tobytes(), (array * np.float32(scale)).tobytes()))
    target = f"rknn:worker={MADE[0].python},file={file}"
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")
    assert step(verdict, "does the file hold the model, rounding to integers aside?").answer.startswith("no: ")


@pytest.mark.slow
def test_a_file_as_the_toolkit_saved_it_rounds(tmp_path):
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"rknn:worker={MADE[0].python},file={saved(tmp_path)}")
    assert verdict.verdict == "rounding"
    assert "int8" in verdict.summary
    assert step(verdict, "does the file hold the model, rounding to integers aside?").answer.startswith("yes: ")
