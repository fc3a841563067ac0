import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import DataError, StoreError, UsageError
from tensortriage.inputs.files.data_file import DataFormat, Iteration, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.files.save_data import check_place, format_for, save, save_store

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FIRST = {"x:0": X.T, "a/b": np.array(3), "s": np.array(["é", ""]), "e": np.zeros((0, 2), np.float16)}
SECOND = {"x:0": X[:1], "a/b": np.array(4), "s": np.array([["z"]]), "e": np.zeros((1, 0), np.float16)}
SMALL = {"b": np.array([1.5, np.nan], ml_dtypes.bfloat16), "i": np.array([-8, 7], ml_dtypes.int4)}

PLACES = ["f.npz", "f.json", "f.safetensors", "f.store", "folder", "test_data_set", "test_data_set_0"]


def read(path, place=0):
    return [dict(iteration.tensors) for iteration in open_data(path).series[place]]


def same(actual, expected):
    assert sorted(actual) == sorted(expected)
    for name, array in expected.items():
        value = actual[name]
        assert value.shape == array.shape
        assert repr(value.tolist()) == repr(array.tolist())
        assert value.dtype.kind in "OU" if array.dtype.kind in "OU" else value.dtype == array.dtype


@pytest.mark.parametrize("samples", [[FIRST], [FIRST, SECOND], [{"0/x": X}]], ids=["one", "two", "numbered"])
@pytest.mark.parametrize("place", [*PLACES, "npy"])
def test_what_is_saved_is_opened_again(tmp_path, place, samples):
    wanted = DataFormat.NPY if place == "npy" else None
    path = tmp_path / "deep" / place
    assert save(path, [("", map(Iteration, samples))], kind=Kind.INPUTS, wanted=wanted) == len(samples)
    found = read(path)
    assert len(found) == len(samples)
    for actual, expected in zip(found, samples, strict=True):
        same(actual, expected)
    assert [entry.name for entry in path.parent.iterdir()] == [place]


@pytest.mark.parametrize("place", ["f.json", "f.safetensors", "f.store", "folder", "test_data_set_0"])
def test_small_types_survive(tmp_path, place):
    save(tmp_path / place, [("", [Iteration(SMALL)])], kind=Kind.INPUTS)
    same(read(tmp_path / place)[0], SMALL)


@pytest.mark.parametrize(("place", "wanted"), [("f.npz", None), ("folder", DataFormat.NPY)])
def test_formats_that_would_lose_a_type_refuse_it(tmp_path, place, wanted):
    with pytest.raises(DataError) as caught:
        save(tmp_path / place, [("", [Iteration(SMALL)])], kind=Kind.INPUTS, wanted=wanted)
    assert caught.value.slug == "format-lacks-dtype"
    assert not (tmp_path / "f.npz").exists()


@pytest.mark.parametrize("place", ["f.json", "folder", "f.store"])
def test_runners_and_times_survive(tmp_path, place):
    runs = [("r", [Iteration({"y": X}, 0.5), Iteration({"y": X + 1})]), ("r", [Iteration({"y": X + 2}, 1.5)])]
    assert save(tmp_path / place, runs, kind=Kind.OUTPUTS) == 2
    file = open_data(tmp_path / place)
    assert (file.kind, [series.runner for series in file.series]) == (Kind.OUTPUTS, ["r", "r"])
    assert [[(it.seconds, it.tensors["y"][0, 0]) for it in series] for series in file.series] == [
        [(0.5, 0), (None, 1)],
        [(1.5, 2)],
    ]


def test_several_runners_need_a_format_that_has_them(tmp_path):
    with pytest.raises(DataError) as caught:
        save(tmp_path / "f.npz", [("a", [Iteration(FIRST)]), ("b", [Iteration(FIRST)])], kind=Kind.OUTPUTS)
    assert caught.value.slug == "several-runners"
    assert "'a', 'b'" in caught.value.cure


def test_outputs_of_test_data_are_named_so(tmp_path):
    save(tmp_path / "test_data_set_0", [("r", [Iteration({"y": X})])], kind=Kind.OUTPUTS)
    assert [entry.name for entry in (tmp_path / "test_data_set_0").iterdir()] == ["output_0.pb"]


def test_numpy_reads_our_archives(tmp_path):
    save(tmp_path / "f.npz", [("", [Iteration(FIRST)])], kind=Kind.INPUTS)
    with np.load(tmp_path / "f.npz") as loaded:
        same(dict(loaded), FIRST)
    assert zipfile.ZipFile(tmp_path / "f.npz").testzip() is None


@pytest.mark.parametrize("place", PLACES)
def test_nothing_to_write_is_an_error(tmp_path, place):
    with pytest.raises(DataError) as caught:
        save(tmp_path / place, [("", [])], kind=Kind.INPUTS)
    assert caught.value.slug == "feed-empty"


