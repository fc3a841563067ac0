"""What a file that was optimized before says of the format it computes in, and by what it is judged then."""

import numpy as np
import onnxruntime
import pytest

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.onnxruntime.file_types import file_precision
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage_testing import encoder, feed_for, save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its feed, and its file in fp32 and fp16 as ONNX and in ONNX Runtime's own format."""
    made = tmp_path_factory.mktemp("files")
    proto = encoder(layers=1, width=32, heads=2, tokens=8, batch=1)
    np.savez(made / "feed.npz", **feed_for(proto))
    loaded = Model.load(save_model(proto, made / "fp32.onnx"))
    convert(loaded, Precision.FP16, specs=value_specs(loaded)).save(made / "fp16.onnx")
    for name in ("fp32", "fp16"):
        for ending, form in ((".ort", "ORT"), (".optimized.onnx", "ONNX")):
            options = onnxruntime.SessionOptions()
            options.optimized_model_filepath = str(made / (name + ending))
            options.log_severity_level = 3
            options.add_session_config_entry("session.save_model_format", form)
            onnxruntime.InferenceSession(made / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    return made


@pytest.mark.parametrize("ending", [".ort", ".optimized.onnx", ".onnx"])
def test_files_say_whether_they_are_narrow(folder, ending):
    assert file_precision(str(folder / f"fp16{ending}")) is Precision.FP16
    assert file_precision(str(folder / f"fp32{ending}")) is None


def test_what_cannot_be_read_says_nothing(folder):
    assert file_precision(str(folder / "missing.ort")) is None
    (folder / "broken.ort").write_bytes(b"no such format")
    assert file_precision(str(folder / "broken.ort")) is None
    (folder / "broken.onnx").write_bytes(b"no such format")
    assert file_precision(str(folder / "broken.onnx")) is None


def test_what_is_built_in_the_place_of_a_file_has_its_format(folder):
    engine, file = OnnxRuntimeEngine(), str(folder / "fp16.ort")
    assert engine.precision({"file": file}) == "fp16"
    assert engine.precision({"file": file, "precision": "fp32"}) == "fp32"
    assert engine.building({"file": file}) == {"precision": "fp16"}
    assert engine.building({"file": str(folder / "fp32.ort")}) == {}


@pytest.mark.slow
def test_a_file_in_fp16_is_judged_by_what_fp16_costs(folder):
    request = CompareRequest(
        model=folder / "fp32.onnx",
        reference=EngineSpec.parse("onnxruntime:optimization=none"),
        targets=[EngineSpec.parse(f"onnxruntime:file={folder / 'fp16.ort'}")],
        feeding=FeedRequest(paths=(str(folder / "feed.npz"),)),
    )
    assert compare(request).passed
