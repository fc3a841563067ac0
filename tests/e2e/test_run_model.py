"""What ``run`` does with the model file: another type, a copy with the outputs compared, no run at all."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from running_cli import triage

MODEL = str(Path(__file__).resolve().parents[2] / "examples/digits_cnn.onnx")


def test_save_onnx_writes_the_model_with_the_outputs_compared(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--onnx-outputs", "logits", "/Relu_1_output_0", "--shape-inference",
                  "--save-onnx", "m.onnx", "--save-external-data", "w", "--external-data-size-threshold", "0",
                  cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    model = onnx.load(tmp_path / "m.onnx")
    assert {output.name for output in model.graph.output} == {"logits", "/Relu_1_output_0"}
    assert model.graph.value_info
    assert (tmp_path / "w").stat().st_size > 10_000


@pytest.mark.lengthy
def test_fp_to_fp16_is_what_every_engine_runs(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--fp-to-fp16", "--save-onnx", "m.onnx", "--save-outputs", "half.json",
                  "--seed", "1", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    types = {tensor.data_type for tensor in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert onnx.TensorProto.FLOAT16 in types
    done = triage("run", MODEL, "--onnxrt", "--load-outputs", "half.json", "--seed", "1", "--atol", "1e-6",
                  "--rtol", "1e-6", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1  # fp16 is told apart from fp32


@pytest.mark.lengthy
def test_without_an_iteration_engines_are_built_and_nothing_passes(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--onnxrt", "--iterations", "0", cwd=tmp_path)
    assert done.returncode == 0
    assert "built 2 engines" in done.stdout
    assert "passed" not in done.stdout


@pytest.mark.lengthy
@pytest.mark.parametrize("words", [["--save-input-blob", "blobs"], ["--save-input-blob"]])
def test_input_blobs_are_the_bytes_of_the_inputs(tmp_path, words):
    done = triage("run", MODEL, "--onnxrt", "--iterations", "2", "--save-inputs", "in.npz", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fed = np.load(tmp_path / "in.npz")
    for number in range(2):
        name = next(key for key in fed.files if key.startswith(f"{number}/"))
        blob = tmp_path / (words[1] if len(words) > 1 else ".") / f"{number:010d}/image.bin"
        assert blob.read_bytes() == fed[name].tobytes()


def test_weights_apart_without_a_model_to_write(tmp_path):
    done = triage("run", MODEL, "--onnxrt", "--save-external-data", cwd=tmp_path)
    assert done.returncode == 2
    assert "--save-onnx" in done.stderr
