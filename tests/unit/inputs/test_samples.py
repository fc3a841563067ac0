"""Feeds that are given in Python."""

import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.conform import check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.samples import Samples, sample_feeds, samples_of
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

SPECS = [ValueSpec("x", DType.FLOAT, ("n", 2)), ValueSpec("y", DType.INT64, (1,))]
NAMES = [spec.name for spec in SPECS]
X, Y = np.ones((3, 2), np.float32), np.array([4])


class Tensor:
    """What PyTorch's tensors have of a tensor's methods."""

    def __init__(self, array):
        self._array = array

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self._array


def fed(given):
    return [check_feed(feed, SPECS).tensors for feed in sample_feeds(samples_of(given), NAMES)]


@pytest.mark.parametrize(
    "given",
    [
        {"x": X, "y": Y},
        [{"x": X.tolist(), "y": [4]}],
        [(X, Y, "label")],
        iter([{"y": Tensor(Y), "x": Tensor(X)}]),
        Feed("mine", {"x": X, "y": Y}, Origin.REAL),
    ],
)
def test_a_sample_is_a_feed(given):
    (found,) = fed(given)
    assert list(found) == ["x", "y"]
    np.testing.assert_array_equal(found["x"], X)
    assert found["y"].dtype == np.int64


def test_a_loader_that_shuffles_gives_the_same_samples_again():
    rng = np.random.default_rng()
    samples = Samples({"x": rng.random((1, 2), np.float32), "y": Y} for _ in range(3))
    first, again = list(sample_feeds(samples, NAMES)), list(sample_feeds(samples, NAMES))
    assert [feed.digest for feed in first] == [feed.digest for feed in again]
    assert len({feed.digest for feed in first}) == 3


def test_no_more_is_read_than_is_used():
    read = []
    samples = Samples(read.append(number) or {"x": X, "y": Y} for number in range(9))
    next(sample_feeds(samples, NAMES))
    assert len(read) == 1


def test_paths_are_paths(tmp_path):
    assert samples_of("a.npz") == ("a.npz",)
    assert samples_of([tmp_path / "a.npz", "b.npz"]) == (str(tmp_path / "a.npz"), "b.npz")


@pytest.mark.parametrize("given", [3, b"a.npz", None, 1.5])
def test_what_is_no_feed_is_a_type_error_with_a_cure(given):
    with pytest.raises(TypeError, match="give inputs as a dict from input name to array"):
        samples_of(given)


@pytest.mark.parametrize("given", [[3], ["a.npz", X], [{"x": object(), "y": Y}], [(X,)]])
def test_a_sample_that_is_no_feed_is_told_by_its_number(given):
    with pytest.raises(DataError, match="sample"):
        fed(given)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ([(X, Y, 7)], {"labels": 7}),
        ([(X, Y, Tensor(np.arange(3)), "a.jpg")], {"labels": [0, 1, 2]}),
        ([(X, Y, {"boxes": np.zeros((1, 4)), "labels": [3]})], {"boxes": [[0, 0, 0, 0]], "labels": [3]}),
        ([(X, Y, [{"labels": [3]}])], {"labels": [3]}),
        ([({"x": X, "y": Y}, [1])], {"labels": [1]}),
        ([{"x": X, "y": Y, "label": [1]}], {"label": [1]}),
        ([(X, Y, ["cat", "dog"])], {}),  # names are no numbers
    ],
)
def test_labels_come_behind_the_inputs_or_by_another_name(given, labels):
    feed = check_feed(*sample_feeds(samples_of(given), NAMES), SPECS)
    assert list(feed.tensors) == ["x", "y"]
    assert {name: np.asarray(array).tolist() for name, array in feed.labels.items()} == labels


@pytest.mark.parametrize("shuffles", [True, False])
def test_a_loader_that_shuffles_is_told_as_one(shuffles, caplog):
    """PyTorch's DataLoader has a sampler of this class where it shuffles."""
    kind = type("RandomSampler" if shuffles else "SequentialSampler", (), {})
    loader = type("Loader", (list,), {"sampler": kind()})([{"x": np.zeros(2)}])
    samples_of(loader)
    assert ("sees other batches" in caplog.text) is shuffles
