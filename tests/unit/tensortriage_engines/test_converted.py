"""Engines with a converter: options, ladders, and sessions on files whose values have names of the model."""

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from models import parse, write
from tensortriage.engines.base import Plan, Region
from tensortriage.errors import BuildFailed, UsageError
from tensortriage.values.dtype import Precision
from tensortriage_engines.converted import SEEN, ConvertedEngine, _declared

MODEL = """g (float[N, 4] x) => (float[N, 4] y, int64[2] k) <int64[2] c = {1, 2}> {
    [first] a = Exp(x)  [second] b = Relu(a)  [third] y = Neg(b)  [whole] k = Identity(c) }"""


class Built:
    """What a worker would hold of a converted file."""

    def __init__(self, regions=(), shown=None):
        self.regions, self.shown, self.wanted, self.info = regions, shown or {}, None, {}

    def plan(self):
        return None if self.regions is None else Plan(tuple(self.regions))

    def run(self, feed):
        return feed

    def answer(self, question, feed, wanted):
        assert question == "captured"
        self.wanted = wanted
        return {}, self.shown

    def close(self):
        pass


class Engine(ConvertedEngine):
    """Builds what it is given, and remembers for which words."""

    name: ClassVar[str] = "mine"
    title: ClassVar[str] = "Mine"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16)
    options: ClassVar[dict[str, str]] = dict.fromkeys(
        ("precision", "level", "threads", "file", "worker", "flag.KEY"), ""
    )
    set_aside: ClassVar[frozenset[str]] = frozenset({"level", "flag"})

    def __init__(self, built=None):
        super().__init__()
        self.result, self.given = built or Built(), []

    def words(self, given):
        return {"level": given.text("level", "2")}

    def safer(self, options):
        return {"precision": "fp32", "level": "0"}, {"precision": "fp32"}

    def built(self, words, path, model):
        self.given.append((dict(words), path))
        return self.result


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "m.onnx", MODEL)


def test_it_needs_an_environment_of_its_own():
    found = Engine().availability()
    assert (found.usable, found.cure) == (False, "triage engines install mine")


def test_what_holds_of_every_engine_with_a_converter():
    engine = Engine()
    assert engine.tells_plan({})
    assert not engine.builds_vary({})
    assert engine.observing({"level": "1"}) == {"level": "1"}
    assert engine.building({"file": "f"}) is None  # what it runs shows its inner values itself
    engine.observing = lambda options: None
    assert engine.building({"file": "f", "level": "1"}) == {"level": "1"}


@pytest.mark.parametrize(("options", "word"), [({}, "fp32"), ({"precision": "half"}, "fp16")])
def test_the_format_is_the_one_asked_for(options, word):
    assert Engine().precision(options) == word


@pytest.mark.parametrize("options", [{"precision": "int8"}, {"threads": "0"}, {"odd": "1"}, {"file": "/no/such"}])
def test_wrong_options_are_refused_before_anything_starts(options, path):
    for ask in (Engine().check, lambda given: Engine().compile(path, given)):
        with pytest.raises(UsageError):
            ask(options)


@pytest.mark.parametrize(
    ("options", "rungs"),
    [
        ({}, ["precision=fp32,level=0"]),
        ({"precision": "fp16"}, ["precision=fp32,level=0", "precision=fp32"]),
        ({"precision": "fp16", "level": "1"}, ["precision=fp32,level=0", "precision=fp32"]),
        ({"level": "0"}, ["precision=fp32"]),
        ({"precision": "fp32", "level": "0"}, ["precision=fp32"]),
    ],
)
def test_rungs_are_safer_than_what_is_asked(options, rungs):
    found = Engine().ladder(options)
    assert [words for words, _ in found] == [*rungs, "as given"]
    assert found[-1][1] == options


def test_rungs_leave_out_what_the_engine_sets_aside():
    rungs = Engine().ladder({"flag.fast": "1", "level": "1", "threads": "2"})
    assert [dict(options) for _, options in rungs[:2]] == [
        {"threads": "2", "precision": "fp32", "level": "0"},
        {"threads": "2", "precision": "fp32"},
    ]


def test_options_become_words_of_the_adapter(path, tmp_path):
    (tmp_path / "file").touch()
    engine = Engine()
    session = engine.compile(path, {"threads": "3", "level": "1", "worker": "python", "file": str(tmp_path / "file")})
    session.run({"x": np.zeros((2, 4), np.float32)})
    session.close()
    ((words, built),) = engine.given
    file = {"file": str(tmp_path / "file"), "worker": "python"}
    assert words == {"precision": "fp32", "threads": "3", "level": "1", **file}
    assert built != path  # open dimensions were closed


def test_the_adapter_is_told_what_the_model_declares():
    told = json.loads(_declared(parse(MODEL)))
    assert told == {
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["N", 4]}],
        "outputs": [
            {"name": "y", "dtype": "float32", "shape": ["N", 4]},
            {"name": "k", "dtype": "int64", "shape": [2]},
        ],
    }
    unknown = parse("g (float[] x) => (y) { y = Neg(x) }")
    assert json.loads(_declared(unknown))["inputs"][0]["shape"] is None


def test_a_file_that_is_no_model_is_a_refusal_to_build(tmp_path):
    (tmp_path / "m.onnx").write_text("no model")
    with pytest.raises(BuildFailed) as caught:
        Engine().compile(tmp_path / "m.onnx", {})
    assert caught.value.cure


@pytest.mark.parametrize(
    ("regions", "nodes"),
    [
        ([Region("r", ("b",)), Region("s", ("y",))], [("first", "second"), ("third",)]),
        ([Region("r", ("a", "odd")), Region("s", ())], [("first",), ()]),
        ([Region("r", ("odd",))], None),
        ([], None),
        (None, None),
    ],
)
def test_a_plan_is_told_in_nodes_where_names_were_kept(path, regions, nodes):
    session = Engine(Built(regions)).compile(path, {})
    plan = session.plan()
    session.close()
    assert (None if plan is None else [region.nodes for region in plan.regions][: len(nodes)]) == nodes


def test_inner_values_are_those_of_the_file_that_fit_the_model(path):
    shown = {
        "a": np.ones((2, 4), "f4"),
        "b": np.ones((2, 5), "f4"),
        "odd": np.ones(3, "f4"),
        "y": np.ones((2, 4), "f4"),
    }
    built = Built(shown=shown)
    session = Engine(built).compile(path, {})
    found = dict(session.captured({"x": np.zeros((2, 4), np.float32)}, ["a", "b", "odd", "k"]))
    session.close()
    assert (built.wanted, session.observation) == (["a", "b", "odd", "k"], SEEN)
    assert found.keys() == {"a", "odd"}  # of b another shape is declared, of odd nothing, and k is not in the file


def test_conversions_are_kept_where_engines_are(tmp_path):
    kept = []
    engine = Engine()
    engine._conversions.keep_in = kept.append
    engine.keep_in(tmp_path, engines=False)
    engine.keep_in(tmp_path, engines=True)
    engine.converter_words = ()
    engine.keep_in(tmp_path, engines=True)
    assert kept == [Path(tmp_path)]
