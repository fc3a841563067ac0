"""Packs appear whole, replace packs only, and never take a user's file with them."""

import shlex

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import StoreError
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro import repro_pack
from tensortriage.reduce.repro.repro_case import Repro, ReproSample, load_repro
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.repro.repro_texts import TextFacts, readme

FAILURE = Failure(FailureKind.WRONG, "y", 0.5, "y", 0.5)


def repro(factor, tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[1] w = {%s}> { y = Mul(x, w) }'
    )
    path = tmp_path / f"source{factor}.onnx"
    onnx.save(parser.parse_model(text % factor), path)
    feed = {"x": np.ones(2, np.float32)}
    return Repro(Model.load(path), (ReproSample(feed, {"y": np.full(2, factor, np.float32)}),))


def write(folder, factor, tmp_path):
    target = EngineSpec.parse("onnxruntime")
    write_pack(folder, repro(factor, tmp_path), TextFacts(target, {}, FAILURE), limits=Limits())


def weight(folder):
    return Model.load(folder / "model.onnx").ir.graph.initializers["w"].const_value.numpy().item()


def test_a_pack_replaces_an_earlier_one(tmp_path):
    folder = tmp_path / "X_repro"
    for factor in (2.0, 3.0):
        write(folder, factor, tmp_path)
        assert weight(folder) == factor
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "model.onnx", "repro.py", "test_data_set_0"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


FOREIGN = ["notes.txt", "test_data_set_0/mine.npy", "test_data_set_x/input_0.pb", "sub/repro.py"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_users_files_are_never_removed(name, tmp_path):
    folder = tmp_path / "X_repro"
    write(folder, 2.0, tmp_path)
    mine = folder / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(StoreError) as caught:
        write(folder, 3.0, tmp_path)
    assert caught.value.slug == "repro-folder-foreign"
    assert name.split("/")[0] in caught.value.message
    assert mine.read_text() == "mine"
    assert weight(folder) == 2.0


def test_links_are_neither_followed_nor_removed(tmp_path):
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "X_repro"
    folder.symlink_to("outside")
    with pytest.raises(StoreError):
        write(folder, 2.0, tmp_path)
    assert list((tmp_path / "outside").iterdir()) == []
    folder.unlink()
    write(folder, 2.0, tmp_path)
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(tmp_path / "source2.0.onnx")
    with pytest.raises(StoreError):
        write(folder, 3.0, tmp_path)


def test_a_pack_that_fails_half_way_leaves_the_earlier_one(tmp_path, monkeypatch):
    folder = tmp_path / "X_repro"
    write(folder, 2.0, tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(repro_pack, "write_tensor", full)
    with pytest.raises(StoreError) as caught:
        write(folder, 3.0, tmp_path)
    assert caught.value.slug == "repro-unwritable"
    assert weight(folder) == 2.0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_a_kill_left_is_removed_and_the_pack_written(tmp_path):
    folder = tmp_path / "X_repro"
    left = tmp_path / ".X_repro.999999999-0123456789abcdef.partial"  # no such process: pid_max is below
    left.mkdir()
    (left / "model.onnx").write_text("half")
    write(folder, 2.0, tmp_path)
    assert not left.exists()
    assert weight(folder) == 2.0


def test_names_of_the_model_mean_nothing_to_a_reader_of_the_pack(tmp_path):
    """Neither to Markdown, nor to a terminal, nor to a shell into which the command is pasted."""
    name = "[a](javascript:x)<b>\n# no\x1b[31m"
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"], name=name)],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [2])],
        [onnx.helper.make_tensor_value_info("y", 1, [2])],
    )
    onnx.save(
        onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]),
        tmp_path / "m.onnx",
    )
    failure = Failure(FailureKind.WRONG, name, 0.5, "y", 0.5)
    told = TextFacts(EngineSpec("script", {"file": "e.py", "node": f"{name}$(touch no)"}), {}, failure)
    text = readme(Model.load(tmp_path / "m.onnx"), told)
    lines = text.splitlines()
    assert all(line.startswith("    ") for line in lines if "javascript" in line)
    assert sum("javascript" in line for line in lines) == 3
    assert "\x1b" not in text
    (command,) = [line.strip() for line in lines if line.strip().startswith("triage")]
    assert shlex.split(command)[4].endswith("$(touch no)")


def test_a_case_of_constants_alone_runs_again(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17]> g () => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Neg(w) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    right = np.array([1.0, 2.0], np.float32)  # wrong on purpose: the negation of it is what every engine gives
    case = Repro(Model.load(tmp_path / "m.onnx"), (ReproSample({}, {"y": right}),))
    folder = tmp_path / "X_repro"
    target = EngineSpec.parse("onnxruntime")
    trial = write_pack(folder, case, TextFacts(target, {}, FAILURE), limits=Limits())
    assert trial.otherwise == ""
    (again,) = load_repro(folder).samples
    assert again.inputs == {}
    np.testing.assert_array_equal(again.outputs["y"], right)
