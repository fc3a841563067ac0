import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import DataError, StoreError
from tensortriage.inputs.feed import Origin
from tensortriage.inputs.feeds import FeedSource, load_feeds
from tensortriage.inputs.files.data_file import Iteration
from tensortriage.inputs.files.polygraphy_write import write_inputs, write_outputs
from tensortriage.model.io.tensor_pb import write_tensor
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import ShardWriter
from tensortriage_worker.shards import write_shard

SPECS = [ValueSpec("x", DType.FLOAT, ("n", 3)), ValueSpec("a/b", DType.INT64, ())]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def sample(k):
    return {"x": X + k, "a/b": np.array(k)}


def numbered(count):
    return {f"{k}/{name}": array for k in range(count) for name, array in sample(k).items()}


def stacked(count):
    return {name: np.stack([sample(k)[name] for k in range(count)]) for name in sample(0)}


def npy_folder(path, tensors):
    path.mkdir(parents=True)
    for name, array in tensors.items():
        np.save(path / (name.replace("/", "%2F") + ".npy"), array)


def write_set(path, tensors, names=True):
    path.mkdir(parents=True)
    for index, (name, array) in enumerate(tensors.items()):
        write_tensor(path / f"input_{index}.pb", name if names else "", array)
    write_tensor(path / "output_0.pb", "y", X)


def store(path, tensors):
    with ShardWriter(path) as writer:
        for name, array in tensors.items():
            writer.write(name, array)


