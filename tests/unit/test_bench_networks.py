"""The table of networks: what is requested by sets, tags and names, and what is written."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def networks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("networks")
    for name in [name for name in sys.modules if name.partition(".")[0] == "networks"]:
        del sys.modules[name]


def test_networks_are_found_by_set_tag_and_name(networks):
    assert networks.names("heldout", "rnn") == ["heldout/tagger"]
    assert networks.names("gpu/mask") == networks.names("gpu", "mask") == ["gpu/mask"]
    assert networks.names("no such word") == []
    assert networks.names() == list(networks.TAGS)
    assert networks.short(networks.names("qdq")) == ["convnext-qdq", "unet-qdq", "bert-qdq", "audio-qdq"]


def test_files_of_one_folder_have_names_of_their_own(networks):
    for word in ("reduce", "heldout", "gpu", "known"):
        chosen = networks.short(networks.names(word))
        assert len(set(chosen)) == len(chosen)


@pytest.mark.parametrize("name", ["digits/digits_cnn", "testing/quantized", "gpu/overflowing"])
def test_a_network_is_the_same_every_time_and_takes_its_inputs(networks, name, tmp_path):
    feed = networks.network(name).write(tmp_path / "first.onnx")
    again = networks.network(name).write(tmp_path / "second.onnx")
    assert (tmp_path / "first.onnx").read_bytes() == (tmp_path / "second.onnx").read_bytes()
    assert all(np.array_equal(array, again[key]) for key, array in feed.items())
    assert [*feed] == [value.name for value in onnx.load(tmp_path / "first.onnx").graph.input]


def test_a_name_that_is_not_in_the_table_is_an_error(networks):
    with pytest.raises(KeyError, match="corpus/nothing"):
        networks.network("corpus/nothing")


def test_the_command_writes_what_is_not_there_yet(tmp_path):
    command = [sys.executable, str(BENCH / "networks"), str(tmp_path), "digits", "--numbered"]
    subprocess.run(command, check=True, capture_output=True)
    names = ["00_digits_cnn.npz", "00_digits_cnn.onnx", "01_digits_vit.npz", "01_digits_vit.onnx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    (tmp_path / names[1]).write_bytes(b"mine")
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / names[1]).read_bytes() == b"mine"
