"""Data files that are no files: links to devices, FIFOs, endless links, sizes beyond measure."""

import os

import numpy as np
import pytest

from tensortriage.errors import TriageError
from tensortriage.inputs.feeds import load_feeds
from tensortriage.values import serial
from tensortriage.values.dtype import DType
from tensortriage.values.files import read_regular
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.shards import ShardError, ShardReader

SPECS = [ValueSpec("x", DType.FLOAT, (1, 3))]


def device(path):
    path.symlink_to("/dev/zero")


def fifo(path):
    os.mkfifo(path)


def socket_file(path):
    os.mknod(path, 0o600 | 0o140000)  # S_IFSOCK


def loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [device, fifo, socket_file, loop])
@pytest.mark.parametrize("name", ["data.npz", "data.npy", "data.json", "data.safetensors"])
def test_a_data_file_is_a_regular_file(name, make, tmp_path):
    path = tmp_path / name
    make(path)
    with pytest.raises(TriageError) as caught:
        list(load_feeds([path], SPECS))
    assert caught.value.slug in ("feed-unreadable", "feed-file-missing")
    assert name in caught.value.message


@pytest.mark.parametrize("make", [device, fifo])
@pytest.mark.parametrize("name", ["x.npy", "input_0.pb", "inputs.json"])
def test_so_are_those_of_a_directory(name, make, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    make(folder / name)
    with pytest.raises((TriageError, OSError), match=r"not a regular file|not whole"):
        list(load_feeds([folder], SPECS))


@pytest.mark.parametrize("make", [device, fifo])
def test_shards_and_documents_are_regular_files(make, tmp_path):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(ShardError, match="not a regular file"):
        ShardReader(path)
    with pytest.raises(TriageError, match="not a regular file"):
        serial.load(path, dict)


def test_a_document_of_a_terabyte_is_not_read(tmp_path):
    path = tmp_path / "sparse.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="is the limit"):
        read_regular(path)


def test_a_link_to_data_is_followed(tmp_path):
    np.savez(tmp_path / "real.npz", x=np.ones((1, 3), np.float32))
    (tmp_path / "link.npz").symlink_to("real.npz")
    (feed,) = load_feeds([tmp_path / "link.npz"], SPECS)
    assert feed.tensors["x"].shape == (1, 3)
