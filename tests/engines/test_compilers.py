"""IREE and TVM, where their environments were made (``triage engines install iree``, ``... tvm``)."""

import re
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from diagnosing import ask
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, UsageError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments

MADE = {environment.engine: environment for environment in environments()}
MODEL = Path(__file__).parents[2] / "examples" / "digits_cnn.onnx"
IMAGES = np.load(MODEL.with_name("digits.npz"))["image"]


@pytest.fixture(params=["iree", "tvm"])
def target(request):
    if request.param not in MADE:
        pytest.skip(f"no environment: triage engines install {request.param}")
    return create(EngineSpec(request.param)), {"worker": MADE[request.param].python}


def test_it_conforms(target):
    report = check_engine_conformance(*target)
    assert len(report.passed) + len(report.refused) >= 30


def test_it_computes_what_onnx_runtime_does(target):
    engine, options = target
    with (
        closing(engine.compile(MODEL, options)) as session,
        closing(OnnxRuntimeEngine().compile(MODEL, {"optimization": "none"})) as right,
    ):
        found, expected = (each.run({"image": IMAGES[:3]})["logits"] for each in (session, right))
    np.testing.assert_allclose(found, expected, atol=1e-4)  # both in float32; the largest value is about 6


def test_a_refusal_is_told_in_the_words_of_the_compiler(target, tmp_path):
    engine, options = target
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match="Unheard"):
        engine.compile(tmp_path / "m.onnx", options)


@pytest.mark.slow
def test_a_weight_edited_in_what_iree_imported_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the edited text shows the fault."""
    if "iree" not in MADE:
        pytest.skip("no environment: triage engines install iree")
    with_input_shapes(Model.load(MODEL), {"image": (2, 1, 8, 8)}).save(tmp_path / "fixed.onnx")
    importer = Path(MADE["iree"].python).with_name("iree-import-onnx")
    file = tmp_path / "model.mlir"
    words = [str(importer), str(tmp_path / "fixed.onnx"), "-o", str(file), "--opset-version", "17"]
    subprocess.run(words, check=True, capture_output=True)
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    text, right = file.read_text(), array.tobytes().hex().upper()
    assert right in text
    file.write_text(text.replace(right, (array * np.float32(1.1)).tobytes().hex().upper()))
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:2]}, f"iree:worker={MADE['iree'].python},file={file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What the script of the page on engines saves of a model."""
    if "tvm" not in MADE:
        pytest.skip("no environment: triage engines install tvm")
    folder = tmp_path_factory.mktemp("tvm")
    with_input_shapes(Model.load(MODEL), {"image": (2, 1, 8, 8)}).save(folder / "fixed.onnx")
    page = (MODEL.parents[1] / "docs" / "engines.md").read_text()
    code = re.search(r"```python\n(# save_module\.py\n.*?)```", page, re.DOTALL).group(1)
    words = [MADE["tvm"].python, "-c", code, str(folder / "fixed.onnx"), str(folder / "model.py")]
    subprocess.run(words, check=True, capture_output=True)
    return folder / "model.py"


def test_every_value_of_a_module_that_tvm_saved_is_seen(saved):
    engine, options = create(EngineSpec("tvm")), {"worker": MADE["tvm"].python, "file": str(saved)}
    values = [name for node in Model.load(MODEL).graph.nodes for name in node.outputs]
    marked = saved.with_name("marked.onnx")
    proto = onnx.load(MODEL)
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in values)
    onnx.save(proto, marked)
    with closing(engine.compile(saved.with_name("fixed.onnx"), options)) as session:
        found = dict(session.captured({"image": IMAGES[:2]}, values))
    right = onnxruntime.InferenceSession(marked).run(None, {"image": IMAGES[:2]})
    assert found.keys() == set(values)
    for name, array in zip(values, right, strict=True):
        np.testing.assert_allclose(found[name], array, atol=1e-4)  # float32 on both; the largest value is about 6


def test_a_module_of_another_model_and_one_without_arrays_are_refused(saved, tmp_path):
    engine, options = create(EngineSpec("tvm")), {"worker": MADE["tvm"].python, "file": str(saved)}
    one_row = {"image": IMAGES[:1]}
    with (
        closing(engine.compile(MODEL, options)) as session,
        pytest.raises(BuildFailed, match="the file has inputs of the shapes"),
    ):
        session.run(one_row)
    (tmp_path / "alone.py").write_text(saved.read_text())
    with pytest.raises(UsageError, match=r"alone\.npz does not exist"):
        engine.compile(MODEL, {**options, "file": str(tmp_path / "alone.py")})


def test_a_library_that_tvm_compiled_runs_and_shows_its_outputs_only(saved):
    library = saved.with_suffix(".so")
    code = (
        "import sys, onnx, tvm; from tvm.relax.frontend.onnx import from_onnx; "
        "tvm.compile(from_onnx(onnx.load(sys.argv[1])), target='llvm').export_library(sys.argv[2])"
    )
    words = [MADE["tvm"].python, "-c", code, str(saved.with_name("fixed.onnx")), str(library)]
    subprocess.run(words, check=True, capture_output=True)
    engine, options = create(EngineSpec("tvm")), {"worker": MADE["tvm"].python, "file": str(library)}
    assert engine.observing(options) is None
    with (
        closing(engine.compile(saved.with_name("fixed.onnx"), options)) as session,
        closing(OnnxRuntimeEngine().compile(MODEL, {"optimization": "none"})) as right,
    ):
        found, expected = (each.run({"image": IMAGES[:2]})["logits"] for each in (session, right))
    np.testing.assert_allclose(found, expected, atol=1e-4)  # as above
    with closing(engine.compile(MODEL, options)) as session, pytest.raises(BuildFailed, match="mismatch"):
        session.run({"image": IMAGES[:1]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "culprit"), [("weight", "/block2/conv2/Conv"), ("operator", "/block1/Relu_1")], ids=lambda word: word
)
def test_an_edit_of_what_tvm_imported_is_found(saved, tmp_path, what, culprit):
    """The ONNX model is right, op by op: only the run of the edited module shows the fault."""
    file = tmp_path / "edited.py"
    text, arrays = saved.read_text(), dict(np.load(saved.with_suffix(".npz")))
    if what == "weight":
        arrays["block2_conv2_weight"] = arrays["block2_conv2_weight"] * np.float32(1.1)
    else:
        assert "R.nn.relu(lv11)" in text  # behind the first residual sum
        text = text.replace("R.nn.relu(lv11)", "R.nn.gelu(lv11)")
    file.write_text(text)
    np.savez(file.with_suffix(".npz"), **arrays)
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:2]}, f"tvm:worker={MADE['tvm'].python},file={file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", culprit)
