"""``triage data``: what is put together, of which kind and whose, and what is said of it; see `combine`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from models import write
from tensortriage.errors import TriageError
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.files.save_data import save
from tensortriage_polygraphy.data_files import data


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two files of inputs and one of outputs of two runners, in the current folder."""
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", x=np.float64([[1.25, 2]]))
    np.savez("b.npz", z=np.float64([[3, 4]]))
    rows = [Iteration({"y": np.float32([number])}) for number in range(2)]
    save(tmp_path / "out.json", [("ort", rows), ("ov", rows[::-1])], kind=Kind.OUTPUTS)
    write(tmp_path / "m.onnx", "g (float[1, 2] x) => (float[1, 2] y) { y = Abs(x) }")
    return tmp_path


def run(*words):
    """Return what comes of a command line of ``triage data`` in this process."""
    return CliRunner().invoke(data, words, standalone_mode=False)


def done(*words):
    """Run a command line that is to work, and return the document that it prints."""
    result = run(*words, "--json")
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def rows(path):
    """Return runner and iterations of every series of a file."""
    found = open_data(path)
    return [(series.runner, [dict(iteration.tensors) for iteration in series]) for series in found.series]


def test_files_are_merged_side_by_side(files):
    told = done("merge", "a.npz", "b.npz", "-o", "both.npz")
    assert (told["kind"], told["iterations"], told["runners"], told["data_format"]) == ("inputs", 1, [], "npz")
    ((_, (only,)),) = rows(files / "both.npz")
    assert sorted(only) == ["x", "z"]
    assert run("to-input", "a.npz", "b.npz", "-o", "old.npz").exception is None  # as Polygraphy called it


def test_outputs_of_one_runner_are_merged_as_inputs(files):
    told = done("merge", "out.json", "--runner", "ov", "-o", "in.json")
    assert (told["kind"], told["iterations"]) == ("inputs", 2)
    ((_, (first, _)),) = rows(files / "in.json")
    assert first["y"] == 1.0


def test_iterations_are_appended(files):
    told = done("concat", "out.json", "out.json", "-o", "both.json")
    assert (told["iterations"], told["runners"]) == (4, ["ort", "ov"])


def test_a_file_is_written_in_another_format(files):
    assert done("convert", "a.npz", "-o", "a", "--to", "json")["data_format"] == "json"
    result = run("convert", "a.npz", "-o", "c.safetensors")
    assert result.output == "wrote c.safetensors: 1 iteration of inputs as safetensors\n"


def test_outputs_become_inputs_and_inputs_become_somebodys_outputs(files):
    done("convert", "out.json", "--runner", "ov", "--as", "inputs", "-o", "in.json")
    assert [(open_data(files / "in.json").kind, runner, len(each)) for runner, each in rows(files / "in.json")] == [
        (Kind.INPUTS, "", 2)
    ]
    done("convert", "a.npz", "--as", "outputs", "-o", "o.json")
    assert [runner for runner, _ in rows(files / "o.json")] == ["a"]
    done("convert", "a.npz", "--as", "outputs", "--runner", "mine", "-o", "p.json")
    assert [runner for runner, _ in rows(files / "p.json")] == ["mine"]


def test_a_file_is_fitted_to_a_model_and_rounded_only_when_told(files):
    np.savez("third.npz", x=np.float64([[1 / 3, 2]]))
    refused = run("convert", "third.npz", "-o", "f.npz", "--model", "m.onnx").exception
    assert isinstance(refused, TriageError)
    done("convert", "third.npz", "-o", "f.npz", "--model", "m.onnx", "--cast")
    ((_, (only,)),) = rows(files / "f.npz")
    assert only["x"].dtype == np.float32
    done("convert", "a.npz", "-o", "g.npz", "--model", "m.onnx")  # 1.25 and 2 are float32 numbers


def test_casting_needs_a_model(files):
    assert "--cast needs --model" in str(run("convert", "a.npz", "-o", "f.npz", "--cast").exception)
