"""What RKNN's adapter does around the toolkit: calibration, files of a quantization, snapshots; without the toolkit."""

from pathlib import Path

import numpy as np
import pytest

from models import proto, write
from tensortriage_engines.rknn.worker import adapter
from tensortriage_engines.rknn.worker.adapter import SimulatedSession, batches
from tensortriage_engines.rknn.worker.toolkit import ToolkitFolder
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import write_shard


def test_rows_of_a_feed_are_dealt_out_to_models_of_fewer_and_of_more_rows():
    rows = np.arange(6.0).reshape(3, 2)
    mask = np.ones((1, 4))
    specs = [{"shape": [2, 2]}, {"shape": [1, 4]}]
    dealt = batches([rows, mask], specs)
    assert [pair[0][:, 0].tolist() for pair in dealt] == [[0, 2], [4, 0]]
    assert all(pair[1] is mask for pair in dealt)
    assert batches([rows], [{"shape": [3, 2]}])[0][0] is rows
    assert [pair[0][:, 0].tolist() for pair in batches([rows], [{"shape": [4, 2]}])] == [[0, 2, 4, 0]]
    assert batches([rows], [{"shape": [3, 5]}])[0][0] is rows  # it is for the toolkit to refuse


@pytest.fixture
def scratch():
    folder = ToolkitFolder()
    yield folder
    folder.close()


def spec(name, shape):
    return {"name": name, "shape": shape, "dtype": "float32"}


DECLARED = {"inputs": [spec("x", [1, 2])], "outputs": [spec("y", [1, 2])]}


class Network:
    """What the toolkit has built; remembers what it is asked."""

    def __init__(self, results=(), *, analyses=True):
        self.results, self.analyses, self.asked = results, analyses, []

    def build(self, **words):
        self.asked.append(words)
        return 0

    def hybrid_quantization_step2(self, *files):
        self.asked.append(files)
        return 0

    def inference(self, *, inputs, data_format):
        self.asked.append(data_format)
        return self.results

    def accuracy_analysis(self, *, inputs, output_dir):
        self.asked.append(inputs)
        if not self.analyses:
            return -1
        folder = Path(output_dir) / "simulator" / "npy"
        folder.mkdir(parents=True)
        np.save(folder / "first.npy", np.load(inputs[0]) * 2)
        (Path(output_dir) / "map_name_to_file.txt").write_text(
            "a first.tensor\nb lost.tensor\nc-rs first.tensor\nno table\n\nodd\n"
        )
        return 0

    def release(self):
        self.asked.append("release")


@pytest.mark.parametrize(("precision", "quantized"), [("fp16", False), ("int8", True)])
def test_ranges_are_not_chosen_where_they_are_not_wanted(scratch, precision, quantized):
    network = Network()
    adapter._build(network, scratch, {"precision": precision}, DECLARED, quantized)
    assert network.asked == [{"do_quantization": False}]


def test_ranges_are_chosen_from_the_rows_of_a_feed(scratch, tmp_path):
    write_shard(tmp_path / "feed.safetensors", {"x": np.float32([[1, 2], [3, 4]])})
    network, options = Network(), {"precision": "int8", "calibration": str(tmp_path / "feed.safetensors")}
    adapter._build(network, scratch, options, DECLARED, False)
    assert network.asked == [{"do_quantization": True, "dataset": "dataset.txt"}]
    lines = (scratch.path / "dataset.txt").read_text().split()
    assert [np.load(scratch.path / line).tolist() for line in lines] == [[[1, 2]], [[3, 4]]]


def test_files_of_a_quantization_are_copied_together(scratch, tmp_path):
    options = {}
    for key, ending in adapter.SAVED.items():
        options[key] = str(tmp_path / f"mine{ending}")
        (tmp_path / f"mine{ending}").write_text(key)
    network = Network()
    adapter._rebuild(network, scratch, {**options, "precision": "int8"})
    (files,) = network.asked
    assert files == tuple(str(scratch.path / f"model{ending}") for ending in adapter.SAVED.values())


def test_a_saved_graph_tells_its_own_inputs_and_outputs(tmp_path):
    """Constants are no inputs, though the toolkit lists them as such; names and order are those of the file."""
    text = """g (float[1, 3] z, float[2] w, int64[n, 1] a) => (float[1, 2] y, float[2] v) <float[2] w = {1, 2}> {
        [one] v = Neg(w) [two] y = MatMul(z, a)
    }"""
    assert adapter.declared_in(str(write(tmp_path / "m.model", text))) == {
        "inputs": [spec("z", [1, 3]), {"name": "a", "shape": [None, 1], "dtype": "int64"}],
        "outputs": [spec("y", [1, 2]), spec("v", [2])],
    }


def test_a_file_in_fp16_has_every_value_before_its_integers(scratch, tmp_path):
    """The table of layers that stay float is replaced, also one that the user wrote; ranges of the rest stay."""
    graph = "g (float[1, 2] x) => (float[1, 2] y) { [a] v = Relu(x) [b] y = Neg(v) }"
    options = {key: str(tmp_path / f"m{ending}") for key, ending in adapter.SAVED.items()}
    write(Path(options["file"]), graph)
    Path(options["data"]).touch()
    Path(options["config"]).write_text("custom_quantize_layers:\n    v: int16\nquantize_parameters:\n    x: {}\n")
    adapter._rebuild(Network(), scratch, {**options, "precision": "fp16"})
    copy = (scratch.path / "model.quantization.cfg").read_text()
    rows = 'custom_quantize_layers:\n    "v": float16\n    "y": float16\n'
    assert copy == rows + "quantize_parameters:\n    x: {}\n"
    assert "int16" in Path(options["config"]).read_text()


