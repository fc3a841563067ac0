import hashlib
import os
import resource

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.io.lazy_weights import (
    Hollow,
    MappedTensor,
    WeightFile,
    content_sha256,
    lacks_numbers,
    large_initializers,
)
from tensortriage.model.model import ExternalData, ExternalLayout, Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.constant_folding import fold_constants
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.unused_removal import clean


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(range(256)) * 16)
    return path


def tensor(path, offset=0, dtype=ir.DataType.UINT8, shape=(16,)):
    return MappedTensor(WeightFile(path), offset, dtype=dtype, shape=ir.Shape(shape), name="w")


def test_an_array_is_a_read_only_map_of_the_file(data):
    array = tensor(data, 8, ir.DataType.UINT16, (2, 2)).numpy()
    assert array.tolist() == [[0x0908, 0x0B0A], [0x0D0C, 0x0F0E]]
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_unaligned_weights_are_aligned(data):
    array = tensor(data, 1, ir.DataType.FLOAT, (3,)).numpy()
    assert array.flags.aligned
    assert array.tobytes() == bytes(range(1, 13))


def test_sub_byte_types_are_unpacked(data):
    # Bytes 0x12 0x13: low half first (onnx.proto, TensorProto.raw_data).
    assert tensor(data, 0x12, ir.DataType.UINT4, (3,)).numpy().tolist() == [2, 1, 3]


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_empty_tensors_need_no_file(tmp_path, shape):
    (tmp_path / "empty").touch()
    assert tensor(tmp_path / "empty", shape=shape).numpy().shape == shape
    assert tensor(tmp_path / "empty", shape=shape).tobytes() == b""


def test_bytes_go_from_file_to_file(data, tmp_path):
    with (tmp_path / "copy").open("wb") as file:
        file.write(b"head")
        tensor(data, 2, shape=(5,)).tofile(file)
        file.write(b"tail")
    assert (tmp_path / "copy").read_bytes() == b"head\2\3\4\5\6tail"


def test_arrays_outlive_the_tensor_and_release_the_file(data):
    array = tensor(data).numpy()
    assert array.tolist() == list(range(16))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        tensor(data).numpy()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_thousand_tensors_of_one_file_share_one_descriptor(data):
    file = WeightFile(data)
    many = [MappedTensor(file, i, dtype=ir.DataType.UINT8, shape=ir.Shape((1,)), name=str(i)) for i in range(1000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        arrays = [one.numpy() for one in many]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [int(array[0]) for array in arrays] == [i % 256 for i in range(1000)]


@pytest.mark.parametrize("change", [os.unlink, lambda path: path.write_bytes(b"other")], ids=["removed", "replaced"])
def test_a_file_that_changed_since_is_an_error(data, tmp_path, change):
    late = tensor(data)
    change(data)
    for use in (late.numpy, late.tobytes, lambda: content_sha256(late)):
        with pytest.raises(ModelError) as caught:
            use()
        assert caught.value.slug == "external-data-changed"
        assert "w.bin" in caught.value.message


def test_pinned_contents_survive_a_replacement(data, tmp_path):
    pinned = tensor(data, 1, shape=(3,))
    pinned.file.pin()
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "new").replace(data)
    assert pinned.numpy().tolist() == [1, 2, 3]
    with (tmp_path / "copy").open("wb") as file:
        pinned.tofile(file)
    assert (tmp_path / "copy").read_bytes() == b"\1\2\3"


def test_the_hash_is_that_of_the_bytes_wherever_they_are(data):
    wanted = hashlib.sha256(bytes(range(16))).hexdigest()
    assert content_sha256(tensor(data)) == wanted
    assert content_sha256(ir.tensor(np.arange(16, dtype=np.uint8))) == wanted


def test_the_hash_is_kept_with_the_tensor(data):
    hashed = tensor(data)
    content_sha256(hashed)
    data.unlink()
    assert content_sha256(hashed)


def test_strings_have_a_hash_that_knows_their_borders():
    one, other = (ir.StringTensor(words, shape=ir.Shape((2,))) for words in ([b"ab", b"c"], [b"a", b"bc"]))
    assert content_sha256(one) != content_sha256(other)


MESSAGE = """
    g (float[2, 4] x) => (float[2, 8] y) <float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}> {
        [first] a = MatMul(x, W) [second] s = Add(a, b) [sum] d = Add(W, W) [third] m = MatMul(x, d)
        [last] y = Add(s, m) }"""


@pytest.fixture
def path(tmp_path):
    """A model whose weight W is said to lie in a file that is not there."""
    message = models.proto(MESSAGE)
    message.graph.initializer.append(models.external_tensor("W", onnx.TensorProto.FLOAT, (4, 8), "gone/w.bin"))
    return models.write(tmp_path / "m.onnx", message)


def references(path):
    message = onnx.load(path, load_external_data=False)
    return {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data} for tensor in message.graph.initializer
    }


@pytest.mark.parametrize("layout", [*ExternalData, ExternalLayout()], ids=str)
def test_what_is_saved_refers_to_the_same_bytes(path, tmp_path, layout):
    model = Model.load(path, ignore_external_data=True)
    edited = {
        "saved": model,
        "cleaned": clean(model),
        "folded": fold_constants(model),
        "cut": extract(model, ["first", "second"], specs=value_specs(model)),
        "raised": require_opset(model, model.opset + 3),
    }
    for name, result in edited.items():
        saved = result.save(tmp_path / name / "out.onnx", external_data=layout)
        assert references(saved)["W"] == references(path)["W"], name
        assert Model.load(saved, ignore_external_data=True).graph.initializers["W"].shape == (4, 8)


def test_what_needs_the_numbers_says_so(path):
    model = Model.load(path, ignore_external_data=True)
    with pytest.raises(ModelError) as caught:
        model.graph.weight("W")
    assert caught.value.slug == "weight-ignored"
    assert "'W'" in caught.value.message
    np.testing.assert_array_equal(model.graph.weight("b"), np.arange(1, 9, dtype=np.float32))


def test_without_the_option_missing_data_are_an_error(path):
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.slug == "external-data-missing"


def test_which_weights_are_large():
    model = models.parse("""
        g (float[2, 3] x) => (float[2, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}> {
            a = MatMul(x, w)
            y = Add(a, b)
        }""")
    assert list(large_initializers(model.ir, above_bytes=12)) == ["w"]
    assert list(large_initializers(model.ir, above_bytes=11)) == ["w", "b"]
    clone = model.clone().ir
    value = clone.graph.initializers["w"]
    value.const_value = Hollow(value.const_value)
    assert large_initializers(clone, above_bytes=11).keys() == {"b"}


def test_a_hollow_tensor_has_no_numbers_and_says_so():
    tensor = Hollow(ir.tensor(np.ones((2, 3), np.float32), name="w"))
    assert (tuple(tensor.shape), tensor.dtype, tensor.tobytes(), lacks_numbers(tensor)) == (
        (2, 3),
        ir.DataType.FLOAT,
        b"",
        True,
    )
    assert not lacks_numbers(ir.tensor(np.ones(2)))
    with pytest.raises(ModelError) as raised:
        tensor.numpy()
    assert raised.value.slug == "weight-stripped"
