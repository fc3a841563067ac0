"""Options of ncnn, and the values that blobs hold."""

import numpy as np
import pytest

import running
from models import parse, with_external_data
from tensortriage.engines.base import Plan, Region
from tensortriage.engines.options import read_options
from tensortriage.errors import BuildFailed, UsageError
from tensortriage.model.model import Model
from tensortriage_engines.ncnn.engine import NcnnEngine, NcnnSession, fix_weights

ENGINE = NcnnEngine()


def test_the_ladder_begins_with_plain_kernels():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,kernels=plain", "as given"]
    rungs = ENGINE.ladder({"precision": "bf16"})
    assert [words for words, _ in rungs] == ["precision=fp32,kernels=plain", "precision=fp32", "as given"]


def test_a_file_without_its_weights_is_refused(tmp_path):
    (tmp_path / "m.param").write_text("")
    with pytest.raises(UsageError) as caught:
        ENGINE.check({"file": str(tmp_path / "m.param")})
    assert caught.value.slug == "engine-option-file"


def test_options_of_the_runtime_and_the_weights_of_a_file(tmp_path):
    for name in ("m.param", "m.bin"):
        (tmp_path / name).touch()
    file = str(tmp_path / "m.param")
    assert ENGINE.words(read_options({}, ENGINE.options)) == {"kernels": "fast"}
    found = ENGINE.words(read_options({"kernels": "plain", "file": file}, ENGINE.options))
    assert found == {"kernels": "plain", "weights": str(tmp_path / "m.bin")}


class Kept:
    """Remembers what is to be converted."""

    def __init__(self):
        self.built = []

    def compile(self, path, model, words, terms):
        loaded = Model.load(path)
        self.built.append((path, len(loaded.files), len(loaded.ir.graph.inputs), words))


@pytest.mark.parametrize("kind", ["plain", "weights next to it", "weights that are inputs"])
def test_a_file_is_built_whose_weights_are_in_it_and_are_no_inputs(tmp_path, kind):
    engine = NcnnEngine()
    engine._conversions = kept = Kept()
    if kind == "weights next to it":
        path = with_external_data(tmp_path)
    else:
        weight = "float[2] w = {1, 2}"
        inputs = f"float[2] x, {weight}" if kind == "weights that are inputs" else "float[2] x"
        path = parse(f"g ({inputs}) => (float[2] y) <{weight}> {{ y = Mul(x, w) }}").save(tmp_path / "m.onnx")
    engine.built({"a": "1"}, path, Model.load(path))
    ((built, files, inputs, words),) = kept.built
    assert (built == path) is (kind == "plain")
    assert (files, inputs, words["a"]) == (1, 1, "1")
    assert built.exists() is (kind == "plain")


MODEL = """g (float[N, 3] x) => (float[N, 3] y, int64[2] k) <int64[2] c = {1, 2}> {
    [first] a = Exp(x)  [second] b = Neg(a)  [last] y = Relu(b)  [whole] k = Identity(c) }"""
FEED = {"x": np.float32([[1, 2, 3], [4, 5, 6]])}


class Network:
    """A network of three layers, with the numbers of the model."""

    def __init__(self, log, what):
        self.log, self.what = log, what
        log.append(what)

    def run(self, feed):
        a = np.exp(feed["x"])
        return {"a": a, "b": -a, "y": np.maximum(-a, 0), "k": np.int64([1, 2])}

    def answer(self, question, feed, wanted):
        self.log.append((self.what, tuple(wanted)))
        a = np.exp(feed["x"])
        return {}, {"0": feed["x"].ravel(), "1": a.ravel(), "2": -a.ravel()}

    def plan(self):
        return Plan((Region("exp", ("1",)), Region("neg", ("2",))))

    def close(self):
        self.log.append(f"closed {self.what}")


@pytest.fixture
def opened():
    """Return a session on such a network, and what was asked of whom; with "refuse" in it, nothing more is built."""
    log = []

    def unedited(path, model):
        if "refuse" in log:
            raise BuildFailed("no", slug="build-failed", cure="none")
        return Network(log, "marked" if len(model.outputs) > 2 else "unedited")

    session = NcnnSession(parse(MODEL), lambda path, model: Network(log, "deployed"), ENGINE, unedited)
    yield session, log
    session.close()


def test_values_are_found_once_by_those_of_the_unedited_network(opened):
    session, log = opened
    found = dict(session.captured(FEED, ["a", "k", "stranger"]))
    np.testing.assert_array_equal(found["a"], np.exp(FEED["x"]))
    assert found.keys() == {"a"}
    assert log == [
        "deployed", "unedited", ("unedited", ()), "closed unedited", "marked", "closed marked", ("deployed", ("1",)),
    ]  # fmt: skip
    assert list(session.captured(FEED, ["stranger"])) == []
    assert list(dict(session.captured(FEED, ["b"]))) == ["b"]
    assert log[7:] == [("deployed", ("2",))]
    assert [region.nodes for region in session.plan().regions] == [("first",), ("second",)]


def test_a_network_that_cannot_be_marked_shows_nothing(opened):
    session, log = opened
    log.append("refuse")
    assert list(session.captured(FEED, ["a"])) == []
    assert session.plan() is None


def test_one_value_that_the_converter_does_not_take_as_output_hides_no_other():
    log = []

    def unedited(path, model):
        if "b" in [spec.name for spec in model.outputs]:
            raise BuildFailed("signal 11", slug="build-failed", cure="none")
        return Network(log, "network")

    session = NcnnSession(parse(MODEL), lambda path, model: Network(log, "deployed"), ENGINE, unedited)
    assert "a" in dict(session.captured(FEED, ["a", "b"]))
    session.close()


def test_another_shape_is_matched_anew(opened):
    session, _ = opened
    assert session.plan() is None
    list(session.captured(FEED, ["a"]))
    assert session.plan() is not None
    session.built_for({"x": np.zeros((1, 3), np.float32)})
    assert session.plan() is None


def test_fixed_weights_are_no_inputs():
    model = parse("g (float[2, 3] x, float[3] w) => (float[2, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }")
    fixed, x = fix_weights(model), np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 0.0]], np.float32)
    assert [value.name for value in fixed.ir.graph.inputs] == ["x"]
    assert [value.name for value in model.ir.graph.inputs] == ["x", "w"]
    np.testing.assert_array_equal(running.run(fixed, {"x": x})["y"], x * np.float32([1, 2, 3]))
