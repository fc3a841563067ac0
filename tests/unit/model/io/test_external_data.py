"""Every way in which a model can point to weights that it must not, or that are not there."""

import os
import shutil

import numpy as np
import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model


def refusal(path, **options):
    with pytest.raises(ModelError) as caught:
        Model.load(path, **options)
    assert "'W'" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.cure
    return caught.value.slug


def test_weights_beside_the_model(tmp_path):
    graph = Model.load(models.with_external_data(tmp_path)).graph
    np.testing.assert_array_equal(graph.weight("W"), np.arange(32, dtype=np.float32).reshape(4, 8))


def test_weights_in_a_directory_below(tmp_path):
    path = models.with_external_data(tmp_path, location="deep/er/w.bin")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "weights.bin").rename(tmp_path / "deep/er/w.bin")
    assert Model.load(path).graph.weight("W")[3, 7] == 31


def test_weights_in_a_directory_given(tmp_path):
    path = models.with_external_data(tmp_path / "model")
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "model/weights.bin", tmp_path / "elsewhere/weights.bin")
    assert refusal(path) == "external-data-missing"
    assert Model.load(path, external_data_dir=tmp_path / "elsewhere").graph.weight("W")[0, 1] == 1


def test_a_relative_model_path(tmp_path, monkeypatch):
    models.with_external_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = Model.load("model.onnx")
    monkeypatch.chdir("/")
    assert model.graph.weight("W")[0, 1] == 1


def test_several_hard_links_are_no_reason_to_refuse(tmp_path):
    path = models.with_external_data(tmp_path)
    os.link(tmp_path / "weights.bin", tmp_path / "again.bin")
    assert Model.load(path).graph.weight("W")[0, 1] == 1


def test_links_within_the_directory_are_followed(tmp_path):
    path = models.with_external_data(tmp_path, location="link.bin")
    (tmp_path / "link.bin").symlink_to("weights.bin")
    assert Model.load(path).graph.weight("W")[0, 1] == 1


def test_a_download_cache_of_links_is_followed(tmp_path):
    # The layout of the Hugging Face cache: snapshots/REVISION/NAME -> ../../blobs/HASH
    path = models.with_external_data(tmp_path / "blobs", name="1a2b")
    (tmp_path / "blobs/weights.bin").rename(tmp_path / "blobs/3c4d")
    snapshot = tmp_path / "snapshots/main"
    snapshot.mkdir(parents=True)
    (snapshot / "model.onnx").symlink_to("../../blobs/" + path.name)
    (snapshot / "weights.bin").symlink_to("../../blobs/3c4d")
    assert Model.load(snapshot / "model.onnx").graph.weight("W")[0, 1] == 1


@pytest.mark.parametrize(
    "location",
    [
        "/etc/hostname",
        "../weights.bin",
        "a/../../weights.bin",
        "..\\weights.bin",
        "C:\\weights.bin",
        "\\weights.bin",
        "",
    ],
)
def test_paths_that_lead_out_are_refused(tmp_path, location):
    (tmp_path / "weights.bin").write_bytes(bytes(128))
    assert refusal(models.with_external_data(tmp_path / "m", location=location)) == "external-data-outside"


def test_a_link_that_leads_out_is_refused(tmp_path):
    path = models.with_external_data(tmp_path / "m", location="link.bin")
    (tmp_path / "m/weights.bin").rename(tmp_path / "secret.bin")
    (tmp_path / "m/link.bin").symlink_to("../secret.bin")
    assert refusal(path) == "external-data-outside"


def test_a_linked_directory_that_leads_out_is_refused(tmp_path):
    path = models.with_external_data(tmp_path / "m", location="dir/weights.bin")
    (tmp_path / "m/dir").symlink_to(tmp_path / "m")
    assert Model.load(path).graph.weight("W")[0, 1] == 1
    (tmp_path / "m/dir").unlink()
    (tmp_path / "m/dir").symlink_to(tmp_path)
    (tmp_path / "m/weights.bin").rename(tmp_path / "weights.bin")
    assert refusal(path) == "external-data-outside"


def test_links_in_a_circle_are_refused(tmp_path):
    path = models.with_external_data(tmp_path, location="loop.bin")
    (tmp_path / "loop.bin").symlink_to("loop.bin")
    assert refusal(path).startswith("external-data-")


def test_what_is_no_file_is_refused(tmp_path):
    assert refusal(models.with_external_data(tmp_path, location=".")) == "external-data-outside"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(models.with_external_data(tmp_path, location="pipe")) == "external-data-outside"


def with_tensor(tmp_path, **said):
    models.with_external_data(tmp_path)
    message = models.proto("g (float[N, 4] x) => (float[N, 8] y) { y = MatMul(x, W) }")
    message.graph.initializer.append(models.external_tensor("W", onnx.TensorProto.FLOAT, (4, 8), "weights.bin", **said))
    return models.write(tmp_path / "m.onnx", message)


@pytest.mark.parametrize(
    "said",
    [
        {"offset": -1}, {"offset": "x"}, {"offset": "9" * 30}, {"offset": 1.5}, {"length": -4}, {"length": 127},
        {"length": 129}, {"length": "ten"},
    ],
    ids=str,
)  # fmt: skip
def test_nonsense_about_the_place_is_refused(tmp_path, said):
    assert refusal(with_tensor(tmp_path, **said)) == "external-data-invalid"


@pytest.mark.parametrize("said", [{"offset": 1}, {"offset": 10**15}, {"offset": 128, "length": 128}], ids=str)
def test_a_place_beyond_the_file_is_refused(tmp_path, said):
    assert refusal(with_tensor(tmp_path, **said)) == "external-data-truncated"


def test_a_git_lfs_pointer_is_recognised(tmp_path):
    path = models.with_external_data(tmp_path)
    (tmp_path / "weights.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 128\n")
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.slug == "external-data-truncated"
    assert "git lfs pull" in caught.value.cure


def test_length_may_be_left_out_and_unknown_words_are_ignored(tmp_path):
    assert Model.load(with_tensor(tmp_path, checksum="0", prepacked_0="x|1|2")).graph.weight("W")[0, 1] == 1


def test_external_constants_in_bodies_are_bound_too(tmp_path):
    models.with_external_data(tmp_path)
    message = models.proto("""
        g (bool c, float[4, 8] x) => (float[4, 8] y) {
            y = If (c) <
                then_branch = t () => (float[4, 8] a) { a = Add(x, W) },
                else_branch = e () => (float[4, 8] b) { k = Constant <value = float[1] {0}> ()  b = Add(x, k) }
            >
        }""")
    then_branch, else_branch = (attribute.g for attribute in message.graph.node[0].attribute)
    tensor = models.external_tensor("W", onnx.TensorProto.FLOAT, (4, 8), "weights.bin")
    then_branch.initializer.append(tensor)
    else_branch.node[0].attribute[0].t.CopyFrom(tensor)
    saved = Model.load(models.write(tmp_path / "m.onnx", message)).save(tmp_path / "apart/m.onnx")
    branches = [attribute.g for attribute in onnx.load(saved).graph.node[0].attribute]
    assert branches[0].initializer[0].raw_data == branches[1].node[0].attribute[0].t.raw_data
    assert branches[0].initializer[0].raw_data == np.arange(32, dtype=np.float32).tobytes()
