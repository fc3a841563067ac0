"""What a report of steps says by itself: which outputs are beyond their limits, and the exit code of a verdict."""

import dataclasses

import pytest

from tensortriage.values.serial import from_json, to_json
from tensortriage_steps.steps_report import StepRow, StepsReport, StepValue

ROW = StepRow(2, 5, (StepValue("a", 0.1, 2.0, False), StepValue("b", 0.0, 0.0, True), StepValue("c", 1.0, 9.0, False)))
REPORT = StepsReport("m.onnx", "onnxruntime", "openvino", "real", ("hn=h0",), "match", "all is well", (ROW,))


def test_outputs_beyond_their_limits_are_told_in_the_order_of_the_model():
    assert [value.value for value in ROW.outside] == ["a", "c"]
    assert dataclasses.replace(ROW, values=ROW.values[1:2]).outside == ()


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("match", 0),
        ("drift", 0),
        ("inconclusive", 4),
        ("fault", 1),
        ("drift-beyond", 1),
        ("tokens", 1),
        ("self-contradiction", 1),
    ],
)
def test_only_what_is_right_ends_with_zero(verdict, code):
    assert dataclasses.replace(REPORT, verdict=verdict).exit_code == code


def test_a_report_comes_back_from_its_file_as_it_was():
    report = dataclasses.replace(REPORT, rows=(ROW, dataclasses.replace(ROW, tokens=((1, 2), (1, 3)), tie=True)))
    assert from_json(to_json(report), StepsReport, source="steps.json") == report
    assert report.again
    assert report.format == "tensortriage.steps/1"
