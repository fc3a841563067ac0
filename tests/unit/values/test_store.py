import json
from pathlib import Path

import numpy as np
import pytest

from tensortriage.errors import StoreError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import INDEX_NAME, MappedStore, MemoryStore, ShardWriter, stored


def written(folder, tensors, **options):
    with ShardWriter(folder, **options) as writer:
        for name, array in tensors.items():
            writer.write(name, array)
    return MappedStore(folder)


def test_names_keep_the_order_of_writing_across_item_sizes(tmp_path):
    tensors = {"b": np.int8([1]), "a": np.float64([2]), "c": np.int8([3])}
    store = written(tmp_path / "s", tensors)
    assert store.names() == ("b", "a", "c")
    assert [store[name].item() for name in store.names()] == [1, 2, 3]
    assert store.spec("a") == ValueSpec("a", DType.DOUBLE, (1,))
    assert "a" in store
    assert "z" not in store


def test_every_tensor_is_aligned(tmp_path):
    tensors = {f"t{i}": np.ones(3, (np.int8, np.float64, np.float16, np.int32)[i % 4]) for i in range(40)}
    store = written(tmp_path / "s", tensors)
    assert all(store[name].flags.aligned for name in store.names())


def test_a_shard_is_closed_when_it_is_full(tmp_path):
    store = written(tmp_path / "s", {str(i): np.zeros(100, np.float32) for i in range(5)}, shard_bytes=800)
    assert len(list((tmp_path / "s").glob("*.safetensors"))) == 3
    assert len(store.names()) == 5


def test_thousands_of_long_names_spill_into_further_shards(tmp_path):
    tensors = {f"{'n' * 500}{i}": np.float32([i]) for i in range(300)}
    store = written(tmp_path / "s", tensors)
    assert [store[name].item() for name in tensors] == list(range(300))


def test_a_name_longer_than_the_reserved_header_fits(tmp_path):
    name = "x" * 200_000
    assert written(tmp_path / "s", {name: np.float32([1])})[name].item() == 1.0


def test_an_unfinished_folder_is_not_a_store(tmp_path):
    writer = ShardWriter(tmp_path / "s")
    writer.write("x", np.zeros(3))
    with pytest.raises(StoreError) as caught:
        MappedStore(tmp_path / "s")
    assert caught.value.slug == "store-missing"
    writer.abandon()
    assert list((tmp_path / "s").iterdir()) == []


def test_an_exception_while_writing_leaves_no_store(tmp_path):
    def interrupted():
        with ShardWriter(tmp_path / "s") as writer:
            writer.write("x", np.zeros(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(StoreError, match="no finished tensor store"):
        MappedStore(tmp_path / "s")


def test_rewriting_replaces_the_store_and_spares_mapped_readers(tmp_path):
    old = written(tmp_path / "s", {"x": np.full(5000, 1.0), "gone": np.zeros(2)})["x"]
    store = written(tmp_path / "s", {"x": np.full(5000, 2.0)})
    assert old.sum() == 5000
    assert store["x"].sum() == 10000
    assert store.names() == ("x",)


def test_a_duplicate_name_is_refused(tmp_path):
    with ShardWriter(tmp_path / "s") as writer:
        writer.write("x", np.zeros(1))
        with pytest.raises(StoreError) as caught:
            writer.write("x", np.zeros(1))
    assert caught.value.slug == "tensor-duplicate"


def test_a_type_without_onnx_counterpart_is_refused(tmp_path):
    with ShardWriter(tmp_path / "s") as writer, pytest.raises(StoreError) as caught:
        writer.write("x", np.zeros(1, np.longdouble))
    assert caught.value.slug == "tensor-unstorable"


def test_a_file_where_the_folder_should_be_is_a_clear_error(tmp_path):
    (tmp_path / "s").write_text("")
    with pytest.raises(StoreError) as caught:
        ShardWriter(tmp_path / "s")
    assert caught.value.slug == "store-unwritable"


def test_writing_after_the_end_is_refused(tmp_path):
    writer = ShardWriter(tmp_path / "s")
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.write("x", np.zeros(1))


@pytest.mark.parametrize("store", ["mapped", "memory"])
def test_an_unknown_name_is_a_store_error(tmp_path, store):
    tensors = {"x": np.zeros(1)}
    store = written(tmp_path / "s", tensors) if store == "mapped" else MemoryStore(tensors)
    with pytest.raises(StoreError) as caught:
        store["y"]
    assert caught.value.slug == "tensor-missing"


def test_a_memory_store_holds_arrays_as_they_are():
    array = np.zeros((2, 3), np.float16)
    store = MemoryStore({"x": array})
    assert store["x"] is array
    assert store.names() == ("x",)
    assert store.spec("x") == ValueSpec("x", DType.FLOAT16, (2, 3))
    assert "x" in store


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../other"},
        {"file": "/etc/passwd"},
        {"file": "absent.safetensors"},
        {"file": "\0.safetensors"},
        {"dtype": "float7"},
        {"dtype": "int32"},
        {"shape": [3]},
        {"shape": [-1]},
        {"name": "other"},
    ],
)
def test_an_index_that_lies_is_refused(tmp_path, change):
    written(tmp_path / "s", {"x": np.zeros(2, np.float32)})
    path = tmp_path / "s" / INDEX_NAME
    index = json.loads(path.read_text())
    index["tensors"][0] |= change
    path.write_text(json.dumps(index))
    with pytest.raises(StoreError) as caught:
        MappedStore(tmp_path / "s")[index["tensors"][0]["name"]]
    assert caught.value.slug == "store-damaged"
    assert str(tmp_path) in str(caught.value)


def test_a_truncated_shard_is_refused(tmp_path):
    store = written(tmp_path / "s", {"x": np.zeros(2000, np.float32)})
    (shard,) = (tmp_path / "s").glob("*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(StoreError, match="truncated"):
        store["x"]


def mapped_shards():
    """Shard files in this process's address space (Linux: proc(5), /proc/pid/maps)."""
    return {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".safetensors" in line}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_a_shard_is_mapped_only_while_an_array_out_of_it_lives(tmp_path):
    store = written(tmp_path / "s", {str(i): np.zeros(1000) for i in range(8)}, shard_bytes=1)
    kept = store["3"]
    for name in store.names():
        assert store[name].sum() == 0
    assert [Path(file).name for file in mapped_shards() if str(tmp_path) in file] == ["shard-00003.safetensors"]
    assert kept.sum() == 0
    del kept
    assert not [file for file in mapped_shards() if str(tmp_path) in file]


def test_a_store_that_was_replaced_is_noticed(tmp_path):
    store = written(tmp_path / "s", {"x": np.zeros(10)})
    assert store["x"].sum() == 0
    written(tmp_path / "s", {"x": np.zeros(20)})
    with pytest.raises(StoreError, match="replaced"):
        store["x"]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, object])
def test_zeroed_bytes_are_noticed(dtype, tmp_path):
    array = np.array(["a", "b"] * 500, object) if dtype is object else np.ones(1000, dtype)
    with ShardWriter(tmp_path) as writer:
        writer.write("whole", np.arange(10.0))
        writer.write("x", array)
    assert stored(tmp_path) is not None
    (shard,) = [path for path in tmp_path.glob("*.safetensors") if b'"x"' in path.read_bytes()]
    data = bytearray(shard.read_bytes())
    data[-100:] = bytes(100)
    shard.write_bytes(data)
    assert stored(tmp_path) is None
    with pytest.raises(StoreError) as caught:
        MappedStore(tmp_path).verify()
    assert caught.value.slug == "store-damaged"
    assert shard.name in caught.value.message