MAKERS = {
    "numbered.npz": lambda path: np.savez(path, **numbered(3)),
    "stacked.npz": lambda path: np.savez_compressed(path, **stacked(3)),
    "numbered.safetensors": lambda path: write_shard(path, numbered(3)),
    "stacked.safetensors": lambda path: write_shard(path, stacked(3)),
    "inputs.json": lambda path: write_inputs(path, [Iteration(sample(k)) for k in range(3)]),
    "inputs": lambda path: write_inputs(path, [Iteration(sample(k)) for k in range(3)]),
    "arrays": lambda path: npy_folder(path, stacked(3)),
    "samples": lambda path: [npy_folder(path / str(k), sample(k)) for k in range(3)],
    "sets": lambda path: [write_set(path / f"test_data_set_{k}", sample(k)) for k in range(3)],
    "unnamed": lambda path: [write_set(path / f"test_data_set_{k}", sample(k), names=False) for k in range(3)],
    "store": lambda path: store(path, numbered(3)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_three_samples_of_every_format(tmp_path, name):
    MAKERS[name](tmp_path / name)
    source = FeedSource([tmp_path / name], SPECS)
    for _ in range(2):
        feeds = list(source)
        assert [feed.name for feed in feeds] == [f"{name}[{k}]" for k in range(3)]
        for k, feed in enumerate(feeds):
            assert feed.origin is Origin.REAL
            assert list(feed.tensors) == ["x", "a/b"]
            np.testing.assert_array_equal(feed.tensors["x"], X + k)
            assert feed.tensors["a/b"].tolist() == k


ONE = {
    "f.npz": lambda path: np.savez(path, **sample(7)),
    "f.safetensors": lambda path: write_shard(path, sample(7)),
    "f.json": lambda path: write_inputs(path, [Iteration(sample(7))]),
    "f": lambda path: npy_folder(path, sample(7)),
    "test_data_set_0": lambda path: write_set(path, sample(7)),
    "store": lambda path: store(path, sample(7)),
}


@pytest.mark.parametrize("name", ONE)
def test_one_sample_of_every_format(tmp_path, name):
    ONE[name](tmp_path / name)
    (feed,) = load_feeds([tmp_path / name], SPECS)
    np.testing.assert_array_equal(feed.tensors["x"], X + 7)


def test_a_lone_array_is_the_only_input(tmp_path):
    np.save(tmp_path / "image.npy", X)
    (feed,) = load_feeds([tmp_path / "image.npy"], SPECS[:1])
    np.testing.assert_array_equal(feed.tensors["x"], X)
    np.save(tmp_path / "images.npy", np.stack([X, X + 1]))
    assert len(list(load_feeds([tmp_path / "images.npy"], SPECS[:1]))) == 2


def test_several_paths_follow_each_other_and_names_stay_unique(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "f.npz", **numbered(2))
    feeds = list(load_feeds([tmp_path / "a/f.npz", tmp_path / "b/f.npz"], SPECS))
    assert [feed.name for feed in feeds] == [f"{tmp_path}/{p}/f.npz[{k}]" for p in "ab" for k in range(2)]


def test_reading_stops_where_the_consumer_stops(tmp_path):
    write_inputs(tmp_path / "many", [Iteration(sample(k)) for k in range(3)])
    (tmp_path / "many" / "0000000002.json").write_text("damaged")
    feeds = load_feeds([tmp_path / "many"], SPECS)
    assert [next(feeds).name, next(feeds).name] == ["many[0]", "many[1]"]
    with pytest.raises(DataError):
        next(feeds)


def test_a_batch_is_not_taken_for_samples(tmp_path):
    np.savez(tmp_path / "f.npz", x=np.zeros((100, 3), np.float32), **{"a/b": np.array(1)})
    (feed,) = load_feeds([tmp_path / "f.npz"], SPECS)
    assert feed.tensors["x"].shape == (100, 3)


def test_names_that_look_numbered_but_are_the_models(tmp_path):
    specs = [ValueSpec("0/x", DType.FLOAT, (3,)), ValueSpec("1/x", DType.FLOAT, (3,))]
    np.savez(tmp_path / "f.npz", **{"0/x": np.zeros(3, np.float32), "1/x": np.ones(3, np.float32)})
    (feed,) = load_feeds([tmp_path / "f.npz"], specs)
    assert list(feed.tensors) == ["0/x", "1/x"]


def test_bf16_from_files_that_lose_its_type(tmp_path):
    given = np.array([1.5, 2], ml_dtypes.bfloat16)
    np.savez(tmp_path / "f.npz", x=given)
    (feed,) = load_feeds([tmp_path / "f.npz"], [ValueSpec("x", DType.BFLOAT16, (2,))])
    np.testing.assert_array_equal(feed.tensors["x"], given, strict=True)


def refused(path, slug, specs=SPECS, kind=DataError):
    with pytest.raises(kind) as caught:
        list(FeedSource([path], specs))
    assert caught.value.slug == slug
    assert path.name in caught.value.message
    return caught.value


def test_missing_and_unknown_files_are_refused(tmp_path):
    refused(tmp_path / "nothing.npz", "feed-file-missing")
    for name in ("f.pkl", "f.pt", "f.csv", "f", "f.pb", "f.onnx"):
        (tmp_path / name).write_bytes(b"\x80\x04]\x94.")
        assert refused(tmp_path / name, "feed-format-unknown").cure.startswith("give a .npz")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "feed-format-unknown")


def test_a_renamed_file_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    error = refused(tmp_path / "x.npz", "feed-format-mismatch")
    assert error.cure == "rename it to x.npy"


def test_a_directory_of_two_formats_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    write_inputs(tmp_path / "f.json", [Iteration(sample(0))])
    assert "one format" in refused(tmp_path, "feed-format-unknown").cure


def test_saved_outputs_are_no_inputs(tmp_path):
    write_outputs(tmp_path / "out.json", [("r", [Iteration(sample(0))])])
    assert "triage data merge" in refused(tmp_path / "out.json", "feed-is-outputs").cure


def test_nothing_passes_for_want_of_samples(tmp_path):
    (tmp_path / "none.json").write_text("[]")
    refused(tmp_path / "none.json", "feed-empty")
    np.savez(tmp_path / "none.npz", **{name: array[:0] for name, array in stacked(2).items()})
    refused(tmp_path / "none.npz", "feed-empty")


def test_numbers_with_gaps_and_unequal_samples_are_refused(tmp_path):
    np.savez(tmp_path / "gap.npz", **{name.replace("1/x", "2/x", 1): a for name, a in {"0/x": X, "1/x": X}.items()})
    refused(tmp_path / "gap.npz", "samples-not-numbered")
    np.savez(tmp_path / "unequal.npz", **{"x": np.stack([X, X]), "a/b": np.arange(3)})
    refused(tmp_path / "unequal.npz", "samples-unequal")


def test_incomplete_test_data_are_refused(tmp_path):
    write_set(tmp_path / "test_data_set_0", sample(0))
    (tmp_path / "test_data_set_0/input_0.pb").unlink()
    refused(tmp_path / "test_data_set_0", "test-data-incomplete")
    write_tensor(tmp_path / "test_data_set_0/input_0.pb", "a/b", X)
    with pytest.raises(DataError, match="another tensor named 'a/b'"):
        list(load_feeds([tmp_path / "test_data_set_0"], SPECS))


def test_damaged_safetensors_are_refused(tmp_path):
    write_shard(tmp_path / "f.safetensors", sample(0))
    data = (tmp_path / "f.safetensors").read_bytes()
    (tmp_path / "f.safetensors").write_bytes(data[:-3])
    refused(tmp_path / "f.safetensors", "safetensors-unreadable")


def test_a_damaged_store_is_refused(tmp_path):
    store(tmp_path / "store", sample(0))
    (tmp_path / "store/index.json").write_text("{")
    refused(tmp_path / "store", "json-invalid", kind=StoreError)


def test_labels_beside_stacked_inputs_are_divided_with_them(tmp_path):
    np.savez(tmp_path / "f.npz", **stacked(3), label=np.array([7, 8, 9]), names=np.zeros((2, 4)))
    feeds = list(load_feeds([tmp_path / "f.npz"], SPECS))
    assert [feed.labels["label"].tolist() for feed in feeds] == [7, 8, 9]
    assert [feed.labels["names"].shape for feed in feeds] == [(2, 4)] * 3
    assert [list(feed.tensors) for feed in feeds] == [["x", "a/b"]] * 3


def test_labels_are_read_when_they_are_asked_for_and_are_no_part_of_the_feed(tmp_path):
    np.savez(tmp_path / "bare.npz", **sample(0))
    np.savez(tmp_path / "f.npz", **sample(0), y=np.array([1]))
    (bare,), (feed,) = (list(load_feeds([tmp_path / name], SPECS)) for name in ("bare.npz", "f.npz"))
    assert feed.digest == bare.digest
    assert not bare.labels
    assert feed.labels["y"].tolist() == [1]
