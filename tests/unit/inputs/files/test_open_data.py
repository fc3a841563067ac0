"""Which format a path holds, by name and first bytes, and what each reader gives."""

import numpy as np
import onnx
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.files.data_file import DataFormat, Kind
from tensortriage.inputs.files.open_data import detect, open_data
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import ShardWriter

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
X = ValueSpec("x", None, (2, 3))


def written(folder, name, contents=b""):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".npy"):
        np.save(path, ARRAY)
    elif name.endswith(".npz"):
        np.savez(path, x=ARRAY)
    elif name.endswith(".pb"):
        path.write_bytes(onnx.numpy_helper.from_array(ARRAY, contents.decode()).SerializeToString())
    else:
        path.write_bytes(contents)
    return path


def only(file):
    (series,) = file.series
    (iteration,) = series
    return {name: np.asarray(array) for name, array in iteration.tensors.items()}


@pytest.mark.parametrize(
    ("name", "contents", "expected"),
    [
        ("a.npy", b"", DataFormat.NPY),
        ("a.NPZ".lower(), b"", DataFormat.NPZ),
        ("a.json", b"{}", DataFormat.POLYGRAPHY),
        ("outputs", b"  [1]", DataFormat.POLYGRAPHY),  # whatever a file is called
        ("a.safetensors", b"\0" * 8, DataFormat.SAFETENSORS),
    ],
)
def test_a_format_by_name_and_contents(tmp_path, name, contents, expected):
    path = written(tmp_path, name, contents)
    assert detect(path) is expected


@pytest.mark.parametrize(
    ("name", "contents", "slug"),
    [
        ("missing.npz", None, "feed-file-missing"),
        ("a.pkl", b"{not json", "feed-format-unknown"),
        ("a.onnx", b"", "feed-format-unknown"),
        ("a.txt", b"words", "feed-format-unknown"),
        ("a.npz", b"\x93NUMPY", "feed-format-mismatch"),
    ],
)
def test_what_is_refused(tmp_path, name, contents, slug):
    path = tmp_path / name
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(DataError) as raised:
        detect(path)
    assert raised.value.slug == slug


def test_a_lone_array_is_the_only_input_and_else_named_after_its_file(tmp_path):
    path = written(tmp_path, "a%2Fb.npy")
    assert only(open_data(path, [X])).keys() == {"x"}
    assert only(open_data(path)).keys() == {"a/b"}


def test_folders_of_samples_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in ("10", "2"):
        written(tmp_path, f"{number}/x.npy")
        np.save(tmp_path / number / "n.npy", np.float32([float(number)]))
    file = open_data(tmp_path, [X])
    assert file.format is DataFormat.NPY
    assert [iteration.tensors["n"].tolist() for iteration in file.series[0]] == [[2.0], [10.0]]


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_a_folder_of_files_has_a_sample_or_more_in_each(tmp_path, suffix):
    """In the order of their names; a file of one array without a name has the only input."""
    for name in ("b", "a"):
        (np.save if suffix == ".npy" else np.savez)(tmp_path / name, ARRAY + (name == "b"))
    (tmp_path / "README.md").write_text("of 2 samples")
    file = open_data(tmp_path, [X])
    assert file.format.value == suffix[1:]
    found = [iteration.tensors["x"] for iteration in file.series[0]]
    np.testing.assert_array_equal(found, [ARRAY, ARRAY + 1])
    assert {name for iteration in open_data(tmp_path).series[0] for name in iteration.tensors} == (
        {"arr_0"} if suffix == ".npz" else {"a", "b"}
    )


def test_a_folder_of_archives_streams_the_samples_of_each_and_other_kinds_come_first(tmp_path):
    for name in ("1", "0"):
        np.savez(tmp_path / name, x=np.stack([ARRAY, ARRAY]) * int(name))
    found = [float(iteration.tensors["x"].max()) for iteration in open_data(tmp_path, [X]).series[0]]
    assert found == [0.0, 0.0, 5.0, 5.0]
    written(tmp_path, "x.npy")
    assert detect(tmp_path) is DataFormat.NPY


def test_a_folder_of_two_formats_is_ambiguous_and_one_of_none_holds_no_feeds(tmp_path):
    written(tmp_path, "two/x.npy")
    written(tmp_path, "two/x.json", b"{}")
    (tmp_path / "none").mkdir()
    for name, word in (("two", ".json and .npy"), ("none", "no feeds")):
        with pytest.raises(DataError) as raised:
            detect(tmp_path / name)
        assert (raised.value.slug, word in raised.value.message) == ("feed-format-unknown", True)


def test_test_data_sets_take_the_names_of_their_tensors_or_of_the_inputs(tmp_path):
    written(tmp_path, "test_data_set_1/input_0.pb", b"named")
    written(tmp_path, "test_data_set_0/input_0.pb")
    file = open_data(tmp_path, [X])
    assert (file.format, file.kind) == (DataFormat.TEST_DATA, Kind.INPUTS)
    assert [list(iteration.tensors) for iteration in file.series[0]] == [["x"], ["named"]]
    assert np.array_equal(only(open_data(tmp_path / "test_data_set_1"))["named"], ARRAY)


@pytest.mark.parametrize("names", [["input_1.pb"], ["input_0.pb", "input_1.pb"]], ids=["gap", "twice"])
def test_a_test_data_set_that_is_not_whole(tmp_path, names):
    for name in names:
        written(tmp_path, name, b"same")
    with pytest.raises(DataError) as raised:
        only(open_data(tmp_path))
    assert raised.value.slug == "test-data-incomplete"


def test_a_store_gives_its_tensors_with_their_shapes(tmp_path):
    with ShardWriter(tmp_path / "store") as writer:
        writer.write("x", ARRAY)
    file = open_data(tmp_path / "store", [X])
    assert file.format is DataFormat.STORE
    assert np.array_equal(only(file)["x"], ARRAY)
