"""What goes into a store comes out bit by bit, whatever its type and layout; no damaged file ends in a traceback."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.arrays import arrays, layouts, same_bits
from tensortriage.errors import StoreError
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import INDEX_NAME, MappedStore, MemoryStore, ShardWriter
from tensortriage_worker import shards

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(lambda n: n != "__metadata__")


@given(st.data(), st.dictionaries(NAMES, arrays(), max_size=8), st.sampled_from([1, 64, 10**6]))
@settings(max_examples=50, deadline=None)
def test_a_store_returns_what_was_written(data, tensors, shard_bytes):
    with tempfile.TemporaryDirectory() as folder:
        with ShardWriter(Path(folder) / "store", shard_bytes=shard_bytes) as writer:
            for name, array in tensors.items():
                writer.write(name, data.draw(layouts(array)))
        store = MappedStore(Path(folder) / "store")
        assert list(store.names()) == list(tensors)
        for name, array in tensors.items():
            assert same_bits(store[name], array)
            assert store.spec(name) == ValueSpec.of(name, array)
            assert not store[name].flags.writeable
            assert store.checksum(name) == MemoryStore(tensors).checksum(name)


@given(st.dictionaries(NAMES, arrays(), min_size=1, max_size=4), st.data())
@settings(max_examples=80, deadline=None)
def test_a_damaged_shard_is_refused_or_still_right(tensors, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.safetensors"
        shards.write_shard(path, tensors)
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            content = content[: data.draw(st.integers(0, len(content) - 1))]
        else:
            place = data.draw(st.integers(0, min(len(content) - 1, 200)))
            content[place] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        try:
            found = shards.read_shard(path)
        except shards.ShardError:
            return
        # A change that is not noticed may concern a name, a type of the same size or the values; it adds no tensor.
        assert len(found) <= len(tensors)


HEADERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "BF16", "X"]) | HEADERS,
        "shape": st.lists(st.integers(-1, 2**70), max_size=3) | HEADERS,
        "data_offsets": st.lists(st.integers(-1, 2**65), min_size=2, max_size=2) | HEADERS,
    }
)
LOGICAL = st.dictionaries(st.sampled_from(["a", "b"]), st.tuples(st.sampled_from(["int4", "string", "x"]), HEADERS))


@given(
    st.dictionaries(st.sampled_from(["a", "b"]), ENTRIES, max_size=2) | HEADERS,
    st.none() | HEADERS | st.builds(lambda value: {shards.METADATA_KEY: json.dumps(value)}, LOGICAL | HEADERS),
    st.binary(max_size=40),
)
@settings(max_examples=150, deadline=None)
def test_hostile_headers_give_a_store_error(header, metadata, content):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if isinstance(header, dict) and metadata is not None:
            header = {"__metadata__": metadata, **header}
        text = json.dumps(header).encode()
        (folder / "s.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)
        item = {"name": "a", "dtype": "float32", "shape": [2], "file": "s.safetensors", "crc32": 0}
        (folder / INDEX_NAME).write_text(json.dumps({"tensors": [item], "format": "tensortriage.store/1"}))
        try:
            array = MappedStore(folder)["a"]
        except StoreError as error:
            array, slug = None, error.slug
        assert slug == "store-damaged" if array is None else array.shape == (2,)


@given(HEADERS | st.lists(st.dictionaries(st.sampled_from(["name", "dtype", "shape", "file"]), HEADERS)))
@settings(max_examples=150, deadline=None)
def test_a_hostile_index_gives_a_store_error(tensors):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / INDEX_NAME).write_text(json.dumps({"tensors": tensors, "format": "tensortriage.store/1"}))
        try:
            store = MappedStore(Path(folder))
        except StoreError:
            return
        for name in store.names():
            with pytest.raises(StoreError):
                store[name]


def test_scalars_and_empty_arrays_keep_their_shape(tmp_path):
    with ShardWriter(tmp_path / "s") as writer:
        writer.write("scalar", np.float32(1.5))
        writer.write("empty", np.zeros((0, 3), np.int64))
    store = MappedStore(tmp_path / "s")
    assert store["scalar"].shape == ()
    assert store["empty"].shape == (0, 3)
