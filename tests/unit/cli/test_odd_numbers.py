"""Digits that Python takes for digits, and converts to no number, are refused like any other word."""

import pytest
from click.testing import CliRunner

import models
from tensortriage.cli import cli
from tensortriage.errors import UsageError
from tensortriage_engines.tensorrt.options import parse_range

MANY = "9" * 5000  # Python converts no more than 4300 digits
TARGET = ["--target", "emulate:precision=fp16"]


@pytest.mark.parametrize("digits", ["²", MANY])
@pytest.mark.parametrize(
    "words",
    [
        ["surgeon", "extract", "m.onnx", "--node-range", "DIGITS", "3", "-o", "o.onnx"],
        ["surgeon", "sanitize", "m.onnx", "--set-unbounded-dds-upper-bound", "DIGITS", "-o", "o.onnx"],
        ["debug", "build", "m.onnx", *TARGET, "--until", "DIGITS", "--check", "true"],
        ["diagnose", "m.onnx", *TARGET, "--sweep", "x:DIGITS=1,2"],
        ["run", "m.onnx", *TARGET, "--postprocess", "top-DIGITS"],
        ["run", "m.onnx", *TARGET, "--memory-limit", "DIGITSG"],
        ["run", "m.onnx", "--trt", "--trt-min-shapes", "x:[DIGITS]"],
        ["run", "m.onnx", "--trt", "--trt-min-shapes", "x:[1e999]"],
        ["run", "m.onnx", "--trt", "--trt-min-shapes", "x:" + "[" * 9000],
    ],
)
def test_digits_that_are_no_number(tmp_path, monkeypatch, words, digits):
    monkeypatch.chdir(tmp_path)
    models.mlp().save(tmp_path / "m.onnx")
    result = CliRunner().invoke(cli, [word.replace("DIGITS", digits) for word in words], standalone_mode=False)
    assert isinstance(result.exception, UsageError), result.exception


def test_a_profile_of_digits_that_are_no_number():
    with pytest.raises(UsageError):
        parse_range("x", f"1x{MANY}")


@pytest.mark.parametrize("digits", ["²", MANY])
def test_a_dimension_that_is_a_sum_of_no_numbers(tmp_path, monkeypatch, digits):
    monkeypatch.chdir(tmp_path)
    model = models.proto("g (float[n] x) => (float[n] y) { y = Relu(x) }")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = f"n + {digits}"
    models.write(tmp_path / "m.onnx", model)
    assert CliRunner().invoke(cli, ["run", "m.onnx", *TARGET], standalone_mode=False).exception is None
