"""What ncnn's adapter makes of pnnx's script, of models that it refuses, and of blobs; without ncnn and pnnx."""

import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tensortriage_engines.ncnn.worker import adapter
from tensortriage_engines.ncnn.worker.adapter import LoadedNetwork
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

SCRIPT = """
    ex.input("in0", ncnn.Mat(in0.squeeze(0).numpy()).clone())
    ex.input("in1", ncnn.Mat(in1.numpy(), batch_index=1).clone())
    ex.input("in2", ncnn.Mat(in2.numpy()).clone())
    out.append(torch.from_numpy(out0.numpy()).unsqueeze(0))
    out.append(torch.from_numpy(out1.numpy(batch_index=0)))
    out.append(torch.from_numpy(np.array(out2)).unsqueeze(1))
    out.append(torch.from_numpy(np.array(out3)))
"""
"""As pnnx 20261020 writes it, and for the last two outputs those before it."""
PNNX = """#!{python} -S
import sys
words = dict(word.split("=", 1) for word in sys.argv[2:])
{then}
for name, text in (("ncnnparam", "layers"), ("ncnnbin", "weights"), ("ncnnpy", {script!r})):
    open(words[name], "w").write(text)
open(words["ncnnparam"], "a").write(" ".join(sorted({{words["fp16"], words.get("inputshape", "none")}})))
"""


def spec(name, shape, dtype="float32"):
    return {"name": name, "shape": shape, "dtype": dtype}


DECLARED = {"inputs": [spec("x", [1, 3])], "outputs": [spec("y", [1, 3])]}


