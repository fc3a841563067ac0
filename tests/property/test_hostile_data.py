"""Whatever happens to a data file, reading it ends in data or in an error for people."""

import contextlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.errors import TriageError
from tensortriage.inputs.feeds import load_feeds
from tensortriage.inputs.files.accuracy_results import read_accuracy
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.files.save_data import save
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

GOLDEN = Path(__file__).parents[1] / "golden/polygraphy"
TENSORS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.array(["a", "b"]), "n": np.array(3)}
SPECS = [ValueSpec("x", DType.FLOAT, (2, 3)), ValueSpec("s", DType.STRING, (2,)), ValueSpec("n", DType.INT64, ())]
FILES = {
    "f.npz": "", "f.safetensors": "", "f.store": "index.json", "test_data_set_0": "input_0.pb", "f.json": "",
    "outputs.json": "", "legacy_inputs.json": "", "legacy_outputs.json": "", "accuracy.json": "",
}  # fmt: skip


def read(path):
    if path.name == "accuracy.json":
        read_accuracy(path)
        return
    for specs in ((), SPECS):
        for series in open_data(path, specs).series:
            for iteration in series:
                dict(iteration.tensors)


def damaged(data, seed):
    """Return bytes with one to three bits, bytes or stretches changed, lost or added."""
    generator, data = random.Random(seed), bytearray(data)
    for _ in range(generator.randint(1, 3)):
        place = generator.randrange(len(data) + 1)
        change = generator.randrange(4)
        if change == 0 and place < len(data):
            data[place] ^= 1 << generator.randrange(8)
        elif change == 1:
            del data[place : place + generator.randint(1, 40)]
        elif change == 2:
            data[place:place] = generator.randbytes(generator.randint(1, 10))
        else:
            data = data[:place]
    return bytes(data)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name in FILES:
        if (GOLDEN / name).is_file():
            (folder / name).write_bytes((GOLDEN / name).read_bytes())
        else:
            save(folder / name, [("", [Iteration(TENSORS)])], kind=Kind.INPUTS)
        read(folder / name)
    return folder


@pytest.mark.parametrize("name", FILES)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_is_read_or_refused(originals, name, seed):
    target = originals / name / FILES[name] if FILES[name] else originals / name
    whole = target.read_bytes()
    target.write_bytes(damaged(whole, seed))
    try:
        with contextlib.suppress(TriageError):
            read(originals / name)
    finally:
        target.write_bytes(whole)


def test_a_store_without_series_holds_no_sample(originals, tmp_path):
    shutil.copytree(originals / "f.store", tmp_path / "f.store")
    contents = json.loads((tmp_path / "f.store/series.json").read_text())
    (tmp_path / "f.store/series.json").write_text(json.dumps(contents | {"series": []}))
    with pytest.raises(TriageError) as caught:
        list(load_feeds([tmp_path / "f.store"], SPECS))
    assert caught.value.slug == "feed-empty"
