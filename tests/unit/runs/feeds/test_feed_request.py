"""What a command takes for real data: files of the user's, and no examples that somebody made up for an export."""

import re

import numpy as np
import pytest

import models
from tensortriage.cli.diagnose import answer
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Origin
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.workflows.requests import DiagnoseRequest


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(3, np.float32))
    return models.write(tmp_path / "m.onnx", "g (float[3] x) => (float[3] y) { y = Add(x, x) }"), tmp_path / "x.npz"


@pytest.mark.parametrize(("made_up", "origin"), [(False, Origin.REAL), (True, Origin.RANDOM)])
def test_files_are_real_unless_they_are_known_to_be_made_up(files, made_up, origin):
    model, path = files
    (feed,) = feeds(FeedRequest(paths=(str(path),), made_up=made_up), Model.load(model))
    assert feed.origin is origin
    assert feed.name == "x.npz[0]"


@pytest.mark.parametrize("real", [False, True])
def test_example_inputs_of_an_export_count_as_random_unless_the_user_says_otherwise(files, monkeypatch, real):
    model, path = files
    monkeypatch.setattr(answer, "export_network", lambda *_, **__: (model, path))
    asked = DiagnoseRequest(model=model, target="onnxruntime", network="torch:net.py:make")
    found = answer.exported_first(asked, "dynamo", real=real)
    assert (found.feeding.paths, found.feeding.made_up) == ((str(path),), not real)
    own = FeedRequest(paths=("mine.npz",))
    given = DiagnoseRequest(model=model, target="onnxruntime", network="torch:net.py:make", feeding=own)
    assert answer.exported_first(given, "dynamo", real=real).feeding == own


def test_files_of_an_ending_of_their_own_are_read_by_who_registers_it(files, tmp_path, monkeypatch):
    """One after the other, each alone; what comes before and behind is read as always."""
    model, path = files
    (tmp_path / "foreign_reader.py").write_text(
        "import numpy as np\nfrom tensortriage.sdk import Feed, Origin\n\n\n"
        "def read(path, specs, limits):\n"
        "    yield Feed(path.name, {specs[0].name: np.zeros(3, np.float32)}, Origin.REAL)\n"
    )
    folder = tmp_path / "foreign-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text("[tensortriage.feeds]\nrec = foreign_reader:read\n")
    monkeypatch.syspath_prepend(tmp_path)
    given = FeedRequest(paths=(str(path), "a.rec", "b.rec", str(path)))
    assert [feed.name for feed in feeds(given, Model.load(model))] == ["x.npz[0]", "a.rec", "b.rec", "x.npz[0]"]


def test_samples_and_what_scripts_yield_are_checked_against_the_model(files, tmp_path):
    model = Model.load(files[0])
    script = tmp_path / "loader.py"
    script.write_text("def load_data():\n    yield {'z': [1.0]}\n")
    given = FeedRequest.of([{"z": [1.0]}]), FeedRequest(paths=(str(script),)), FeedRequest(script=str(script))
    for request, where in zip(given, ("given[0]", "loader.py[0]", "loader.py[0]"), strict=True):
        with pytest.raises(DataError, match=re.escape(f"{where}: 'z' is not an input")) as caught:
            list(feeds(request, model))
        assert caught.value.slug == "feed-input-unknown"


def test_a_loader_that_is_no_script_is_refused(files):
    model, path = files
    with pytest.raises(DataError) as caught:
        list(feeds(FeedRequest(script=str(path)), Model.load(model)))
    assert caught.value.slug == "script-unusable"


def test_a_command_on_the_same_feeds_names_files_and_shapes():
    asked = FeedRequest(paths=("a.npz",), shapes={"x": (1, 3, 20, 20), "s": ()})
    assert asked.words == ("a.npz", "x:[1,3,20,20]", "s:[]")