@pytest.fixture
def converter(tmp_path, monkeypatch):
    """Return what puts a stand-in for pnnx where the converter is looked for."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def put(then=""):
        path = tmp_path / "pnnx" / "pnnx"
        path.parent.mkdir()
        path.write_text(PNNX.format(python=sys.executable, then=then, script=SCRIPT))
        path.chmod(0o755)
        (tmp_path / "m.onnx").write_bytes(b"model")
        return tmp_path / "m.onnx"

    return put


def converted(model, declared=DECLARED, precision="fp32"):
    return adapter._converted(model, {"declared": json.dumps(declared), "precision": precision})


def test_what_was_left_out_stands_in_the_script(converter):
    packed = converted(converter(), precision="fp16")
    end = 8 + int.from_bytes(packed[:8], "little")
    told = json.loads(packed[8:end])
    assert (packed[end:], told["param"]) == (b"weights", "layers1 [1,3]f32")
    assert told["inputs"] == {
        "in0": {"axis": 0, "batch": None}, "in1": {"axis": None, "batch": 1}, "in2": {"axis": None, "batch": None},
    }  # fmt: skip
    assert told["outputs"] == {
        "out0": {"axis": 0, "batch": None}, "out1": {"axis": None, "batch": 0},
        "out2": {"axis": 1, "batch": None}, "out3": {"axis": None, "batch": None},
    }  # fmt: skip


def test_a_batch_that_is_left_out_is_one(converter):
    with pytest.raises(AdapterError, match="takes a batch of 1, and 'x' has 2") as caught:
        converted(converter(), {**DECLARED, "inputs": [spec("x", [2, 3])]})
    assert caught.value.kind is AdapterFailure.BUILD


def test_a_model_without_inputs_has_no_shapes(converter):
    assert b"layers0 none" in converted(converter(), {**DECLARED, "inputs": []})


@pytest.mark.parametrize(
    "declared",
    [{**DECLARED, "inputs": [spec("x", [1], "string")]}, {**DECLARED, "outputs": [spec("y", [1], "int64")]}],
)
def test_types_that_it_does_not_know_are_refused_first(declared):
    with pytest.raises(AdapterError) as caught:
        converted(Path("absent.onnx"), declared)
    assert caught.value.kind is AdapterFailure.BUILD


def test_a_refusal_is_told_in_the_converters_words(converter):
    model = converter("print('Unknown CPU failed'); print('loading'); print('Bad is not supported yet!'); sys.exit(1)")
    with pytest.raises(AdapterError) as caught:
        converted(model)
    assert caught.value.message.endswith("failed: Bad is not supported yet!")


def test_without_the_converter_it_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(AdapterError) as caught:
        adapter.probe({})
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "converter-missing")


class Mat:
    """An array of the runtime."""

    def __init__(self, array, batch_index=233):
        self.array, self.batch = np.array(array), batch_index

    def clone(self):
        return self

    def empty(self):
        return self.array.size == 0

    def numpy(self, batch_index=None):
        return self.array


class Net:
    """A network that gives twice what it is fed."""

    def __init__(self, log):
        names = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage")  # as of May 2025
        self.opt, self.log, self.fed = types.SimpleNamespace(**dict.fromkeys(names)), log, {}
        log.append(self)

    def load_param(self, path):
        self.param = Path(path).read_text()
        return int(self.param == "refused")

    def load_model(self, path):
        self.weights = Path(path).read_bytes()
        os.write(2, b"layer nn.InstanceNorm1d not exists or registered\n")
        return int(self.weights == b"refused")

    def create_extractor(self):
        return self

    def input(self, name, mat):
        self.fed[name] = mat
        return int(mat.array.size == 5)

    def extract(self, name):
        return (1, None) if name == "lost" else (0, Mat(self.fed["in0"].array * 2 if name == "out0" else []))

    def blobs(self):
        return [types.SimpleNamespace(name=name) for name in ("in0", "out0", "lost")]

    def layers(self):
        kinds = (("a", "Input", [0]), ("b", "Relu", [1, 2]), ("c", "Split", [2]))
        return [types.SimpleNamespace(name=name, type=kind, tops=tops) for name, kind, tops in kinds]


def opened(log, *, inputs=None, outputs=None, declared=DECLARED, weights=b"w", file=None, weights_file=None, **options):
    """Return a loaded network; rows of its inputs and outputs say which axis is left out, and which is the batch."""
    plain = {"axis": None, "batch": None}
    told = {
        "param": "p",
        "inputs": inputs or {"in0": plain},
        "outputs": {"out0": plain} if outputs is None else outputs,
    }
    header = json.dumps(told).encode()
    runtime = types.SimpleNamespace(Net=lambda: Net(log), Mat=Mat)
    words = {"declared": json.dumps(declared), "precision": "fp32", "kernels": "fast", **options}
    if file is not None:
        words |= {"file": str(file), "weights": str(weights_file)}
    return LoadedNetwork(runtime, len(header).to_bytes(8, "little") + header + weights, {}, words)


FEED = {"x": Item("x", np.float32([[1, 2, 3]]))}


@pytest.mark.parametrize(("axis", "batch", "given"), [(None, None, 233), (0, None, 233), (None, 1, 1)])
def test_arrays_go_in_and_come_out_as_the_script_says(axis, batch, given):
    log, row = [], {"axis": axis, "batch": batch}
    session = opened(log, inputs={"in0": row}, outputs={"out0": row})
    (item,) = session.run(FEED)
    np.testing.assert_array_equal(item.array, [[2, 4, 6]])
    fed = log[0].fed["in0"]
    assert (fed.array.ndim, fed.batch) == (1 if axis == 0 else 2, given)
    session.close()


def test_axes_of_one_that_a_layer_loses_come_back():
    """A global pooling's result has one axis in releases before 1.0.20261020."""
    for shape, found in (
        ([1, 3, 1], (1, 3, 1)),
        ([3, 1], (3, 1)),
        (["n", 3], (1, 3)),
        ([1, 4], (1, 3)),
        (None, (1, 3)),
    ):
        session = opened([], declared={**DECLARED, "outputs": [spec("y", shape)]})
        (item,) = session.run(FEED)
        assert item.array.shape == found


