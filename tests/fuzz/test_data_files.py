"""Whatever a data file holds, reading it ends in data or in an error with slug and cure."""

import time
import traceback

import pytest
from hypothesis import given

from hostile import mutated_files
from hostile.command_lines import DATA_WRITTEN, data_command
from hostile.fork_server import SECONDS
from hostile.originals import model_files
from hostile.tally import SEEDS, fuzzed
from tensortriage.errors import TriageError
from tensortriage.inputs.feeds import load_feeds
from tensortriage.inputs.files.accuracy_results import read_accuracy
from tensortriage.inputs.files.open_data import open_data
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

SPECS = [ValueSpec("x", DType.FLOAT, ("N", 4)), ValueSpec("n", DType.INT64, ()), ValueSpec("h", DType.FLOAT16, (3,))]


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read(path):
    """Read a file in every way that a command does."""
    if "accuracy" in path.name:
        return read_accuracy(path)
    for series in open_data(path, SPECS).series:
        for iteration in series:
            dict(iteration.tensors)
    return list(load_feeds([path], SPECS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@given(seed=SEEDS)
@fuzzed(400)
def test_a_mutated_file_is_read_or_refused(folder, tally, seed):
    name, files = mutated_files.data(seed)
    write(folder, files)
    started = time.monotonic()
    kind = name.rpartition(".")[2]
    try:
        read(folder / name)
        tally.add("data file", kind, "read")
    except TriageError as error:
        tally.add("data file", kind, error.slug)
        if not (error.slug and error.message):
            tally.find(seed, "no slug, or no message")
    except Exception:
        tally.find(seed, f"{name}: {traceback.format_exc()}")
    if time.monotonic() - started > SECONDS:
        tally.find(seed, f"{name}: more than {SECONDS:g} s")


@given(seed=SEEDS)
@fuzzed(20)
def test_a_command_about_a_mutated_file(commands, tally, seed):
    name, files = mutated_files.data(seed)
    words = data_command(seed, name)
    ended = commands.run(words, {**files, "m.onnx": model_files()["mlp"]})
    tally.add("data command", words[0], ended.slug)
    faults = ended.faults(DATA_WRITTEN)
    if faults:
        tally.find(seed, f"triage {' '.join(words)}: {faults}\n{ended.err[-3000:]}")
