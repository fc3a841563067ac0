"""``triage run`` end to end, in processes of their own."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from machine import bf16_target
from running_cli import EXAMPLES, triage

VIT = [EXAMPLES / "digits_vit.onnx", "--inputs", EXAMPLES / "digits.npz"]
BF16 = bf16_target()
CNN = [EXAMPLES / "digits_cnn.onnx", "--inputs", EXAMPLES / "digits.npz"]


def document(done):
    return json.loads(done.stdout)


def test_every_target_is_compared_with_the_reference(tmp_path):
    done = triage("run", *VIT, "--target", "onnxruntime", "--target", "openvino:precision=fp32", "--json", cwd=tmp_path)
    found = document(done)
    assert done.returncode == 0, done.stderr
    assert found["reference"] == "onnxruntime:optimization=none"
    assert {item["comparison"]["target"] for item in found["comparisons"]} == {"onnxruntime", "openvino:precision=fp32"}
    assert found["passed"] is True
    assert found["observation"] == "deployed"


def test_every_layer_and_whether_marking_changed_the_answer(tmp_path):
    done = triage("run", *VIT, "--onnxrt", "--onnxrt", "--onnx-outputs", "mark", "all", "--json", cwd=tmp_path)
    found = document(done)
    assert done.returncode == 0
    assert found["observation"] == "instrumented"
    assert len(found["comparisons"][0]["comparison"]["rows"]) == 220
    # Marking breaks ONNX Runtime's fusions of this model, so its own outputs move; with optimizations off they cannot.
    assert found["moved"]["onnxruntime"] is True
    words = ["--reference", "onnxruntime:optimization=none", "--target", "onnxruntime:optimization=none,threads=1"]
    plain = triage("run", *VIT, *words, "--onnx-outputs", "*", "--json", cwd=tmp_path)
    assert document(plain)["moved"]["onnxruntime:optimization=none"] is False


@pytest.mark.lengthy
def test_low_memory_finds_the_same_figures(tmp_path):
    words = ["run", *VIT, "--target", "emulate:precision=bf16", "--onnx-outputs-by-type", "MatMul", "Softmax", "--json"]
    whole, batched = (document(triage(*words, *more, cwd=tmp_path)) for more in ([], ["--low-memory"]))
    rows = [
        [(row["value"], row["metrics"]["rms_error"]) for row in found["comparisons"][0]["comparison"]["rows"]]
        for found in (whole, batched)
    ]
    assert len(rows[0]) == 36
    assert rows[1] == rows[0]
    assert batched["builds"] > whole["builds"]


def test_a_failure_is_exit_code_1_and_names_the_tensor(tmp_path):
    done = triage("run", *VIT, "--target", BF16, "--atol", "1e-6", "--rtol", "1e-6", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAIL" in done.stdout
    assert "logits" in done.stdout


@pytest.mark.lengthy
def test_tolerances_per_output_and_statistic(tmp_path):
    words = ["run", *VIT, "--target", BF16]
    assert triage(*words, "--atol", "1e-6", "logits:1", cwd=tmp_path).returncode == 0
    assert triage(*words, "--atol", "0.02", "--check-error-stat", "mean", cwd=tmp_path).returncode == 0
    assert triage(*words, "--compare", "cosine_similarity", cwd=tmp_path).returncode == 0
    assert triage(*words, "--compare", "psnr", "--psnr-threshold", "200", cwd=tmp_path).returncode == 1


@pytest.mark.lengthy
def test_top_k_looks_at_the_decision_not_at_the_scores(tmp_path):
    words = ["run", *VIT, "--target", BF16, "--atol", "0", "--rtol", "0"]
    assert triage(*words, cwd=tmp_path).returncode == 1
    assert triage(*words, "--postprocess", "top-1", cwd=tmp_path).returncode == 0


@pytest.mark.lengthy
def test_the_task_metric_is_reported_for_every_engine(tmp_path):
    done = triage(
        "run", *VIT, "--target", "emulate:precision=fp16", "--metric-script", EXAMPLES / "accuracy.py", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert document(done)["task_metrics"] == {"onnxruntime:optimization=none": 1.0, "emulate:precision=fp16": 1.0}


def test_validate_finds_nan_and_inf(tmp_path):
    words = [EXAMPLES / "digits_vit_mask.onnx", "--inputs", EXAMPLES / "digits_vit_mask.npz"]
    done = triage("run", *words, "--reference", "emulate:precision=fp16", "--validate", cwd=tmp_path)
    assert done.returncode == 1
    assert "320 NaN" in done.stdout
    assert triage("run", *words, "--onnxrt", "--validate", cwd=tmp_path).returncode == 0


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["golden.json", "golden_dir", "golden.store"])
def test_saved_results_are_the_reference_of_a_later_run(tmp_path, name):
    saved = triage("run", *CNN, "--onnxrt", "--save-inputs", "in.json", "--save-outputs", name, cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    words = [EXAMPLES / "digits_cnn.onnx", "--openvino", "--load-inputs", "in.json", "--load-outputs", name]
    done = triage("run", *words, "--atol", "1e-1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert name in document(done)["reference"]
    assert document(done)["targets"] == ["openvino"]


@pytest.mark.lengthy
def test_saved_results_under_other_names_are_paired_by_value(tmp_path):
    triage("run", *CNN, "--onnxrt", "--save-outputs", "golden.npz", cwd=tmp_path)
    golden = dict(np.load(tmp_path / "golden.npz"))
    for name, factor, code in (("same.npz", 1.0, 0), ("wrong.npz", 1.01, 1), ("other.npz", None, 2)):
        logits = golden["logits"]
        np.savez(tmp_path / name, output_0=logits * factor if factor else np.full_like(logits, logits.mean()))
        done = triage("run", *CNN, "--reference", "onnxruntime", "--load-outputs", name, "--json", cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        if code < 2:
            assert document(done)["comparisons"][0]["comparison"]["paired"] == {"logits": "output_0"}
    shown = triage("run", *CNN, "--reference", "onnxruntime", "--load-outputs", "same.npz", cwd=tmp_path).stdout
    assert "output_0 is logits" in shown


@pytest.mark.lengthy
def test_too_few_saved_results_are_an_error(tmp_path):
    triage("run", *CNN, "--onnxrt", "--save-outputs", "one.json", cwd=tmp_path)
    words = [EXAMPLES / "digits_cnn.onnx", "--onnxrt", "--inputs", EXAMPLES / "digits_samples.npz"]
    done = triage("run", *words, "--load-outputs", "one.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[results-too-few]" in done.stderr


@pytest.mark.lengthy
def test_accuracy_results_can_be_judged_again(tmp_path):
    words = [
        "--target",
        BF16,
        "--check-error-stat",
        "max",
        "--atol",
        "1",
        "--save-accuracy-results",
        "a.json",
    ]
    assert triage("run", *VIT, *words, cwd=tmp_path).returncode == 0
    assert triage("check", "accuracy", "a.json", "--atol", "1", cwd=tmp_path).returncode == 0
    assert triage("check", "accuracy", "a.json", "--atol", "1e-9", "--rtol", "1e-9", cwd=tmp_path).returncode == 1


@pytest.mark.lengthy
def test_a_target_that_crashes_does_not_hide_the_other(tmp_path):
    (tmp_path / "bad.py").write_text("import os\nclass Engine:\n    def compile(self, m, o):\n        os.abort()\n")
    done = triage("run", *CNN, "--target", "script:bad.py", "--target", "onnxruntime", "--json", cwd=tmp_path)
    found = document(done)
    assert done.returncode == 1
    assert found["outcomes"]["script:bad.py"]["kind"] == "engine-crash"
    assert [item["comparison"]["target"] for item in found["comparisons"]] == ["onnxruntime"]


@pytest.mark.lengthy
def test_polygraphys_random_numbers_are_used_when_asked_for(tmp_path):
    words = [EXAMPLES / "digits_cnn.onnx", "--onnxrt", "--seed", "1", "--save-inputs", "in.npz"]
    assert triage("run", *words, "--input-shapes", "image:[2,1,8,8]", cwd=tmp_path).returncode == 0
    # Expected: numpy's RandomState(1), which Polygraphy 0.53.6 uses for its first iteration, on [0, 1).
    expected = np.random.RandomState(1).random_sample((2, 1, 8, 8)).astype(np.float32)
    (found,) = np.load(tmp_path / "in.npz").values()
    np.testing.assert_array_equal(found, expected)


def model_bytes(**changes):
    nodes = changes.get("nodes", [helper.make_node("Relu", ["x"], ["y"], name=changes.get("name", "relu"))])
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, changes.get("shape", [2, 3]))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, changes.get("shape", [2, 3]))] if nodes else [],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()


def external():
    model = onnx.load_from_string(model_bytes())
    tensor = model.graph.initializer.add()
    tensor.name, tensor.data_type, tensor.data_location = "w", TensorProto.FLOAT, TensorProto.EXTERNAL
    tensor.dims.append(3)
    tensor.external_data.add(key="location", value="missing.bin")
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (b"", "model-"),
        (b"hello, this is no model", "model-"),
        (bytes(range(256)) * 40, "model-"),
        (model_bytes()[:-9], "model-"),
        (external(), "external-data-missing"),
        (model_bytes(nodes=[]), "model-empty"),
    ],
    ids=["empty", "text", "random", "truncated", "external", "no-nodes"],
)
@pytest.mark.parametrize("command", ["run", "diagnose"])
def test_a_bad_model_is_one_clear_error(tmp_path, command, content, slug):
    (tmp_path / "bad.onnx").write_bytes(content)
    done = triage(command, "bad.onnx", "--target", "onnxruntime", cwd=tmp_path)
    assert_one_error(done, slug)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.onnx"]


def assert_one_error(done, slug):
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[0].startswith(f"triage: error[{slug}"), done.stderr
    assert lines[1].startswith("  cure: ")
    assert len(lines) == 2
    assert "Traceback" not in done.stdout + done.stderr


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("feed", "slug"),
    [
        ({"x": np.ones((2, 4), np.float32)}, "feed-"),
        ({"x": X + 1j}, "feed-"),
        ({"z": X}, "feed-"),
        ({"x": np.array([object()] * 6).reshape(2, 3)}, "data-"),
    ],
    ids=["shape", "dtype", "unknown", "pickle"],
)
def test_a_bad_feed_is_one_clear_error(tmp_path, feed, slug):
    (tmp_path / "m.onnx").write_bytes(model_bytes())
    np.savez(tmp_path / "f.npz", **feed)
    done = triage("run", "m.onnx", "--target", "onnxruntime", "--inputs", "f.npz", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("triage: error["), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.lengthy
def test_tensors_of_a_feed_that_are_no_inputs_are_left_out_and_named(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model_bytes())
    x = np.arange(X.size, dtype=X.dtype).reshape(X.shape)
    np.savez(tmp_path / "f.npz", x=x, z=X)
    done = triage("run", "m.onnx", "--target", "onnxruntime", "--inputs", "f.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "left out, not inputs of the model: 'z'" in done.stderr


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--target", "onnxrutime"], "engine-"),
        (["--target", "onnxruntime:optimisation=none"], "engine-option-unknown"),
        (["--target", "onnxruntime", "--onnx-outputs", "lgits"], "value-unknown"),
        (["--target", "onnxruntime", "--onnx-outputs-by-type", "Cnv"], "op-type-unknown"),
        (["--target", "onnxruntime", "--compare", "magic"], "compare-unknown"),
        (["--target", "onnxruntime", "--atol", "tiny"], ""),
        (["--target", "onnxruntime", "--frobnicate"], "usage"),
        ([], "engine-none"),
        (["--target", "onnxruntime", "--inputs", "nowhere.npz"], ""),
        (["--target", "script:nowhere.py"], ""),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else value,
)
def test_bad_words_are_clear_errors_with_a_cure(tmp_path, words, slug):
    done = triage("run", EXAMPLES / "digits_cnn.onnx", *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"triage: error[{slug}" in done.stderr
    assert "cure: " in done.stderr
    assert "Traceback" not in done.stderr


HOSTILE = [
    "</script><script>alert(1)</script>",
    "../../etc/passwd",
    "a\nb\x1b[31m",
    "x" * 3000,
    '"><img src=x onerror=1>',
]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", HOSTILE, ids=["script", "path", "control", "long", "html"])
def test_hostile_names_are_harmless(tmp_path, name):
    (tmp_path / "m.onnx").write_bytes(model_bytes(name=name))
    done = triage("run", "m.onnx", "--target", "onnxruntime", "--onnx-outputs", "*", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = triage("diagnose", "m.onnx", "--target", "onnxruntime", "--case", "case", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    page = (tmp_path / "case" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["case", "m.onnx"]


@pytest.mark.lengthy
def test_nan_inputs_are_called_unsound_and_zero_size_tensors_do_not_pass_for_agreement(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model_bytes())
    np.savez(tmp_path / "nan.npz", x=np.full((2, 3), np.nan, np.float32))
    done = triage(
        "diagnose", "m.onnx", "--inputs", "nan.npz", "--target", "onnxruntime", "--case", "case", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "comparison-unsound" in done.stdout
    (tmp_path / "z.onnx").write_bytes(model_bytes(shape=[0, 3]))
    np.savez(tmp_path / "zero.npz", x=np.ones((0, 3), np.float32))
    done = triage(
        "diagnose", "z.onnx", "--inputs", "zero.npz", "--target", "onnxruntime", "--case", "zero", cwd=tmp_path
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "inconclusive" in done.stdout


def test_tensors_without_elements_never_pass(tmp_path):
    words = ["--onnxrt", "--target", "onnxruntime:optimization=none", "--input-shapes", "image:[0,1,8,8]"]
    done = triage("run", EXAMPLES / "digits_cnn.onnx", *words, cwd=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    again = triage("run", EXAMPLES / "digits_cnn.onnx", *words, "--atol", "1e-3", cwd=tmp_path)
    assert (again.returncode, "error[nothing-compared]" in again.stderr) == (2, True)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("name", "feed", "precision", "code", "words"),
    [
        ("digits_vit_positions", "digits_vit_positions", "bf16", 1, "though rounding to bf16 may cost more"),  # 118 %
        ("digits_vit_positions", "digits_vit_positions", "fp16", 0, "of its signal"),  # 43 %
        ("digits_vit", "digits", "bf16", 0, ""),
    ],
)
def test_a_format_that_is_too_coarse_does_not_just_pass(tmp_path, name, feed, precision, code, words):
    """Errors are those of rounding every result; half of the signal is the most that passes without a tolerance."""
    target = f"emulate:precision={precision}"
    model, inputs = EXAMPLES / f"{name}.onnx", EXAMPLES / f"{feed}.npz"
    done = triage("run", model, "--inputs", inputs, "--target", target, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout
    assert ("triage debug precision" in done.stdout) is bool(words)