@pytest.mark.parametrize("place", ["folder", "test_data_set_0", "f.store"])
def test_directories_that_hold_something_are_left_alone(tmp_path, place):
    (tmp_path / place).mkdir()
    (tmp_path / place / "mine.txt").write_text("mine")
    with pytest.raises(DataError) as caught:
        save(tmp_path / place, [("", [Iteration(FIRST)])], kind=Kind.INPUTS)
    assert caught.value.slug == "output-not-empty"
    assert [entry.name for entry in (tmp_path / place).iterdir()] == ["mine.txt"]


def test_a_store_replaces_a_store(tmp_path):
    save_store(tmp_path / "s", [("r", [Iteration(FIRST), Iteration(SECOND)])])
    save_store(tmp_path / "s", [("", [Iteration(SMALL)])])
    same(read(tmp_path / "s")[0], SMALL)
    assert open_data(tmp_path / "s").kind is Kind.INPUTS


@pytest.mark.parametrize(
    ("path", "wanted", "expected"),
    [
        ("a.JSON", None, DataFormat.POLYGRAPHY),
        ("a", None, DataFormat.POLYGRAPHY),
        ("a/test_data_set_3", None, DataFormat.TEST_DATA),
        ("a", DataFormat.NPY, DataFormat.NPY),
        ("v1.2", DataFormat.NPY, DataFormat.NPY),
        ("a", DataFormat.STORE, DataFormat.STORE),
    ],
)
def test_the_path_names_the_format(path, wanted, expected):
    assert format_for(Path(path), wanted) is expected


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a.csv", None),
        ("a.npz", DataFormat.POLYGRAPHY),
        ("a.json", DataFormat.NPY),
        ("a", DataFormat.NPZ),
        ("a.x", DataFormat.NPZ),
    ],
)
def test_contradictions_are_refused(path, wanted):
    with pytest.raises(UsageError) as caught:
        format_for(Path(path), wanted)
    assert caught.value.slug == "output-format"


class FullDiskError(OSError):
    """What a full disk raises."""


def two_then_full():
    """Yield two iterations; then the disk is full."""
    yield from (Iteration(FIRST), Iteration(SECOND))
    raise FullDiskError(28, "No space left on device")


@pytest.mark.parametrize("place", [*PLACES, "npy"])
def test_nothing_is_left_of_what_does_not_fit(tmp_path, place):
    wanted = DataFormat.NPY if place == "npy" else None
    with pytest.raises(StoreError) as caught:
        save(tmp_path / place, [("", two_then_full())], kind=Kind.INPUTS, wanted=wanted)
    assert caught.value.slug == "file-unwritable"
    assert str(tmp_path / place) in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "runners", "slug"),
    [("f.npz", ["a", "b"], "several-runners"), ("f.onnx", ["a"], "output-format"), (".", ["a"], "output-not-empty")],
)
def test_places_are_refused_before_there_is_anything_to_save(tmp_path, place, runners, slug):
    (tmp_path / "old").write_text("")
    with pytest.raises((DataError, UsageError)) as caught:
        check_place(tmp_path / place, runners, kind=Kind.OUTPUTS)
    assert caught.value.slug == slug


ONE = [("runner", [Iteration({"y": np.arange(3.0)})])]


@pytest.mark.parametrize("name", ["a.json", "a.tmp", "plain", "folder"])
def test_what_was_written_before_is_overwritten(tmp_path, name):
    path = tmp_path / name
    if name == "plain":
        path.touch()  # a temporary file that the caller made
    for turn in range(2):
        save(path, [("runner", [Iteration({"y": np.arange(3.0) + turn})])], kind=Kind.OUTPUTS)
    assert path.is_dir() == (name == "folder")
    (series,) = open_data(path).series
    assert [list(iteration.tensors["y"]) for iteration in series] == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("content", [b"\x7fELF", b"text"])
def test_a_foreign_file_of_unknown_suffix_is_kept(tmp_path, content):
    path = tmp_path / "a.tmp"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        save(path, ONE, kind=Kind.OUTPUTS)
    assert caught.value.slug == "output-not-data"
    assert path.read_bytes() == content


def test_a_directory_with_foreign_files_is_kept(tmp_path):
    save(tmp_path / "d", ONE, kind=Kind.OUTPUTS)
    (tmp_path / "d/notes.txt").write_text("mine")
    with pytest.raises(DataError) as caught:
        save(tmp_path / "d", ONE, kind=Kind.OUTPUTS)
    assert caught.value.slug == "output-not-empty"
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["0000000000.json", "notes.txt"]
