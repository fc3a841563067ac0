import hashlib
import os
import resource

import numpy as np
import onnx_ir as ir
import pytest

from tensortriage.errors import ModelError
from tensortriage.model.io.lazy_weights import MappedTensor, WeightFile, content_sha256


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
