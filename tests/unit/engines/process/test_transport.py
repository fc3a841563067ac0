"""Shards and files on their way to a worker, in a shared folder and as chunks on a line to another machine."""

import os
from pathlib import Path

import numpy as np
import pytest

from models import with_external_data
from tensortriage.engines.process import transport
from tensortriage.engines.process.transport import SharedFolder, Wire
from tensortriage.errors import StoreError
from tensortriage.model.model import Model
from tensortriage_worker import exchange
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import ShardError

ITEMS = [Item("x", np.arange(3, dtype=np.float32))]


class Line:
    """A line to a supervisor that keeps files in a folder; ``sent`` are the operations that it was asked for."""

    def __init__(self, there: Path, refusal: str = ""):
        self.there, self.refusal, self.sent, self._answers = there, refusal, [], []

    def send(self, message):
        if isinstance(message, bytes):
            with open(self._place, "ab") as file:
                file.write(message)
            return
        self.sent.append(message)
        if message["op"] == "store":
            self._place = self.there / (message["name"] or f"{len(self.sent)}.safetensors")
            self._place.parent.mkdir(exist_ok=True)
            self._answers += (
                [{"refused": self.refusal}] if self.refusal else [{"storing": str(self._place)}, {"stored": True}]
            )
        elif message["op"] == "fetch":
            path = Path(message["path"])
            if not path.exists():
                self._answers.append({"refused": "gone"})
                return
            data = path.read_bytes()
            self._answers += [{"bytes": len(data)}, data[:10], data[10:]]
        else:
            Path(message["path"]).unlink()

    def receive(self, seconds):
        assert seconds > 0
        return self._answers.pop(0)

    @property
    def stored(self):
        return [message["name"] for message in self.sent if message["op"] == "store"]

    @property
    def removed(self):
        return [message["path"] for message in self.sent if message["op"] == "remove"]


@pytest.fixture
def line(tmp_path):
    (tmp_path / "there").mkdir()
    return Line(tmp_path / "there")


@pytest.fixture
def wire(line):
    made = Wire(line)
    yield made
    made.close()


def test_a_shared_folder_takes_its_own_shards_and_nothing_else(tmp_path):
    shared = SharedFolder((str(tmp_path),))
    (path,) = shared.put(ITEMS)
    assert os.path.dirname(path) == str(tmp_path)
    (found,) = shared.take([path])
    assert found.array.tolist() == [0, 1, 2]
    outside = exchange.put([str(tmp_path.parent)], ITEMS)[0]
    link = tmp_path / "link.safetensors"
    link.symlink_to(outside)
    for lie in (outside, str(link)):
        with pytest.raises(ShardError):
            list(shared.take([lie]))
    assert os.path.exists(outside)
    shared.discard([outside, path])
    assert not os.path.exists(outside)


def test_a_shared_folder_delivers_paths(tmp_path):
    shared = SharedFolder(())
    assert shared.deliver(tmp_path) == shared.deliver_file(tmp_path) == str(tmp_path)
    shared.withdraw(str(tmp_path))
    shared.close()
    assert tmp_path.exists()


def test_no_room_is_an_error_with_a_cure(tmp_path):
    for place in (SharedFolder((str(tmp_path / "absent"),)), SharedFolder(())):
        with pytest.raises((StoreError, FileNotFoundError)) as caught:
            place.put(ITEMS)
        assert (caught.value.slug, caught.value.cure) == ("exchange-full", exchange.NoRoom.cure)


def test_shards_cross_the_wire_and_come_back(wire, line):
    (there,) = wire.put(ITEMS)
    assert Path(there).parent == line.there
    assert os.listdir(wire._folder.name) == []
    (found,) = wire.take([there])
    assert (found.name, found.array.tolist()) == ("x", [0, 1, 2])
    wire.discard([there])
    assert line.removed == [there]
    with pytest.raises(ShardError, match="gone"):
        list(wire.take([there]))


def test_a_full_machine_there(wire, line):
    line.refusal = "no room"
    with pytest.raises(StoreError, match="the worker's machine has no room") as caught:
        wire.put(ITEMS)
    assert caught.value.slug == "exchange-full"
    assert os.listdir(wire._folder.name) == []


def test_a_full_machine_here(wire, tmp_path):
    wire.close()  # its folder is gone
    with pytest.raises(StoreError):
        wire.put(ITEMS)


def test_a_model_travels_with_its_weights(wire, line, tmp_path):
    there = wire.deliver(with_external_data(tmp_path / "here"))
    (weight,) = Model.load(there).ir.graph.initializers.values()
    np.testing.assert_array_equal(weight.const_value.numpy(), np.arange(32, dtype=np.float32).reshape(4, 8))
    assert os.path.basename(there) == "model.onnx"
    assert os.listdir(wire._folder.name) == []


def test_what_is_there_is_not_sent_again_and_what_is_old_is_removed(wire, line, tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "KEPT_FILES", 1)
    files = []
    for number in range(3):
        files.append(tmp_path / str(number) / "data.bin")
        files[-1].parent.mkdir()
        files[-1].write_bytes(bytes([number]))
    first = wire.deliver_file(files[0])
    assert wire.deliver_file(files[0]) == first
    assert len(line.stored) == 1
    second = wire.deliver_file(files[1])
    for place in (first, first, second):
        wire.withdraw(place)
    assert line.removed == [first]  # the older of two that nobody uses
    assert wire.deliver_file(files[1]) == second
    assert wire.deliver_file(files[0]) != first
    files[1].write_bytes(b"changed")
    assert wire.deliver_file(files[1]) != second
