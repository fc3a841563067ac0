"""What MNN's adapter makes of feeds, results and files; a stand-in for MNN's modules, none of MNN."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tensortriage_engines.mnn.worker import adapter
from tensortriage_engines.mnn.worker.adapter import MnnSession
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item


class Variable:
    """A value of a file."""

    def __init__(self, name, op_type="Unary", inputs=(), array=None, dtype="dtype.float", data_format="NCHW"):
        self.name, self.op_type, self.inputs, self.array = name, op_type, list(inputs), array
        self.dtype, self.data_format = dtype, data_format

    def read(self):
        if self.array is None:
            raise ValueError("nothing was computed")
        return self.array


class Mnn:
    """MNN's modules ``expr`` and ``nn`` in one: ``x`` -> ``a`` -> ``y``; what is loaded gives twice what it is fed."""

    int, float, NCHW, NHWC = "int", "float", "NCHW", "NHWC"

    def __init__(self, *, refuses="", result=lambda array: array * 2, data_format="NCHW", fed_as="NCHW"):
        self.refuses, self.result, self.data_format, self.fed_as = refuses, result, data_format, fed_as
        self.fed, self.loaded = [], []

    def create_runtime_manager(self, runtimes):
        (self.runtime,) = runtimes

    def load_as_dict(self, path):
        if self.refuses == "read":
            raise RuntimeError("no file of MNN")
        x = Variable("x", "Input", data_format=f"data_format.{self.fed_as}")
        x.shape = [2, 3, 1]
        w = Variable("w", "Const")
        a = Variable("a", "Unary", [x, w])
        return {each.name: each for each in (x, w, a, Variable("y", "Binary", [a, a, x], dtype="dtype.int"))}

    def load_module_from_file(self, path, inputs, outputs, runtime_manager=None):
        assert Path(path).read_bytes() == b"content"
        if self.refuses == "raise":
            raise RuntimeError("no kernel")
        self.loaded.append((inputs, outputs))
        return None if self.refuses == "load" else self

    def get_info(self):
        return {"outputNames": ["a", "y"]}

    def const(self, array, shape, layout, kind):
        self.fed.append((array.dtype.name, kind, shape))
        self.order = layout
        return array

    def convert(self, variable, layout):
        return Variable(variable.name, array=np.moveaxis(variable.array, -1, 0))

    def forward(self, constants):
        if self.refuses == "run":
            raise RuntimeError("no\n memory")
        if self.refuses == "silent":
            return []
        array = self.result(constants[0])
        return Variable("y", array=array, data_format=self.data_format)


def spec(name, dtype="float32", shape=(2,)):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def opened(mnn, *, dtype="float32", shape=(2,), outputs=("y",), **options):
    given = [spec(name, dtype, shape) for name in outputs]
    declared = {"inputs": [spec("x", dtype, shape), spec("unused")], "outputs": given}
    words = {"declared": json.dumps(declared), "precision": "fp32", **options}
    return MnnSession((None, mnn, mnn), b"content", {}, words)


@pytest.mark.parametrize(
    ("dtype", "given", "kind"),
    [
        ("float32", "float32", "float"), ("float64", "float32", "float"), ("float16", "float32", "float"),
        ("int64", "int32", "int"), ("uint8", "int32", "int"), ("bool", "int32", "int"), ("int32", "int32", "int"),
    ],
)  # fmt: skip
def test_numbers_travel_in_the_types_that_it_knows_and_come_back_as_declared(dtype, given, kind):
    mnn = Mnn()
    session = opened(mnn, dtype=dtype)
    (item,) = session.run({"x": Item("x", np.array([1, 0], dtype)), "unused": Item("unused", np.zeros(2))})
    assert mnn.fed == [(given, kind, [2])]
    assert (item.name, item.array.dtype) == ("y", np.dtype(dtype))
    assert item.array.tolist() == ([True, False] if dtype == "bool" else [2, 0])
    session.close()


@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
def test_a_given_file_has_inputs_outputs_and_an_order_of_its_own(order, monkeypatch):
    monkeypatch.setattr(adapter, "weights_of", lambda content: "fp16")
    mnn = Mnn(fed_as=order, result=lambda array: array[:1])
    mnn.forward = lambda constants: [Variable(name, array=constants[0][:1]) for name in ("a", "y")]
    session = opened(mnn, file="theirs.mnn")
    assert (session.info["weights"], mnn.order) == ("fp16", order)
    assert session.inputs == [spec("x", "float32", (2, 3, 1))]
    assert session.outputs == [spec(name, "float32", (1, 3, 1)) for name in ("a", "y")]
    assert mnn.loaded == [([], []), (["x"], ["a", "y"])]
    session.close()