def test_whole_numbers_are_indices_and_inputs_without_use_are_not_fed():
    log = []
    declared = {**DECLARED, "inputs": [spec("x", [1, 3], "int64"), spec("unused", [1])]}
    list(opened(log, declared=declared).run({"x": Item("x", np.int64([[1, 2, 3]]))}))
    assert (list(log[0].fed), log[0].fed["in0"].array.dtype) == (["in0"], np.int32)


def test_what_does_not_run():
    for session, feed in (
        (opened([], outputs={}), FEED),
        (opened([]), {"x": Item("x", np.zeros((1, 5), np.float32))}),
        (opened([]), {"x": Item("x", np.zeros((1, 0), np.float32))}),
    ):
        with pytest.raises(AdapterError) as caught:
            session.run(feed)
        assert caught.value.kind is AdapterFailure.RUN
    with pytest.raises(AdapterError) as caught:
        opened([], weights=b"refused")
    assert caught.value.kind is AdapterFailure.BUILD
    assert caught.value.message.endswith(": layer nn.InstanceNorm1d not exists or registered")


@pytest.mark.parametrize(
    ("options", "switches"),
    [
        ({}, {"num_threads": 1, "use_fp16_storage": False, "use_bf16_storage": False}),
        (
            {"precision": "fp16", "threads": "2"},
            {"num_threads": 2, "use_fp16_storage": True},
        ),
        ({"precision": "bf16"}, {"use_fp16_storage": False, "use_bf16_storage": True}),
        ({"kernels": "plain"}, {"use_winograd_convolution": False, "use_sgemm_convolution": False}),
    ],
)
def test_options_of_the_runtime(options, switches):
    log = []
    opened(log, **options)
    found = vars(log[0].opt)
    assert {key: found[key] for key in switches} == switches
    assert (found["lightmode"], "use_winograd_convolution" in found) == (True, options == {"kernels": "plain"})


def test_a_given_file_runs_in_the_place_of_the_converted_one(tmp_path):
    (tmp_path / "m.param").write_text("mine")
    (tmp_path / "m.bin").write_bytes(b"own")
    log = []
    opened(log)
    opened(log, file=tmp_path / "m.param", weights_file=tmp_path / "m.bin")
    assert [(net.param, net.weights) for net in log] == [("p", b"w"), ("mine", b"own")]


CONVERTED = """7767517
5 5
Input in0 0 1 in0
Convolution conv_3 1 1 in0 1 0=4 1=3
ReLU relu_0 1 1 1 2
Squeeze only 1 1 2 3
InnerProduct fc_1 1 1 3 out0 0=2
"""
THEIRS = """7767517
5 5
Input data 0 1 data
Split more 1 2 data 7 8
Convolution features.0 1 1 7 9 0=4 1=3
ReLU features.1 1 1 9 1
InnerProduct head 1 1 1 prob 0=2
"""


def test_blobs_of_a_network_that_another_converter_numbered_are_known_by_their_layers():
    """Blob 1 is the convolution's in the one and the ReLU's in the other."""
    expected = {"in0": "data", "1": "9", "2": "1", "out0": "prob"}
    assert adapter._renamed(CONVERTED, THEIRS) == expected
    assert adapter._renamed(CONVERTED, CONVERTED) == {name: name for name in ("in0", "1", "2", "3", "out0")}


def test_layers_and_blobs_are_told():
    log = []
    session = opened(log, precision="fp16")
    assert session.plan() == [
        {"name": "b", "nodes": ["out0", "lost"], "kind": "Relu", "precision": "", "implementation": ""}
    ]
    assert opened([]).plan()[0]["precision"] == "float32"
    assert [item.name for item in session.seen(FEED, ("out0", "lost"))] == ["out0"]
    assert log[1].opt.lightmode is False
    assert [item.name for item in session.seen(FEED, ())] == ["out0"]
