import concurrent.futures
import stat

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.errors import ModelError, StoreError, UsageError
from tensortriage.model.io.save import save_model
from tensortriage.model.model import ExternalData, ExternalLayout, Model


def large_mlp():
    return models.mlp(features=64, hidden=512)  # w1 has 128 KiB, w2 4 KiB, the biases less


def listing(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_small_models_are_one_file(tmp_path):
    assert large_mlp().save(tmp_path / "m.onnx") == tmp_path / "m.onnx"
    assert listing(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("mode", ExternalData)
def test_how_large_a_weight_is_is_asked_once_for_all_the_files_it_is_written_to(mode, tmp_path, monkeypatch):
    """onnx_ir makes its shape anew for every answer, and a search writes the same weights hundreds of times."""
    model = Model.load(large_mlp().save(tmp_path / "source" / "m.onnx")).ir
    asked = []
    size = ir.TensorProtoTensor.size.fget
    monkeypatch.setattr(
        ir.TensorProtoTensor, "size", property(lambda tensor: asked.append(tensor.name) or size(tensor))
    )
    small = [
        name for name, value in model.graph.initializers.items() if isinstance(value.const_value, ir.TensorProtoTensor)
    ]
    assert small
    for number in range(3):
        save_model(model, tmp_path / str(number) / "m.onnx", mode)
    assert len(asked) <= len(small)


def test_what_is_saved_is_what_was_there(tmp_path):
    model = large_mlp()
    for mode in ExternalData:
        saved = Model.load(model.save(tmp_path / mode.value / "m.onnx", external_data=mode))
        assert saved.fingerprint == model.fingerprint
        assert saved.inputs == model.inputs


def test_always_writes_one_data_file_whose_large_tensors_start_on_pages(tmp_path):
    large_mlp().save(tmp_path / "m.onnx", external_data=ExternalData.ALWAYS)
    assert listing(tmp_path) == ["m.onnx", "m.onnx.data"]
    said = {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    }
    assert {entry["location"] for entry in said.values() if entry} == {"m.onnx.data"}
    assert int(said["w1"]["length"]) == 64 * 512 * 4
    assert all(int(said[name]["offset"]) % 4096 == 0 for name in ("w1", "w2"))
    assert said["b2"] == {}


def test_models_of_one_directory_share_kept_weights(tmp_path):
    model = large_mlp()
    first = model.save(tmp_path / "first.onnx", external_data=ExternalData.KEEP)
    (weights,) = (tmp_path / "weights").iterdir()
    written = weights.stat()
    second = model.clone().save(tmp_path / "second.onnx", external_data=ExternalData.KEEP)
    assert weights.stat().st_mtime_ns == written.st_mtime_ns
    assert listing(tmp_path) == ["first.onnx", "second.onnx", f"weights/{weights.name}"]
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 20_000


def test_an_unfinished_kept_weight_is_written_again(tmp_path):
    model = large_mlp()
    model.save(tmp_path / "m.onnx", external_data=ExternalData.KEEP)
    (weights,) = (tmp_path / "weights").iterdir()
    weights.write_bytes(b"half")
    model.save(tmp_path / "m.onnx", external_data=ExternalData.KEEP)
    np.testing.assert_array_equal(Model.load(tmp_path / "m.onnx").graph.weight("w1"), model.graph.weight("w1"))


def test_a_tensor_used_by_two_initializers_is_written_once(tmp_path):
    model = large_mlp().clone().ir
    tensor = model.graph.initializers["w1"].const_value
    twin = ir.Value(name="twin", type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape), const_value=tensor)
    model.graph.register_initializer(twin)
    path = Model.from_ir(model).save(tmp_path / "m.onnx", external_data=ExternalData.ALWAYS)
    assert (tmp_path / "m.onnx.data").stat().st_size < 2 * 64 * 512 * 4
    saved = Model.load(path).graph
    np.testing.assert_array_equal(saved.weight("twin"), saved.weight("w1"))


def test_overwriting_the_data_one_reads(tmp_path):
    path = large_mlp().save(tmp_path / "m.onnx", external_data=ExternalData.ALWAYS)
    model = Model.load(path)
    weight = np.array(model.graph.weight("w1"))
    edited = model.clone().ir
    edited.graph.initializers["w2"].const_value = ir.tensor(np.zeros((512, 2), np.float32))
    Model.from_ir(edited).save(path, external_data=ExternalData.ALWAYS)
    np.testing.assert_array_equal(Model.load(path).graph.weight("w1"), weight)
    np.testing.assert_array_equal(model.graph.weight("w1"), weight)
    model.save(tmp_path / "later.onnx")
    np.testing.assert_array_equal(Model.load(tmp_path / "later.onnx").graph.weight("w1"), weight)


def test_every_kind_of_information_survives(tmp_path):
    message = models.proto("""
        <ir_version: 10, opset_import: ["": 18, "own": 1], producer_name: "p", producer_version: "2", domain: "d",
         model_version: 3, doc_string: "about", metadata_props: ["k": "v"]>
        graph_name (float[batch, "2*n", 3] x) => (float[batch, M, 3] y)
        <float[1] w = {1}, float[batch, unk, 3] a>
        {
            [first] a = own.F <alpha = 0.5> (x)
            [second] y = Add(a, w)
        }
        <opset_import: ["": 18], domain: "own"> F <alpha> (u) => (v) {
            [leak] v = LeakyRelu <alpha: float = @alpha> (u)
        }
        """)
    message.graph.doc_string = "about the graph"
    message.graph.metadata_props.add(key="gk", value="gv")
    message.graph.node[0].doc_string = "about the node"
    message.graph.node[0].metadata_props.add(key="nk", value="nv")
    message.graph.input[0].doc_string = "about x"
    message.graph.initializer[0].doc_string = "about w"
    message.graph.quantization_annotation.add(tensor_name="a").quant_parameter_tensor_names.add(key="SCALE", value="w")
    saved = onnx.load(Model.load(models.write(tmp_path / "m.onnx", message)).save(tmp_path / "saved.onnx"))
    # onnx_ir declares the type of initializers in value_info, and leaves out empty domains.
    infos = [info for info in saved.graph.value_info if info.name != "w"]
    del saved.graph.value_info[:]
    saved.graph.value_info.extend(infos)
    for model in (saved, message):
        for part in (
            *model.opset_import,
            *model.graph.node,
            *model.functions[0].opset_import,
            *model.functions[0].node,
        ):
            part.domain = part.domain or ""
    assert saved == message


def test_string_initializers_and_weights_in_bodies_survive(tmp_path):
    model = models.with_if().clone().ir
    then_branch = next(node for node in model.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    large = np.arange(20_000, dtype=np.float32)
    then_branch.register_initializer(ir.Value(name="inner", const_value=ir.tensor(large)))
    words = ir.StringTensor([b"a", b"bc"], shape=ir.Shape((2,)), name="words")
    model.graph.register_initializer(ir.Value(name="words", const_value=words))
    wrapped = Model.from_ir(model)
    for mode in ExternalData:
        path = wrapped.save(tmp_path / mode.value / "m.onnx", external_data=mode)
        saved = Model.load(path)
        assert saved.graph.weight("words").tolist() == ["a", "bc"]
        loaded = onnx.load(path)
        onnx.external_data_helper.load_external_data_for_model(loaded, str(path.parent))
        body = next(node for node in loaded.graph.node if node.op_type == "If").attribute[0].g
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(body.initializer[0]), large)


def test_weights_beyond_the_limit_are_moved_out(tmp_path):
    model = large_mlp()
    save_model(model.ir, tmp_path / "m.onnx", ExternalData.AUTO, embed_limit_bytes=100_000)
    assert listing(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert Model.load(tmp_path / "m.onnx").fingerprint == model.fingerprint


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    path = models.with_external_data(tmp_path, columns=2048)
    model = Model.load(path)
    target = models.chain(1).save(tmp_path / "out/m.onnx")
    before = target.read_bytes()
    (tmp_path / "weights.bin").write_bytes(b"gone")
    for mode in ExternalData:
        with pytest.raises(ModelError) as caught:
            model.save(target, external_data=mode)
        assert caught.value.slug == "external-data-changed"
        assert target.read_bytes() == before
        assert listing(tmp_path / "out") == ["m.onnx"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file/m.onnx", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(StoreError) as caught:
            models.mlp().save(path)
        assert caught.value.slug == "model-unwritable"
        assert "\n" not in caught.value.message
    assert listing(tmp_path) == ["file"]


def test_files_are_as_readable_as_any_other(tmp_path):
    path = large_mlp().save(tmp_path / "m.onnx", external_data=ExternalData.ALWAYS)
    (tmp_path / "plain").touch()
    wanted = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {wanted}
    assert path.exists()


def test_many_threads_may_use_one_model(tmp_path):
    model = large_mlp()
    modes = [*ExternalData] * 8
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        saves = [pool.submit(model.save, tmp_path / f"{i}.onnx", external_data=mode) for i, mode in enumerate(modes)]
        clones = [pool.submit(model.clone) for _ in modes]
        paths, copies = [save.result() for save in saves], [clone.result() for clone in clones]
    assert {each.fingerprint for each in (*map(Model.load, paths), *copies)} == {model.fingerprint}


def said_places(path):
    return {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in onnx.load(path, load_external_data=False).graph.initializer
    }


def test_large_weights_left_where_they_are_keep_their_file_and_offset(tmp_path):
    path = models.with_external_data(tmp_path, columns=512)
    copy = Model.load(path).save(tmp_path / "copy.onnx", external_data=ExternalData.LEAVE)
    assert listing(tmp_path) == ["copy.onnx", "model.onnx", "weights.bin"]
    assert said_places(copy) == {"W": {"location": "weights.bin", "offset": "0", "length": str(4 * 512 * 4)}}
    below = Model.load(path).save(tmp_path / "sub/copy.onnx", external_data=ExternalData.LEAVE)
    assert said_places(below)["W"]["location"] == "copy.onnx.data"
    np.testing.assert_array_equal(Model.load(below).graph.weight("W"), Model.load(path).graph.weight("W"))


def test_embedded_weights_left_where_they_are_are_embedded(tmp_path):
    large_mlp().save(tmp_path / "m.onnx", external_data=ExternalData.LEAVE)
    assert listing(tmp_path) == ["m.onnx"]


def test_overwriting_a_model_leaves_its_weights_alone(tmp_path):
    path = models.with_external_data(tmp_path, columns=512)
    Model.load(path).save(path, external_data=ExternalData.LEAVE)
    assert listing(tmp_path) == ["model.onnx", "weights.bin"]
    assert Model.load(path).graph.weight("W")[3, 511] == 4 * 512 - 1


def test_weights_that_changed_since_loading_are_not_referred_to(tmp_path):
    model = Model.load(models.with_external_data(tmp_path, columns=512))
    (tmp_path / "weights.bin").write_bytes(bytes(4 * 512 * 4))
    with pytest.raises(ModelError) as caught:
        model.save(tmp_path / "copy.onnx", external_data=ExternalData.LEAVE)
    assert caught.value.slug == "external-data-changed"


def test_a_layout_names_the_data_file_and_the_least_size(tmp_path):
    layout = ExternalLayout("data/all.bin", threshold_bytes=4096)
    saved = large_mlp().save(tmp_path / "m.onnx", external_data=layout)
    assert listing(tmp_path) == ["data/all.bin", "m.onnx"]
    assert {name: bool(said) for name, said in said_places(saved).items()} == {
        "w1": True, "w2": True, "b1": False, "b2": False,
    }  # fmt: skip
    everything = large_mlp().save(tmp_path / "all.onnx", external_data=ExternalLayout(threshold_bytes=0))
    assert all(said["location"] == "all.onnx.data" for said in said_places(everything).values())
    assert Model.load(saved).fingerprint == Model.load(everything).fingerprint == large_mlp().fingerprint


def test_a_layout_can_give_every_weight_a_file(tmp_path):
    saved = large_mlp().save(tmp_path / "m.onnx", external_data=ExternalLayout(one_file=False))
    assert listing(tmp_path) == [
        "m.onnx", "m.onnx.weights/0000_w1.bin", "m.onnx.weights/0001_b1.bin", "m.onnx.weights/0002_w2.bin",
    ]  # fmt: skip
    assert Model.load(saved).fingerprint == large_mlp().fingerprint
    again = Model.load(saved).save(saved, external_data=ExternalLayout(one_file=False))
    assert Model.load(again).fingerprint == large_mlp().fingerprint


@pytest.mark.parametrize("location", ["../w.bin", "/tmp/w.bin", "m.onnx", "C:\\w.bin"])
def test_a_layout_stays_in_the_directory_of_the_model(tmp_path, location):
    with pytest.raises(UsageError) as caught:
        large_mlp().save(tmp_path / "m.onnx", external_data=ExternalLayout(location))
    assert caught.value.slug == "external-location"
    assert listing(tmp_path) == []
