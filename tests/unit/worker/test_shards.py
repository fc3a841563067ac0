"""Expected bytes: the safetensors format (huggingface.co/docs/safetensors) and ONNX's packing of sub-byte types."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest

from tensortriage_worker import encoding, shards


def parts(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def test_the_file_is_a_safetensors_file(tmp_path):
    path = tmp_path / "s.safetensors"
    shards.write_shard(path, {"x": np.float32([[1, 2]]), "half": np.array([1], ml_dtypes.bfloat16)})
    header, data = parts(path)
    assert header == {
        "x": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "half": {"dtype": "BF16", "shape": [1], "data_offsets": [8, 10]},
    }
    assert data == struct.pack("<ff", 1, 2) + bytes.fromhex("803f")


def test_every_tensor_is_aligned_whatever_the_order(tmp_path):
    path = tmp_path / "s.safetensors"
    tensors = {"one": np.int8([1]), "eight": np.float64([2]), "two": np.float16([3]), "four": np.int32([4])}
    shards.write_shard(path, tensors)
    for name, array in shards.read_shard(path).items():
        assert array.flags.aligned, name
        assert array.tolist() == tensors[name].tolist()


def test_sub_byte_types_are_packed_as_onnx_packs_them(tmp_path):
    path = tmp_path / "s.safetensors"
    shards.write_shard(path, {"q": np.array([1, -2, 7], ml_dtypes.int4)})
    header, data = parts(path)
    assert data == bytes([0xE1, 0x07])  # First element in the low half, padded with zero.
    assert header["q"]["dtype"] == "U8"
    assert json.loads(header["__metadata__"][shards.METADATA_KEY]) == {"q": ["int4", [3]]}


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda a: a[:, ::-1], lambda a: a[::2], lambda a: a.astype(">f4")]
)
def test_strange_layouts_keep_their_values(tmp_path, layout):
    # safetensors 0.8.0 writes Fortran-ordered and strided arrays in the wrong order (its issue 825).
    array = layout(np.arange(12, dtype=np.float32).reshape(4, 3))
    shards.write_shard(tmp_path / "s", {"x": array})
    np.testing.assert_array_equal(shards.read_shard(tmp_path / "s")["x"], array)


def test_raw_integers_with_labels_are_the_types_that_numpy_lacks(tmp_path):
    labels = {"b": "bfloat16", "q": "int4"}
    shards.write_shard(tmp_path / "s", {"b": np.uint16([0x3F80]), "q": np.int8([-8, 7])}, labels)
    found = shards.read_shard(tmp_path / "s")
    assert found["b"].dtype == ml_dtypes.bfloat16
    assert found["b"].tolist() == [1.0]
    assert found["q"].astype(int).tolist() == [-8, 7]


def test_without_ml_dtypes_raw_integers_come_back(tmp_path, monkeypatch):
    path = tmp_path / "s"
    shards.write_shard(path, {"b": np.array([1], ml_dtypes.bfloat16), "q": np.array([-8, 7], ml_dtypes.int4)})
    monkeypatch.setattr(encoding, "_ML_DTYPES", None)
    reader = shards.ShardReader(path)
    assert (reader.tensor("b").dtype, reader.tensor("b").tolist()) == (np.uint16, [0x3F80])
    assert (reader.tensor("q").dtype, reader.tensor("q").tolist()) == (np.int8, [-8, 7])
    assert reader.labels == {"b": "bfloat16", "q": "int4"}


def test_reading_maps_instead_of_copying(tmp_path):
    shards.write_shard(tmp_path / "s", {"x": np.zeros(1000, np.float32)})
    array = shards.read_shard(tmp_path / "s")["x"]
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_reader_outlives_its_file_until_it_is_released(tmp_path):
    shards.write_shard(tmp_path / "s", {"x": np.arange(1000.0)})
    reader = shards.ShardReader(tmp_path / "s")
    (tmp_path / "s").unlink()
    kept = reader.tensor("x")
    reader.release()
    assert reader.tensor("x")[-1] == kept[-1] == 999.0
    del kept
    with pytest.raises(FileNotFoundError):
        reader.tensor("x")


def test_strings_and_bytes_come_back_as_text(tmp_path):
    array = np.array([["naïve", b"bytes"]], dtype=object)
    shards.write_shard(tmp_path / "s", {"x": array})
    assert shards.read_shard(tmp_path / "s")["x"].tolist() == [["naïve", "bytes"]]


@pytest.mark.parametrize(
    ("tensors", "labels", "match"),
    [
        ({"x": np.zeros(2, "datetime64[s]")}, None, "cannot be stored"),
        ({"__metadata__": np.zeros(2)}, None, "reserved"),
        ({"x": np.zeros(2, np.float32)}, {"x": "bfloat16"}, "cannot hold bfloat16"),
        ({"x": np.zeros(2, np.float32)}, {"x": "float7"}, "unknown element type"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_no_file(tmp_path, tensors, labels, match):
    with pytest.raises(shards.ShardError, match=match):
        shards.write_shard(tmp_path / "s", tensors, labels)
    assert list(tmp_path.iterdir()) == []


def header_file(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "truncated"),
        (b"\xff" * 8, "truncated"),
        (struct.pack("<Q", 5) + b"{}", "truncated"),
        (struct.pack("<Q", 2) + b"[]", "damaged header"),
        (struct.pack("<Q", 3) + b"{,}", "damaged header"),
        (struct.pack("<Q", 20000) + b"[" * 20000, "damaged header"),
        (header_file({"x": F32}, b"1234567"), "truncated"),
        (header_file({"x": F32}, b"123456789"), "truncated"),
        (header_file({"x": {**F32, "shape": [-2]}}, b"12345678"), "non-negative"),
        (header_file({"x": {**F32, "shape": [True, 2]}}, b"12345678"), "non-negative"),
        (header_file({"x": {**F32, "shape": [2**40, 2**40]}}, b"12345678"), "disagree"),
        (header_file({"x": {**F32, "dtype": "F31"}}, b"12345678"), "unknown element type"),
        (header_file({"x": F32, "y": {**F32, "data_offsets": [4, 12]}}, b"x" * 12), "overlap"),
        (header_file({"x": {**F32, "data_offsets": [4, 12]}}, b"x" * 12), "hole"),
        (header_file({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                      "__metadata__": {shards.METADATA_KEY: '{"x": ["int4", [9]]}'}}, b"1"), "true shape"),
        (header_file({"x": F32, "__metadata__": {shards.METADATA_KEY: '{"x": ["int4", [2]]}'}}, b"12345678"),
         "true and stored"),
    ],
)  # fmt: skip
def test_damaged_and_hostile_files_are_refused(tmp_path, content, match):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(shards.ShardError, match=match):
        shards.read_shard(tmp_path / "s")


@pytest.mark.parametrize("text", [b'["a"]', b"[1]", b"{}", b"x", b"\xff", b"[" * 9000])
def test_damaged_strings_are_refused(tmp_path, text):
    entry = {"dtype": "U8", "shape": [len(text)], "data_offsets": [0, len(text)]}
    metadata = {shards.METADATA_KEY: '{"x": ["string", [2]]}'}
    (tmp_path / "s").write_bytes(header_file({"x": entry, "__metadata__": metadata}, text))
    with pytest.raises(shards.ShardError, match="damaged"):
        shards.read_shard(tmp_path / "s")


def test_a_bool_must_be_zero_or_one(tmp_path):
    entry = {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}
    (tmp_path / "s").write_bytes(header_file({"x": entry}, b"\x02"))
    with pytest.raises(shards.ShardError, match="neither 0 nor 1"):
        shards.read_shard(tmp_path / "s")


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "s"
    shards.write_shard(path, {"x": np.float32([1])})
    with pytest.raises(shards.ShardError):
        shards.write_shard(path, {"x": np.float32([2]), "y": np.zeros(1, "datetime64[s]")})
    assert shards.read_shard(path)["x"].tolist() == [1.0]
    assert [file.name for file in tmp_path.iterdir()] == ["s"]
