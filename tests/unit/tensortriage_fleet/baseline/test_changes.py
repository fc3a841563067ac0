"""What is another is told as that, and no more."""

import dataclasses

import numpy as np

from tensortriage_fleet.baseline.baseline_file import Baseline, SavedOutput, SavedTarget, SavedVerdict
from tensortriage_fleet.baseline.changes import changed_outputs, changed_premises, changed_verdict
from tensortriage_fleet.baseline.figures import figures_of
from tensortriage_fleet.baseline.measured import BaselineData, BaselineEngine, BaselineModel, MeasuredTarget

MODEL = BaselineModel("m.onnx", "aa", {"one": "Conv 1", "two": "Relu 2", "three": "Gemm 3"})
DATA = BaselineData(("m.npz",), {"m.npz[0]": {"x": "11", "mask": "22"}})
ENGINE = BaselineEngine("openvino", "fp32", "cpu", "CPU", {"engine.py": "9"})
MATCH = SavedVerdict("match", 0, "alike")
RIGHT = np.linspace(1, 2, 500, dtype=np.float32)
LIMIT = 1e-4


def saved(target=RIGHT, error=0.0, limit=LIMIT):
    outputs = {"m.npz[0]": {"y": SavedOutput(figures_of(target), error, limit, None, "noise floor")}}
    golden = {"m.npz[0]": {"y": figures_of(RIGHT)}}
    return Baseline(MODEL, DATA, golden, {"openvino": SavedTarget(ENGINE, {"engine": "1.0"}, MATCH, outputs)})


def now(output=RIGHT, **others):
    fields = {"model": MODEL, "data": DATA, "engine": ENGINE, "versions": {"engine": "1.0"}, **others}
    return MeasuredTarget(outputs={"m.npz[0]": {"y": figures_of(output)}}, **fields)


def premises(measured):
    kept = saved()
    return [(change.what, change.sentence) for change in changed_premises(kept, kept.targets["openvino"], measured)]


def outputs(kept, output):
    return list(changed_outputs(kept, kept.targets["openvino"], now(output)))


def test_each_premise_is_told_as_itself():
    assert premises(now()) == []
    other = BaselineModel("m.onnx", "bb", {**MODEL.nodes, "one": "Conv 9"})
    assert premises(now(model=other)) == [("model", "Conv 'one' changed")]
    shorter = BaselineModel("m.onnx", "bb", {"one": "Conv 1", "two": "Relu 2"})
    assert premises(now(model=shorter)) == [("model", "'three' left")]
    data = BaselineData((), {"m.npz[0]": {"x": "33", "mask": "22"}})
    assert premises(now(data=data)) == [("data", "feed 'm.npz[0]': 'x' changed")]
    assert premises(now(versions={"engine": "1.1"})) == [("version", "openvino 1.0 -> 1.1")]
    engine = dataclasses.replace(ENGINE, precision="bf16", code={"engine.py": "8"})
    assert premises(now(engine=engine)) == [
        ("engine", "precision was fp32, is bf16"),
        ("engine", "the engine's code changed: engine.py"),
    ]


def test_an_output_may_be_as_far_from_what_is_right_as_its_limit():
    kept = saved(RIGHT * np.float32(1 + 0.9 * LIMIT), 0.9 * LIMIT)
    assert outputs(kept, RIGHT * np.float32(1 - 0.9 * LIMIT)) == []  # though the two are 1.8 limits apart
    (change,) = outputs(kept, RIGHT * np.float32(1 + 3 * LIMIT))
    assert (change.what, change.output, change.limit) == ("output", "y", LIMIT)
    assert 2.0 < change.ratio < 4.0


def test_a_wrong_output_is_held_against_itself():
    wrong = RIGHT * np.float32(1.5)
    kept = saved(wrong, 0.5)
    assert outputs(kept, wrong * np.float32(1 + LIMIT)) == []
    (change,) = outputs(kept, wrong * np.float32(1.01))
    assert "away from the saved one" in change.sentence
    assert outputs(kept, RIGHT)  # right now, which is another than it was


def test_without_a_limit_only_equal_bits_are_as_they_were():
    kept = saved(limit=None)
    assert outputs(kept, RIGHT) == []
    assert outputs(kept, np.nextafter(RIGHT, np.float32(9)))


def test_a_verdict_is_another_by_its_word_and_by_its_first_culprit():
    fault = SavedVerdict("local-fault", 1, "wrong", ("Conv 'one'", "Relu 'two'"))
    assert changed_verdict(MATCH, MATCH) is None
    assert changed_verdict(MATCH, fault).sentence == "match -> local-fault at Conv 'one'"
    assert changed_verdict(fault, dataclasses.replace(fault, culprits=fault.culprits[:1])) is None
    moved = dataclasses.replace(fault, culprits=("Relu 'two'",))
    assert changed_verdict(fault, moved).sentence == "local-fault at Conv 'one' -> local-fault at Relu 'two'"
