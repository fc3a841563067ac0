"""LiteRT: what onnx2tf 2.6.9 reported of the bundled model (tests/data/litert), options, and inner values."""

import json
from pathlib import Path

import numpy as np
import pytest

from models import parse
from tensortriage.engines.base import Plan, Region
from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage_engines.litert.engine import PRESERVED, LiteRtEngine, LiteRtSession, holders, laid_out

ROOT = Path(__file__).parents[4]
ENGINE = LiteRtEngine()


def test_a_tensor_holds_the_last_of_the_values_that_were_fused_into_it():
    told = json.loads((ROOT / "tests/data/litert/digits_cnn.json").read_text())
    records = [{**record, "channels_last": record["assume_channel_last_layout"], "input": ""} for record in told]
    found = holders(records, Model.load(ROOT / "examples/digits_cnn.onnx").graph)
    assert "/stem/Conv_output_0" not in found  # fused into the Relu behind it
    assert found["/Relu_output_0"] == ("wa/block1/skip/Conv_input_nhwc", True)
    assert found["logits"] == ("logits", False)
    assert len({tensor for tensor, _ in found.values()}) == len(found)


def test_the_ladder_begins_with_the_built_in_kernels():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,delegate=none", "as given"]
    assert [words for words, _ in ENGINE.ladder({"precision": "int8"})] == [
        "precision=fp32,delegate=none",
        "precision=fp32",
        "as given",
    ]


@pytest.mark.parametrize(
    ("found", "declared", "flag", "expected"),
    [
        ((3, 2, 2, 64), ("batch", 64, 2, 2), False, (3, 64, 2, 2)),  # seen: the report is wrong about its layout
        ((3, 2, 2, 64), ("batch", 64, 2, 2), True, (3, 64, 2, 2)),
        ((3, 64, 2, 2), ("batch", 64, 2, 2), True, (3, 64, 2, 2)),
        ((3, 5, 7), None, True, (3, 7, 5)),
        ((3, 10), (3, 10), True, (3, 10)),
        ((3, 11), (3, 10), False, None),
    ],
)
def test_a_tensor_is_read_in_the_layout_that_fits(found, declared, flag, expected):
    array = laid_out(np.zeros(found, np.float32), declared, channels_last=flag)
    assert (None if array is None else array.shape) == expected


def test_options_of_the_runtime():
    def words(**options):
        return ENGINE.words(read_options(options, ENGINE.options))

    assert words() == {"delegate": "xnnpack"}
    assert words(delegate="None") == {"delegate": "none"}
    assert words(**ENGINE.observing({})) == {"delegate": "xnnpack", "observe": PRESERVED}
    for wrong in ({"delegate": "gpu"}, {"observe": "all"}):
        with pytest.raises(UsageError):
            words(**wrong)


MODEL = """g (float[N, 3, 2] x) => (float[N, 3, 2] y) {
    ["/first"] "/a" = Exp(x)  [second] b = Relu("/a")  [third] c = Neg(b)  [last] y = Abs(c) }"""


def record(value, tensor, *, status="direct", last=False):
    return {
        "onnx_output_name": value, "status": status, "resolved_tflite_tensor_name": tensor,
        "channels_last": last, "input": "",
    }  # fmt: skip


def test_only_values_of_the_model_that_were_found_are_held():
    records = [
        record("wa/a", "t0"), record("b", "t1", status="rewritten", last=True), record("c", "t2", status="lost"),
        record("stranger", "t3"), record("x", "t4"),
    ]  # fmt: skip
    assert holders(records, parse(MODEL).graph) == {"/a": ("t0", False), "b": ("t1", True)}
    for order in (1, -1):
        assert holders([record("b", "t"), record("c", "t")][::order], parse(MODEL).graph) == {"c": ("t", False)}


class Built:
    """What a worker would hold of a file."""

    def __init__(self, records, shown, regions=()):
        self.records, self.shown, self.regions, self.wanted, self.held = records, shown, regions, [], None

    def plan(self):
        return Plan(tuple(self.regions))

    def answer(self, question, feed=None, wanted=()):
        if question == "records":
            return {"records": self.records}, {}
        self.wanted.append(wanted)
        return {}, self.shown

    def close(self):
        pass


FEED = {"x": np.zeros((2, 3, 2), np.float32)}


def test_inner_values_come_in_the_layout_of_the_model():
    records = [record("/a", "t0", last=True), record("b", "t1"), record("c", "t2"), record("y", "t3")]
    array = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    built = Built(records, {"t0": array, "t1": np.zeros((5, 5), np.float32), "t3": np.zeros((2, 3, 2), np.float32)})
    session = LiteRtSession(parse(MODEL), lambda path, model: built, ENGINE, PRESERVED)
    found = dict(session.captured(FEED, ["/a", "b", "c", "stranger"]))
    assert found.keys() == {"/a"}  # of b the tensor has another shape, of c there is none
    np.testing.assert_array_equal(found["/a"], np.moveaxis(array, -1, 1))
    assert list(session.captured(FEED, ["stranger"])) == []
    assert built.wanted == [["t0", "t1", "t2"]]
    assert session.observation == PRESERVED
    session.close()


def test_a_plan_is_told_in_nodes():
    built = Built([], {}, [Region("r", ("wa/a",)), Region("s", ("y",))])
    session = LiteRtSession(parse(MODEL), lambda path, model: built, ENGINE, "")
    assert [region.nodes for region in session.plan().regions] == [("/first",), ("second", "third", "last")]
    session.close()


def test_a_copy_is_built_since_the_converter_writes_to_its_input(tmp_path):
    built = []

    class Kept:
        def compile(self, path, model, words, terms):
            built.append((path, path.is_file(), words["delegate"]))

    engine = LiteRtEngine()
    engine._conversions = Kept()
    model = parse(MODEL)
    engine.built({"delegate": "none"}, model.save(tmp_path / "m.onnx"), model)
    ((path, was_there, delegate),) = built
    assert (was_there, path.exists(), delegate) == (True, False, "none")
    assert path != tmp_path / "m.onnx"