FEED = {"x": Item("x", np.float32([[1, 2]]))}


def opened(network, scratch):
    return SimulatedSession(
        network, scratch, DECLARED, {}, [{"name": "r", "nodes": []}], adapter.ModelValues({"c": [2]}, {})
    )


def test_the_simulator_runs_with_channels_first(scratch):
    network = Network([[[3, 4]]])
    session = opened(network, scratch)
    (item,) = session.run(FEED)
    assert (item.name, item.array.tolist(), item.array.dtype) == ("y", [[3, 4]], np.float32)
    assert network.asked == [["nchw"]]
    assert session.plan() == [{"name": "r", "nodes": []}]
    session.close()
    assert network.asked[-1] == "release"
    assert not scratch.path.exists()


def test_a_simulator_that_fails_is_a_failed_run(scratch):
    with pytest.raises(AdapterError) as caught:
        opened(Network(None), scratch).run(FEED)
    assert caught.value.kind is AdapterFailure.RUN


def test_values_are_seen_that_a_layer_left_in_a_file(scratch):
    session = opened(Network(), scratch)
    for _ in range(2):  # what an analysis left before is no part of the next
        found = {item.name: item.array.tolist() for item in session.seen(FEED, ("a", "b", "c", "stranger"))}
        assert found == {"a": [[2, 4]], "c": [2, 4]}  # "-rs": with one more axis of one entry
    assert list(opened(Network(analyses=False), scratch).seen(FEED, ("a",))) == []


def test_without_a_table_nothing_is_seen(tmp_path):
    assert adapter._snapshots(tmp_path, ("a",), {}, {}) == []


def test_a_value_is_seen_whose_axes_were_moved_where_its_sizes_tell_how(tmp_path):
    """A Tanh between two products that became convolutions is left with channels first, called `_tp-rs`."""
    (tmp_path / "simulator" / "npy").mkdir(parents=True)
    values = {"t_tp-rs": "t", "square_tp": "square", "kept_rs": "kept", "folded-rs": "folded", "own_tp": "own_tp"}
    (tmp_path / "map_name_to_file.txt").write_text("".join(f"{held} {file}.txt\n" for held, file in values.items()))
    for file in values.values():
        np.save(tmp_path / "simulator" / "npy" / f"{file}.npy", np.zeros(1))
    model = {"t": [1, 3, 2], "own": [2], "own_tp": [2], "square": [2, 2], "kept": [2, 2], "folded": [4]}
    found = adapter._snapshots(tmp_path, tuple(model), model, {})
    assert {name: held for name, held, _ in found} == {
        "t": "t_tp-rs", "own_tp": "own_tp", "square": "square_tp", "kept": "kept_rs", "folded": "folded-rs",
    }  # fmt: skip
    array = np.arange(6).reshape(1, 2, 1, 3)
    assert adapter.in_place(array, [1, 3, 2], moved=True).tolist() == [[[0, 3], [1, 4], [2, 5]]]
    assert adapter.in_place(array, [1, 2, 3], moved=True).tolist() == [[[0, 1, 2], [3, 4, 5]]]
    square = np.arange(4).reshape(1, 2, 2)
    assert adapter.in_place(square, [2, 2], moved=True) is None  # either order has these sizes
    assert adapter.in_place(square, [2, 2], moved=False).tolist() == [[0, 1], [2, 3]]
    assert adapter.in_place(square, [4], moved=True) is adapter.in_place(square, None, moved=True) is None
    assert adapter.in_place(square, [4], moved=False) is square  # its own name: that it has another shape is to be seen


def test_a_normalization_is_seen_under_the_name_of_its_node(tmp_path):
    """Several steps become one layer, whose result is called as the node is, with a number or (by 2.3) without."""
    model = proto("""<ir_version: 8, opset_import: ["": 17]> g (float[1,2] x, float[2] w) => (float[1,2] y) {
        [norm0] n = LayerNormalization(x, w) [norm1] m = LayerNormalization(n, w) [norm2] y = Relu(m) }""")
    (tmp_path / "simulator" / "npy").mkdir(parents=True)
    held = ("norm0#1", "norm1", "norm2#1", "norm0#a")
    (tmp_path / "map_name_to_file.txt").write_text(
        "".join(f"{name} {number}.txt\n" for number, name in enumerate(held))
    )
    for number in range(len(held)):
        np.save(tmp_path / "simulator" / "npy" / f"{number}.npy", np.zeros(1))
    norms = adapter._norms(model)
    assert norms == {"norm0": "n", "norm1": "m"}
    found = adapter._snapshots(tmp_path, ("n", "m", "y"), ("n", "m", "y"), norms)
    assert [(name, held) for name, held, _ in found] == [("n", "norm0#1"), ("m", "norm1")]


def test_a_conversion_that_fails_leaves_no_folder(tmp_path, monkeypatch):
    path = write(tmp_path / "m.onnx", "g (float[1, 2] x) => (float[1, 2] y) { y = Relu(x) }")
    made = []

    class Folder(ToolkitFolder):
        def __init__(self):
            super().__init__()
            made.append(self.path)

    def refuses(verbose):
        raise RuntimeError("no licence")

    monkeypatch.setattr(adapter, "toolkit", lambda: refuses)
    monkeypatch.setattr(adapter, "ToolkitFolder", Folder)
    with pytest.raises(AdapterError, match="no licence"):
        adapter.compile(path, {"declared": adapter.json.dumps(DECLARED)})
    assert [folder.exists() for folder in made] == [False]
