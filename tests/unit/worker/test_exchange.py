"""Handing tensors over: mapped, unlinked, split, and honest when there is no room."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from tensortriage_worker import exchange
from tensortriage_worker.exchange import Item


def test_what_is_taken_equals_what_was_put_and_no_file_remains(tmp_path):
    arrays = {"a/b": np.arange(6.0).reshape(2, 3).T, "": np.array(3, np.int8), "z": np.zeros((0, 2), np.bool_)}
    paths = exchange.put([str(tmp_path)], [Item(name, array) for name, array in arrays.items()])
    taken = {item.name: item for item in exchange.take(paths)}
    assert list(tmp_path.iterdir()) == []
    assert {name: item.label for name, item in taken.items()} == {"a/b": "float64", "": "int8", "z": "bool"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(taken[name].array, array)


def test_a_mapping_lives_as_long_as_an_array(tmp_path):
    [path] = exchange.put([str(tmp_path)], [Item("a", np.arange(1e6)), Item("b", np.arange(1e6))])
    array = next(iter(exchange.take([path]))).array[10:20]
    gc.collect()
    np.testing.assert_array_equal(array, np.arange(10.0, 20))
    assert not array.flags.writeable


def test_keeping_many_small_results_costs_no_file_descriptors(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    kept = [next(exchange.take(exchange.put([str(tmp_path)], [Item("a", np.arange(9))]))) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert not any(item.array.flags.writeable for item in kept)


def test_large_sets_are_split_and_consumed_one_shard_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "SHARD_BYTES", 1000)
    asked = []

    def items():
        for index in range(10):
            asked.append(index)
            assert len(list(tmp_path.iterdir())) >= index // 2 - 1  # earlier shards are on disk already
            yield Item(str(index), np.full(100, index, np.float32))

    paths = exchange.put([str(tmp_path)], items())
    assert len(paths) == 5
    assert [float(item.array[0]) for item in exchange.take(paths)] == list(range(10))


def test_the_next_folder_is_used_when_the_first_is_full(tmp_path):
    missing = tmp_path / "gone"
    [path] = exchange.put([str(missing), str(tmp_path)], [Item("a", np.zeros(3))])
    assert Path(path).parent == tmp_path


def test_without_room_nothing_remains(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "SHARD_BYTES", 100)

    def items():
        yield Item("a", np.zeros(100))
        monkeypatch.setattr(exchange, "MARGIN_BYTES", 1 << 62)
        yield Item("b", np.zeros(100))

    with pytest.raises(exchange.NoRoom, match="MB free"):
        exchange.put([str(tmp_path)], items())
    assert os.listdir(tmp_path) == []


def test_a_spill_writes_while_tensors_come(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "SPILLED_BYTES", 100)
    spill = exchange.Spill([str(tmp_path)])
    waiting = []
    for number in range(5):
        spill.add(Item(f"t{number}", np.full(8, number, np.float64)))  # 64 bytes
        waiting.append(len(list(tmp_path.iterdir())))
    assert waiting == [0, 1, 1, 2, 2]
    taken = list(exchange.take(spill.close()))
    assert [item.name for item in taken] == [f"t{number}" for number in range(5)]
    assert all((item.array == number).all() for number, item in enumerate(taken))
    assert list(tmp_path.iterdir()) == []


def test_raw_integers_keep_the_type_they_stand_for(tmp_path):
    paths = exchange.put([str(tmp_path)], [Item("a", np.array([0x3FC0], np.uint16), "bfloat16")])
    [item] = exchange.take(paths)
    assert item.label == "bfloat16"
    assert float(item.array.astype(np.float32)[0]) == 1.5  # 0x3FC0 is 1.5: sign 0, exponent 127, fraction .1
