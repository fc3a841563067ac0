"""The files of tests/golden/polygraphy were written by the real Polygraphy 0.53.6 (make.py, which has the values)."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.polygraphy import open_polygraphy
from tensortriage.inputs.files.polygraphy_write import write_inputs, write_outputs

GOLDEN = Path(__file__).parents[3] / "golden/polygraphy"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def same(actual, expected):
    assert list(actual) == list(expected)
    for name, array in expected.items():
        read = actual[name]
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
        assert repr(read.tolist()) == repr(array.tolist())


@pytest.mark.parametrize("name", ["inputs.json", "inputs_dir"])
def test_polygraphys_inputs(name):
    file = open_polygraphy(GOLDEN / name)
    assert file.kind is Kind.INPUTS
    (series,) = file.series
    for _ in range(2):  # A series may be read again.
        iterations = list(series)
        assert len(iterations) == 2
        for k, iteration in enumerate(iterations, start=1):
            same(iteration.tensors, {"x": X * k, "ids": np.array([k, -1])})


@pytest.mark.parametrize("name", ["outputs.json", "outputs_dir"])
def test_polygraphys_outputs_bare_nan_included(name):
    file = open_polygraphy(GOLDEN / name)
    assert file.kind is Kind.OUTPUTS
    assert [series.runner for series in file.series] == ["onnxrt-runner", "trt-runner"]
    for k, iteration in enumerate(file.series[0]):
        assert iteration.seconds == 0.5 + k
        same(iteration.tensors, {"y": X * (k + 1) + np.float32(0.25), "z": np.array([np.nan, np.inf, k])})
    assert [list(it.tensors["z"]) for it in file.series[1]] == [[1, 1, 1]] * 2


@pytest.mark.parametrize("name", ["inputs.json", "inputs_dir", "outputs.json", "outputs_dir"])
def test_what_we_write_is_the_document_that_polygraphy_wrote(tmp_path, name):
    file = open_polygraphy(GOLDEN / name)
    if file.kind is Kind.INPUTS:
        write_inputs(tmp_path / name, file.series[0])
    else:
        write_outputs(tmp_path / name, [(series.runner, series) for series in file.series])
    members = [path.name for path in (GOLDEN / name).iterdir()] if "dir" in name else [""]
    for member in members:
        ours, theirs = ((root / name / member).read_text() for root in (tmp_path, GOLDEN))
        assert repr(json.loads(ours)) == repr(json.loads(theirs))


def test_older_encodings():
    (series,) = open_polygraphy(GOLDEN / "legacy_inputs.json").series
    for iteration in series:
        same(iteration.tensors, {"x": X})
    (series,) = open_polygraphy(GOLDEN / "legacy_outputs.json").series
    assert series.runner == "r"
    (iteration,) = series
    same(iteration.tensors, {"y": X})
    assert iteration.seconds is None


def test_a_single_object_is_one_iteration(tmp_path):
    (first, *_) = json.loads((GOLDEN / "inputs.json").read_text())
    (tmp_path / "one.json").write_text(json.dumps(first))
    (iteration,) = open_polygraphy(tmp_path / "one.json").series[0]
    same(iteration.tensors, {"x": X, "ids": np.array([1, -1])})


TENSORS = {
    "x": X.T,
    'quo"ted/ü': np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 3), np.float16),
    "words": np.array(["a", "bcé"]),
    "bf16": np.array([1.5, np.nan], ml_dtypes.bfloat16),
    "fp8": np.array([[1.5], [-2]], ml_dtypes.float8_e5m2),
    "int4": np.array([-8, 7], ml_dtypes.int4),
}


@pytest.mark.parametrize("name", ["f.json", "folder"])
def test_what_is_written_is_read_back(tmp_path, name):
    iterations = [Iteration(TENSORS), Iteration({"other": X})]
    assert write_inputs(tmp_path / name, iterations) == 2
    assert [p.name for p in tmp_path.iterdir()] == [name]
    read = list(open_polygraphy(tmp_path / name).series[0])
    assert len(read) == 2
    same(read[0].tensors, TENSORS)
    same(read[1].tensors, {"other": X})


@pytest.mark.parametrize("name", ["f.json", "folder"])
def test_outputs_of_unequal_and_equally_named_runners(tmp_path, name):
    series = [("r", [Iteration({"y": X}, 1.0), Iteration({"y": X * 2})]), ("r", [Iteration({"y": X * 3})])]
    assert write_outputs(tmp_path / name, series) == 2
    file = open_polygraphy(tmp_path / name)
    assert [s.runner for s in file.series] == ["r", "r"]
    values = [[float(it.tensors["y"][0, 1]) for it in s] for s in file.series]
    assert values == [[1, 2], [3]]
    assert [it.seconds for it in file.series[0]] == [1.0, None]


def test_a_tensor_larger_than_a_piece_survives(tmp_path):
    large = np.random.default_rng(0).integers(0, 255, 7_000_001, np.uint8)
    write_inputs(tmp_path / "f.json", [Iteration({"x": large})])
    (iteration,) = open_polygraphy(tmp_path / "f.json").series[0]
    np.testing.assert_array_equal(iteration.tensors["x"], large)


def test_a_failing_write_leaves_the_old_file_alone(tmp_path):
    def broken():
        yield Iteration({"x": X})
        raise DataError("stop", slug="stop")

    (tmp_path / "f.json").write_text("old")
    with pytest.raises(DataError):
        write_inputs(tmp_path / "f.json", broken())
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_a_directory_that_holds_something_is_not_written_to(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    with pytest.raises(DataError) as caught:
        write_inputs(tmp_path / "folder", [Iteration({"x": X})])
    assert caught.value.slug == "output-not-empty"


def read_all(path):
    return [dict(iteration.tensors) for series in open_polygraphy(path).series for iteration in series]


def refused(tmp_path, text, slug):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(DataError) as caught:
        read_all(tmp_path / "f.json")
    assert caught.value.slug == slug
    assert "f.json" in caught.value.message


def array(**changes):
    return json.dumps([{"x": {"polygraphy_class": "ndarray", "array": "", **changes}}])


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ('{"replay": {}, "polygraphy_class": "TacticReplayData"}', "polygraphy-not-data"),
        ('{"lst": [], "polygraphy_class": "AccuracyResults"}', "polygraphy-not-data"),
        ('{"polygraphy_class": "RunResults"}', "polygraphy-not-data"),
        ('{"polygraphy_class": "RunResults", "lst": [["r"]]}', "json-invalid"),
        ('{"polygraphy_class": "RunResults", "lst": [["r", [{}]]]}', "json-invalid"),
        ("[[1, 2]]", "polygraphy-not-data"),
        ('[{"x": [1, 2]}]', "polygraphy-not-data"),
        ('[{"x": {"tensor": "gASV", "polygraphy_class": "Tensor"}}]', "polygraphy-torch"),
        (array(array="AAAA"), "npy-unreadable"),
        (array(array="gASVBAAAAAAAAABdlC4="), "npy-unreadable"),
        (array(array="日本"), "npy-unreadable"),
        (array(array="UEsDBAo="), "npz-unreadable"),
        (array(array=7), "json-invalid"),
        (array(array=None), "json-invalid"),
    ],
)
def test_what_is_no_data_is_refused(tmp_path, text, slug):
    refused(tmp_path, text, slug)


def test_damaged_payloads_are_refused(tmp_path):
    text = (GOLDEN / "inputs.json").read_text()
    payload = json.loads(text)[0]["x"]["array"]
    refused(tmp_path, text.replace(payload, payload[:-8]), "npy-unreadable")
    refused(tmp_path, text[:-20], "json-invalid")
    (tmp_path / "t.json").write_text("")
    write_inputs(tmp_path / "t.json", [Iteration({"b": TENSORS["bf16"]})])
    written = (tmp_path / "t.json").read_text()
    refused(tmp_path, written.replace('"bfloat16"', '"float64"'), "npy-unreadable")
    refused(tmp_path, written.replace('"bfloat16"', '"nonsense"'), "npy-unreadable")


def test_a_directory_without_json_files_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        open_polygraphy(tmp_path)
    assert caught.value.slug == "feed-empty"


def test_a_directory_that_mixes_inputs_and_outputs_is_refused(tmp_path):
    shutil.copy(GOLDEN / "outputs_dir/0000000000.json", tmp_path / "0.json")
    shutil.copy(GOLDEN / "inputs_dir/0000000000.json", tmp_path / "1.json")
    with pytest.raises(DataError, match="inputs, where its neighbours hold outputs"):
        list(open_polygraphy(tmp_path).series[0])


@pytest.mark.parametrize(("said", "seconds"), [("0.5", 0.5), ("7", 7.0), (f"1{'0' * 400}", None), ('"soon"', None)])
def test_a_time_that_is_none_is_not_believed(tmp_path, said, seconds):
    path = tmp_path / "outputs.json"
    path.write_text((GOLDEN / "outputs.json").read_text().replace('"runtime": 0.5', f'"runtime": {said}'))
    found = next(iter(open_polygraphy(path).series[0]))
    assert found.seconds == seconds
