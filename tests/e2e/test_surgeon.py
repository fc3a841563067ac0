"""The commands that edit models: some as users run them, the rest in this process, where Python starts only once."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest

import models
import running
from running_cli import EXAMPLES, triage
from tensortriage.cli import main
from tensortriage.model.model import Model

VIT, CNN = EXAMPLES / "digits_vit.onnx", EXAMPLES / "digits_cnn.onnx"


@pytest.fixture
def inside(tmp_path, monkeypatch, capfd):
    """Return what runs a command line in this process, in the temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words, cwd=None):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        printed = capfd.readouterr()
        return subprocess.CompletedProcess(words, ended.value.code or 0, printed.out, printed.err)

    return run


def document(done):
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["format"] == "tensortriage.surgery/1"
    return found


def refused(done, slug, output):
    assert done.returncode == 2, done.stdout
    assert f"error[{slug}]" in done.stderr
    assert "  cure: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not output.exists()


FOLDABLE = """
    g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
        [sum] s = Add(w, w) [dead] z = Neg(x) [use] y = Mul(x, s) }"""


def test_sanitize_folds_proves_and_tells(tmp_path):
    models.write(tmp_path / "m.onnx", FOLDABLE)
    found = document(
        triage("surgeon", "sanitize", "m.onnx", "--fold-constants", "-o", "out.onnx", "--json", cwd=tmp_path)
    )
    assert [(p["name"], p["nodes"]) for p in found["passes"]] == [("fold-constants", 1), ("shape-inference", 1)]
    assert found["proof"]["verified"]
    assert [node.name for node in Model.load(tmp_path / "out.onnx").graph.nodes] == ["use"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "out.onnx"]


