"""What is written is plain JSON with base64 of .npy files, and nothing that is not ours is overwritten."""

import base64
import io
import json

import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.files.data_file import Iteration
from tensortriage.inputs.files.polygraphy_write import (
    encode_array,
    new_folder,
    require_ours,
    write_inputs,
    write_outputs,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def decoded(array):
    """Return the array as anyone reads it, and the other fields."""
    fields = json.loads(b"".join(encode_array(array)))
    return np.load(io.BytesIO(base64.b64decode(fields.pop("array"), validate=True))), fields


@pytest.mark.parametrize(
    "array",
    [
        X, X.T, X[:, ::2], np.float32(3), np.zeros((0, 4), np.int64), np.array([True, False]), np.array(["a", "bc"]),
        np.arange((3 << 20) + 5, dtype=np.uint8),
    ],
    ids=["plain", "transposed", "strided", "scalar", "empty", "bool", "text", "pieces"],
)  # fmt: skip
def test_an_array_is_the_base64_of_an_npy_file(array):
    read, fields = decoded(np.asarray(array))
    assert (read.dtype, read.shape) == (np.asarray(array).dtype, np.shape(array))
    np.testing.assert_array_equal(read, array)
    assert list(fields.values()) == ["ndarray"]


def test_pieces_are_of_a_few_megabytes():
    pieces = list(encode_array(np.zeros(10 << 20, np.uint8)))
    assert max(map(len, pieces)) <= 5 << 20


@pytest.mark.parametrize(
    ("dtype", "label", "stored"), [("bfloat16", "bfloat16", np.uint16), ("float8_e4m3fn", "float8_e4m3fn", np.uint8)]
)
def test_a_type_that_numpy_lacks_is_stored_as_its_bits(dtype, label, stored):
    array = np.array([1, -2, 0.5], getattr(ml_dtypes, dtype))
    read, fields = decoded(array)
    assert read.dtype == stored
    np.testing.assert_array_equal(read.view(array.dtype), array)
    assert label in fields.values()


def test_four_bits_are_stored_as_eight():
    read, _ = decoded(np.array([-8, 7], ml_dtypes.int4))
    assert read.dtype == np.int8
    assert read.tolist() == [-8, 7]


def test_a_directory_has_a_file_per_iteration_and_none_of_an_earlier_time(tmp_path):
    folder = tmp_path / "folder"
    assert write_inputs(folder, [Iteration({"x": X})] * 3) == 3
    assert sorted(path.name for path in folder.iterdir()) == [f"{index:010d}.json" for index in range(3)]
    assert write_inputs(folder, [Iteration({"x": X})]) == 1
    assert [path.name for path in folder.iterdir()] == ["0000000000.json"]


def test_a_runner_that_ended_early_is_left_out_of_later_files(tmp_path):
    folder = tmp_path / "folder"
    write_outputs(folder, [("a", [Iteration({"y": X}, 0.5)] * 2), ("b", [Iteration({"y": X})])])
    runners = [[name for name, _ in json.loads(path.read_text())["lst"]] for path in sorted(folder.iterdir())]
    assert runners == [["a", "b"], ["a"]]


def test_a_run_keeps_its_time_and_its_runner(tmp_path):
    write_outputs(tmp_path / "f.json", [("a", [Iteration({"y": X}, 0.5), Iteration({"y": X})])])
    ((name, iterations),) = json.loads((tmp_path / "f.json").read_text())["lst"]
    assert name == "a"
    assert [(row["runtime"], row["runner_name"]) for row in iterations] == [(0.5, "a"), (None, "a")]


@pytest.mark.parametrize("name", ["0000000000.json.bak", "000000000.json", "notes.txt"])
def test_a_directory_with_anything_else_is_not_touched(tmp_path, name):
    (tmp_path / "0000000000.json").write_text("{}")
    (tmp_path / name).write_text("mine")
    with pytest.raises(DataError) as caught:
        new_folder(tmp_path)
    assert caught.value.slug == "output-not-empty"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_in_the_place_of_an_iteration_is_not_ours(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "0000000000.json").symlink_to(tmp_path / "target")
    with pytest.raises(DataError):
        new_folder(tmp_path / "folder")


def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "folder").write_text("mine")
    with pytest.raises(DataError):
        new_folder(tmp_path / "folder")


@pytest.mark.parametrize(("text", "ours"), [("", True), ("  [1]", True), ("{}", True), ("hello", False), ("7", False)])
def test_a_file_without_a_telling_name_is_replaced_where_it_looks_like_json(tmp_path, text, ours):
    (tmp_path / "file").write_text(text)
    if ours:
        require_ours(tmp_path / "file")
    else:
        with pytest.raises(DataError) as caught:
            require_ours(tmp_path / "file")
        assert caught.value.slug == "output-not-data"
