"""``triage data``, ``inspect data``, ``check accuracy`` as users run them, on files of the real Polygraphy 0.53.6."""

import json
from pathlib import Path

import numpy as np

from models import write
from running_cli import triage
from tensortriage.inputs.files.open_data import open_data

GOLDEN = Path(__file__).parents[1] / "golden/polygraphy"
MODEL = "g (float[n, 3] x, int64[2] ids) => (float[n, 3] y) { y = Relu(x) }"


def tensors(path):
    return [dict(iteration.tensors) for iteration in open_data(path).series[0]]


def fails(done, slug, code=2):
    assert done.returncode == code
    assert f"error[{slug}]" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_layers_become_inputs_sample_by_sample(tmp_path):
    words = (GOLDEN / "inputs.json", GOLDEN / "outputs.json", "--runner", "onnxrt-runner", "-o", "layers.json")
    done = triage("data", "merge", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "wrote layers.json: 2 iterations of inputs as json\n"
    merged = tensors(tmp_path / "layers.json")
    assert [list(sample) for sample in merged] == [["x", "ids", "y", "z"]] * 2
    # Polygraphy makes both samples copies of the last one.
    assert [sample["x"][0, 1] for sample in merged] == [1, 2]
    assert [sample["y"][0, 1] for sample in merged] == [1.25, 2.25]


def test_notices_go_to_stderr_and_the_document_to_stdout(tmp_path):
    words = (GOLDEN / "inputs.json", GOLDEN / "inputs_dir", "-o", "same.json", "--json")
    done = triage("data", "merge", *words, cwd=tmp_path)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["format"], document["iterations"], document["kind"]) == (
        "tensortriage.data-written/1",
        2,
        "inputs",
    )
    assert "'x'" in document["notices"][0]
    assert "triage: note: 'x'" in done.stderr


def test_runs_are_appended(tmp_path):
    done = triage("data", "concat", GOLDEN / "outputs.json", GOLDEN / "outputs_dir", "-o", "all", cwd=tmp_path)
    assert done.returncode == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [f"{k:010d}.json" for k in range(4)]
    assert [series.runner for series in open_data(tmp_path / "all").series] == ["onnxrt-runner", "trt-runner"]


def test_conversion_fits_the_model_and_rounds_only_when_told(tmp_path):
    write(tmp_path / "model.onnx", MODEL)
    np.savez(tmp_path / "in.npz", x=np.full((2, 3), 0.1), ids=np.array([1, 2], np.int32))
    refused = triage("data", "convert", "in.npz", "-o", "out.json", "--model", "model.onnx", cwd=tmp_path)
    fails(refused, "feed-dtype-mismatch")
    assert "--cast" in refused.stderr
    assert not (tmp_path / "out.json").exists()
    words = ("in.npz", "-o", "test_data_set_0", "--model", "model.onnx", "--cast")
    assert triage("data", "convert", *words, cwd=tmp_path).returncode == 0
    (sample,) = tensors(tmp_path / "test_data_set_0")
    assert (sample["x"].dtype, sample["ids"].dtype) == (np.float32, np.int64)
    assert sample["x"][0, 0] == np.float32(0.1)


def test_outputs_of_one_runner_become_an_archive(tmp_path):
    fails(triage("data", "convert", GOLDEN / "outputs.json", "-o", "o.npz", cwd=tmp_path), "several-runners")
    words = (GOLDEN / "outputs.json", "--runner", "trt-runner", "-o", "o.npz")
    assert triage("data", "convert", *words, cwd=tmp_path).returncode == 0
    with np.load(tmp_path / "o.npz") as archive:
        assert list(archive) == ["0/y", "0/z", "1/y", "1/z"]
    words = ("o.npz", "--as", "outputs", "--runner", "mine", "-o", "back.json")
    assert triage("data", "convert", *words, cwd=tmp_path).returncode == 0
    assert [series.runner for series in open_data(tmp_path / "back.json").series] == ["mine"]


def test_a_file_is_not_overwritten_while_it_is_read(tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones(3))
    fails(triage("data", "convert", "in.npz", "-o", "./in.npz", cwd=tmp_path), "output-is-input")
    with np.load(tmp_path / "in.npz") as archive:
        assert list(archive) == ["x"]