@pytest.mark.lengthy
def test_sanitize_sets_shapes_outputs_and_bounds(inside, tmp_path):
    models.write(
        tmp_path / "m.onnx",
        """
        g (float[N] x) => (int64[M] y, float[N] e) <int64 zero = {0}, int64 one = {1}> {
            [e] e = Exp(x) [big] b = ReduceMax <keepdims = 0> (x) [limit] l = Cast <to = 7> (b)
            [count] y = Range(zero, l, one) }""",
    )
    words = [
        "--override-input-shapes",
        "x:[4]",
        "--outputs",
        "y",
        "--cleanup",
        "--set-unbounded-dds-upper-bound",
        "100",
    ]
    done = inside("surgeon", "sanitize", "m.onnx", *words, "-o", "out.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = Model.load(tmp_path / "out.onnx")
    assert [spec.shape for spec in model.inputs] == [(4,)]
    assert [spec.name for spec in model.outputs] == ["y"]
    assert [node.op_type for node in model.graph.nodes] == ["ReduceMax", "Cast", "Min", "Range"]


@pytest.mark.lengthy
def test_a_bound_that_is_too_small_is_refused_by_name(inside, tmp_path):
    models.write(
        tmp_path / "m.onnx",
        """
        g (float[3] x) => (int64[M] y) <int64 zero = {0}, int64 one = {1}> {
            [big] b = ReduceMax <keepdims = 0> (x) [limit] l = Cast <to = 7> (b) [count] y = Range(zero, l, one) }""",
    )
    np.savez(tmp_path / "feed.npz", x=np.array([1, 9, 2], np.float32))
    words = ["--set-unbounded-dds-upper-bound", "4", "--inputs", "feed.npz"]
    done = inside("surgeon", "sanitize", "m.onnx", *words, "-o", "out.onnx", cwd=tmp_path)
    refused(done, "verify-failed", tmp_path / "out.onnx")
    assert "'set-unbounded-dds-upper-bound'" in done.stderr
    unproven = inside("surgeon", "sanitize", "m.onnx", *words, "--no-verify", "-o", "out.onnx", cwd=tmp_path)
    assert unproven.returncode == 0
    assert "not verified" in unproven.stdout


def test_extract_between_values_with_data_runs_alone(tmp_path):
    words = ["--inputs", "/Add_output_0:auto:auto", "--outputs", "/norm_pre/Pow_output_0:float32"]
    found = document(triage(
        "surgeon", "extract", VIT, *words, "--with-inputs", EXAMPLES / "digits.npz", "-o", "cut/model.onnx", "--json",
        cwd=tmp_path,
    ))  # fmt: skip
    assert found["files"][0].endswith("test_data_set_0")
    assert found["proof"]["inputs"] == "real"
    sets = tmp_path / "cut/test_data_set_0"
    fed, expected = (onnx.numpy_helper.to_array(onnx.load_tensor(sets / f"{w}_0.pb")) for w in ("input", "output"))
    cut = Model.load(tmp_path / "cut/model.onnx")
    np.testing.assert_array_equal(
        running.run(cut, {"/Add_output_0": fed})["/norm_pre/Pow_output_0"], expected, strict=True
    )
    again = triage("surgeon", "extract", VIT, *words, "--with-inputs", "random", "-o", "cut/other.onnx", cwd=tmp_path)
    refused(again, "output-not-empty", tmp_path / "cut/other.onnx")


def test_a_dangling_branch_is_named(tmp_path):
    words = ["--inputs", "/norm_pre/Pow_output_0:auto:auto", "--outputs", "/norm_pre/Div_output_0:auto"]
    done = triage("surgeon", "extract", VIT, *words, "-o", "bad.onnx", cwd=tmp_path)
    refused(done, "cut-dangling", tmp_path / "bad.onnx")
    assert "'/norm_pre/Sub_output_0'" in done.stderr


@pytest.mark.lengthy
def test_extract_by_scope_and_inside_a_body(inside, tmp_path):
    done = inside("surgeon", "extract", VIT, "--scope", "blocks.0", "-o", "block.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    block = Model.load(tmp_path / "block.onnx").graph
    assert all(f"{block.origin(node.name).module}.".startswith("blocks.0.") for node in block.nodes)
    models.with_loop().save(tmp_path / "loop.onnx")
    words = ["--body", "loop", "--with-inputs", "random", "-o", "turn/model.onnx"]
    done = inside("surgeon", "extract", "loop.onnx", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [node.name for node in Model.load(tmp_path / "turn/model.onnx").graph.nodes] == ["again", "sum"]


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--inputs", "nothing:auto:auto"], "value-unknown"),
        (["--inputs", "image:auto:float16"], "type-contradicts"),
        (["--nodes", "/Add", "--inputs", "image:auto:auto"], "cut-overdetermined"),
        (["--nodes", "nothing"], "node-unknown"),
        (["--scope", "blocks.9"], "scope-unknown"),
        (["--body", "/Add"], "node-without-body"),
        (["--outputs", "logits"], "output-malformed"),
        (["--no-save-all-tensors-to-one-file"], "option-needs-another"),
        (["--save-external-data", "../w.bin"], "external-location"),
    ],
)
def test_what_cannot_be_cut_is_an_error(inside, tmp_path, words, slug):
    refused(inside("surgeon", "extract", VIT, *words, "-o", "out.onnx", cwd=tmp_path), slug, tmp_path / "out.onnx")


def test_insert(inside, tmp_path):
    words = ["--op", "Clip", "--inputs", "logits", "--outputs", "logits", "--name", "guard"]
    assert inside("surgeon", "insert", CNN, *words, "-o", "i.onnx", cwd=tmp_path).returncode == 0
    assert Model.load(tmp_path / "i.onnx").graph.node("guard").outputs == ("logits",)
    done = inside("surgeon", "insert", CNN, "--op", "Clop", "--inputs", "logits", "--outputs", "logits",
                  "-o", "bad.onnx", cwd=tmp_path)  # fmt: skip
    refused(done, "node-invalid", tmp_path / "bad.onnx")


def test_weights_stay_where_they_are_or_go_where_they_are_sent(inside, tmp_path):
    shutil.copy(VIT, tmp_path / "m.onnx")
    assert inside("convert", "m.onnx", "--save-external-data", "w.bin", "-o", "e.onnx", cwd=tmp_path).returncode == 0
    before = (tmp_path / "w.bin").stat()
    assert inside("surgeon", "sanitize", "e.onnx", "--cleanup", "-o", "c.onnx", cwd=tmp_path).returncode == 0
    assert (tmp_path / "w.bin").stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.onnx", "e.onnx", "m.onnx", "w.bin"]
    assert inside("convert", "c.onnx", "--embed-weights", "-o", "b.onnx", cwd=tmp_path).returncode == 0
    original, embedded = (Model.load(tmp_path / name).graph for name in ("m.onnx", "b.onnx"))
    for name in original.initializers:
        np.testing.assert_array_equal(embedded.weight(name), original.weight(name))


def test_convert_keeps_what_it_is_told_and_refuses_what_overflows(inside, tmp_path):
    found = document(
        inside("convert", CNN, "-p", "fp16", "--keep-op-types", "Gemm", "-o", "h.onnx", "--json", cwd=tmp_path)
    )
    assert found["proof"]["verified"]
    model = Model.load(tmp_path / "h.onnx")
    kinds = {node.op_type: model.graph.constants[node.inputs[1]].dtype.label for node in model.graph.nodes
             if node.op_type in ("Conv", "Gemm")}  # fmt: skip
    assert kinds == {"Conv": "float16", "Gemm": "float32"}
    name = "digits_vit_overflow"
    words = [EXAMPLES / f"{name}.onnx", "-p", "fp16", "--inputs", EXAMPLES / f"{name}.npz", "-o", "o.onnx"]
    refused(inside("convert", *words, cwd=tmp_path), "verify-failed", tmp_path / "o.onnx")
    kept = ["--keep-nodes", "/norm_pre/Pow", "/norm_pre/ReduceMean_1"]
    assert inside("convert", *words, *kept, cwd=tmp_path).returncode == 0


@pytest.mark.lengthy
def test_polygraphys_command_lines_work(inside, tmp_path):
    fold = f"surgeon sanitize {CNN} --fold-constants"
    cut = f"surgeon extract {CNN} --inputs image:auto:auto --outputs logits:auto"
    lines = [
        f"{fold} --num-passes 2 --partitioning recursive --toposort --cleanup -o a.onnx",
        f"{fold} --no-fold-shapes --fold-size-threshold 16M --no-shape-inference -o b.onnx",
        f"{cut} --force-fallback-shape-inference -o c.onnx",
        f"convert {CNN} --fp-to-fp16 --convert-to onnx --inputs image:[2,1,8,8] -o d.onnx",
    ]
    for line in lines:
        done = inside(*line.split(), cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_without_its_data_files_the_structure_of_a_model_is_edited(inside, tmp_path):
    whole = tmp_path / "whole"
    inside("convert", VIT, "--save-external-data", "w.bin", "-o", whole / "m.onnx", cwd=tmp_path)
    (tmp_path / "bare").mkdir()
    shutil.copy(whole / "m.onnx", tmp_path / "bare/m.onnx")
    words = ["--scope", "blocks.0", "--ignore-external-data"]
    found = document(inside("surgeon", "extract", "bare/m.onnx", *words, "-o", "bare/cut.onnx", "--json", cwd=tmp_path))
    assert (found["proof"]["verified"], found["proof"]["reason"]) == (False, "external data are ignored")
    assert found["notices"] == []
    # Beside the weights the cut is the same as one that was made with them.
    shutil.copy(tmp_path / "bare/cut.onnx", whole / "cut.onnx")
    document(inside("surgeon", "extract", whole / "m.onnx", "--scope", "blocks.0", "-o", "other.onnx", "--json"))
    assert Model.load(whole / "cut.onnx").fingerprint == Model.load(tmp_path / "other.onnx").fingerprint
    elsewhere = inside("surgeon", "extract", "bare/m.onnx", *words, "-o", "cut.onnx", cwd=tmp_path)
    assert "they have to be next to it" in elsewhere.stdout
    insist = inside("surgeon", "extract", "bare/m.onnx", *words, "--verify", "-o", "v.onnx", cwd=tmp_path)
    refused(insist, "verify-impossible", tmp_path / "v.onnx")


@pytest.mark.lengthy
def test_a_model_too_large_to_embed_says_where_its_weights_went(inside, tmp_path, monkeypatch):
    monkeypatch.setattr("tensortriage.workflows.edits.edit_pipeline.EMBED_LIMIT_BYTES", 1000)
    monkeypatch.setattr("tensortriage.model.io.save.save_model.__wrapped__.__kwdefaults__", {"embed_limit_bytes": 1000})
    found = document(inside("convert", VIT, "--embed-weights", "-o", "out.onnx", "--json", cwd=tmp_path))
    assert found["notices"] == [
        "weights beyond 1.5 GiB do not fit into a model file; they are in out.onnx.data next to it"
    ]
    assert (tmp_path / "out.onnx.data").stat().st_size > found["weight_bytes_before"] / 2