def test_whole_numbers_that_it_cannot_hold_are_refused():
    session = opened(Mnn(), dtype="int64")
    for number, fits in ((2**31 - 1, True), (2**31, False), (-(2**31), True), (-(2**31) - 1, False)):
        feed = {"x": Item("x", np.int64([number, 0]))}
        if fits:
            list(session.run(feed))
        else:
            with pytest.raises(AdapterError, match="beyond int32"):
                list(session.run(feed))
    assert adapter._narrowed("x", np.zeros(0, np.int64)).shape == (0,)
    session.close()


def test_results_in_blocks_of_channels_are_unpacked():
    session = opened(Mnn(data_format="data_format.NC4HW4"), shape=(2, 3))
    (item,) = session.run({"x": Item("x", np.ones((2, 3), np.float32))})
    assert item.array.shape == (3, 2)
    session.close()


@pytest.mark.parametrize(
    ("refuses", "words"), [("read", "cannot be read"), ("raise", "no kernel"), ("load", "refuses the converted file")]
)
def test_a_file_that_is_refused(refuses, words, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(AdapterError, match=words) as caught:
        opened(Mnn(refuses=refuses))
    assert caught.value.kind is AdapterFailure.BUILD
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_an_output_of_the_model_is_refused():
    with pytest.raises(AdapterError, match="no value 'z'"):
        opened(Mnn(), outputs=("y", "z"))


@pytest.mark.parametrize("mnn", [Mnn(refuses="run"), Mnn(refuses="silent"), Mnn(result=lambda array: None)])
def test_a_run_that_fails(mnn):
    session = opened(mnn)
    with pytest.raises(AdapterError) as caught:
        list(session.run({"x": Item("x", np.ones(2, np.float32))}))
    assert caught.value.kind is AdapterFailure.RUN
    session.close()


@pytest.mark.parametrize(("precision", "told"), [("fp32", "float32"), ("fp16", ""), ("int8", "float32")])
def test_operators_are_told_in_an_order_in_which_they_run(precision, told):
    mnn = Mnn()
    session = opened(mnn, precision=precision, threads="3")
    rows = [(row["name"], row["kind"], row["precision"]) for row in session.plan()]
    assert rows == [("a", "Unary", told), ("y", "Binary", "")]
    assert mnn.runtime == {"backend": "CPU", "precision": "low" if precision == "fp16" else "high", "numThread": 3}
    session.close()


def test_inner_values_are_those_of_a_module_that_gives_them():
    mnn = Mnn()
    session = opened(mnn)
    feed = {"x": Item("x", np.ones(2, np.float32))}
    assert [(item.name, item.array.tolist()) for item in session.seen(feed, ("a", "stranger"))] == [("a", [2, 2])]
    assert list(session.seen(feed, ("stranger",))) == []
    assert mnn.loaded == [(["x"], ["y"]), (["x"], ["a"])]
    session.close()
    assert not Path(session._folder.name).exists()


CONVERTER = """
import sys
def mnnconvert(words):
    print("The device supports: nothing")
    if "refuse" in words[words.index("--modelFile") + 1]:
        print("no op"); sys.exit(1)
    open(words[words.index("--MNNModel") + 1], "w").write(" ".join(words))
"""


@pytest.fixture
def converter(tmp_path, monkeypatch):
    """Put a stand-in for the converter's module where the Python that runs it looks."""
    (tmp_path / "_tools.py").write_text(CONVERTER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


@pytest.mark.parametrize(
    ("precision", "ending"), [("fp32", ["0"]), ("fp16", ["--fp16"]), ("int8", ["--weightQuantBits", "8"])]
)
def test_options_reach_the_converter(converter, precision, ending):
    made = adapter._converted(Path("m.onnx"), {"optimize": "2", "gelu": "0", "precision": precision}).decode().split()
    assert made[made.index("--optimizeLevel") + 1] == "2"
    assert made[-len(ending) :] == ending


def test_a_refusal_is_told_in_the_converters_words(converter):
    with pytest.raises(AdapterError) as caught:
        adapter._converted(Path("refuse.onnx"), {"optimize": "1", "gelu": "1", "precision": "fp32"})
    assert caught.value.message == "the converter mnnconvert failed: no op"