def test_inspecting_shows_the_first_iteration_and_nan(tmp_path):
    done = triage("inspect", "data", GOLDEN / "outputs.json", cwd=tmp_path)
    assert done.returncode == 0
    assert "2 iterations of outputs of trt-runner" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("z ") and line.split()[-1] == "1"]
    assert row[-2:] == ["1", "1"]  # one NaN, one Inf in z of the first runner
    assert "\x1b[" not in done.stdout
    everything = triage(
        "inspect", "data", GOLDEN / "outputs.json", "--all", "-s", "--histogram", "-n", "1", cwd=tmp_path
    )
    assert everything.stdout.count("iteration 1") == 2
    assert "[nan inf  0.]" in everything.stdout
    assert "#####" in everything.stdout


def test_inspecting_for_machines(tmp_path):
    done = triage("inspect", "data", GOLDEN / "inputs.json", "--json", "--all", "-s", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (document["format"], document["kind"]) == ("tensortriage.data/1", "inputs")
    (series,) = document["series"]
    assert series["iterations_in_file"] == 2
    assert [tensor["values"] for tensor in series["iterations"][1]["tensors"]] == [[[0, 2, 4], [6, 8, 10]], [2, -1]]
    assert series["iterations"][0]["tensors"][0]["figures"]["mean"] == 2.5


def test_names_cannot_act_on_the_terminal(tmp_path):
    np.savez(tmp_path / "f.npz", **{"evil\x1b[2J": np.ones(1)})
    done = triage("inspect", "data", "f.npz", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "evil\\x1b[2J" in done.stdout


def test_accuracy_as_saved_and_by_other_limits(tmp_path):
    saved = triage("check", "accuracy", GOLDEN / "accuracy.json", cwd=tmp_path)
    assert saved.returncode == 1  # its l2 and indices failed
    assert "simple: onnxrt-runner vs. trt-runner: 2 of 2 iterations passed" in saved.stdout
    words = (
        "--compare",
        "simple",
        "l2",
        "--check-error-stat",
        "mean",
        "--atol",
        "0.02",
        "--l2-threshold",
        "1e-9",
        "y:0.1",
    )
    passed = triage(
        "check", "accuracy", GOLDEN / "accuracy.json", *words, "--save-accuracy-results", "new.json", cwd=tmp_path
    )
    assert passed.returncode == 0
    assert passed.stdout.rstrip().endswith("PASSED")
    assert "not judged, no limit given: cosine_similarity, psnr, snr" in passed.stdout
    again = triage("check", "accuracy", "new.json", "--json", cwd=tmp_path)
    document = json.loads(again.stdout)
    assert (document["format"], document["passed"]) == ("tensortriage.accuracy/1", True)
    assert {row["limit"] for row in document["rows"]} == {"abs <= 0.02 or rel <= 1e-05 (mean)", "l2 <= 0.1"}


def test_what_is_no_accuracy_result(tmp_path):
    fails(triage("check", "accuracy", GOLDEN / "inputs.json", "--atol", "1", cwd=tmp_path), "accuracy-invalid")
    script = tmp_path / "compare.py"
    script.write_text("def compare_outputs(*given): return True")
    judged = triage("check", "accuracy", GOLDEN / "accuracy.json", "--compare-func-script", script, cwd=tmp_path)
    fails(judged, "tensors-not-saved")
    shown = triage("inspect", "data", GOLDEN / "accuracy_shape.json", cwd=tmp_path)
    assert shown.returncode == 0
    assert "FAIL" in shown.stdout


def test_our_own_comparison_is_judged_again(tmp_path):
    write(tmp_path / "model.onnx", "g (float[4] x) => (float[4] y) { [sine] y = Sin(x) }")
    words = ("model.onnx", "--target", "emulate:precision=fp16", "--json")
    run = triage("run", *words, cwd=tmp_path)
    (tmp_path / "run.json").write_text(run.stdout)
    # Rounding to fp16 is off by at most half an ulp of 1, 2**-12, in result and argument each.
    assert triage("check", "accuracy", "run.json", "--atol", "1e-3", cwd=tmp_path).returncode == 0
    strict = triage("check", "accuracy", "run.json", "--atol", "1e-9", "--rtol", "1e-9", cwd=tmp_path)
    assert strict.returncode == 1
    assert "FAIL" in strict.stdout
