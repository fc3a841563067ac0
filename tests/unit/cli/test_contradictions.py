"""Options that contradict each other, or mean nothing, are refused before anything is read or run."""

from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from models import chain, write
from tensortriage.cli.convert.command import convert
from tensortriage.cli.debug.precision import debug_precision
from tensortriage.cli.diagnose.command import diagnose
from tensortriage.errors import TriageError
from tensortriage_builds.command import debug_build

EMULATE = ["--target", "emulate:precision=fp16"]


def refusal(command: click.Command, *words: str) -> str:
    """Return the slug of the error that a command line ends with; ``usage`` for click's own."""
    result = CliRunner().invoke(command, [*map(str, words)], standalone_mode=False)
    if isinstance(result.exception, click.UsageError):
        return "usage"
    assert isinstance(result.exception, TriageError), result.exception
    return result.exception.slug


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--int8", "--fp8"], "convert-formats-many"),
        (["--int8", "--precision", "fp16"], "convert-formats-many"),
        (["--sqnr", "30"], "option-needs-another"),
        (["--fp16", "--holdout", "x.npz"], "option-needs-another"),
        (["--int8", "--sqnr", "nan"], "usage"),
        (["--fp8", "--reduce-range"], "usage"),
        (["--precision", "fp16", "--reduce-range"], "option-needs-another"),
    ],
)
def test_convert(words, slug):
    assert refusal(convert, "missing.onnx", "-o", "out.onnx", *words) == slug


@pytest.fixture
def model(tmp_path) -> Path:
    chain(1).save(tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.mark.parametrize(
    ("command", "words", "slug"),
    [
        (diagnose, [*EMULATE, "--fix", "MODEL"], "output-is-input"),
        (diagnose, [*EMULATE, "--emit-breakers", "DIR"], "output-is-directory"),
        (diagnose, [*EMULATE, "--atol", "nan"], "tolerance-nan"),
        (diagnose, [*EMULATE, "--budget", "nan"], "usage"),
        (debug_precision, [*EMULATE, "-o", "MODEL"], "output-is-input"),
        (debug_precision, [*EMULATE, "--bf16"], "precision-formats-many"),
        (debug_precision, [*EMULATE, "--sqnr", "nan"], "usage"),
        (debug_build, ["--target", "onnxruntime", "-o", "DIR"], "output-is-directory"),
        (debug_build, ["--target", "onnxruntime", "-o", "new.engine"], "engine-not-saved"),
    ],
)
def test_searches_say_so_before_they_begin(model, command, words, slug):
    told = {"MODEL": str(model), "DIR": str(model.parent)}
    case = model.parent / "case"
    assert refusal(command, str(model), "--case", str(case), *(told.get(word, word) for word in words)) == slug
    assert not case.exists()


def test_tactics_for_an_engine_that_takes_none(model):
    (model.parent / "t.json").write_text('{"format": "tensortriage.tactics/1", "engine": "x", "choices": []}')
    words = ["--target", "onnxruntime", "--load-tactics", str(model.parent / "t.json")]
    assert refusal(debug_build, str(model), *words) == "tactics-not-taken"


@pytest.mark.parametrize(
    ("command", "words", "rows", "slug"),
    [
        (debug_precision, EMULATE, 1, "reference-nan"),
        (debug_precision, EMULATE, 0, "nothing-compared"),
        (debug_build, ["--target", "onnxruntime"], 1, "reference-nan"),
        (debug_build, ["--target", "onnxruntime"], 0, "nothing-compared"),
        (convert, ["--int8", "-o", "OUT"], 1, "quantize-not-finite"),
        (convert, ["--int8", "-o", "OUT"], 0, "nothing-compared"),
    ],
)
def test_nothing_is_good_because_the_reference_is_nan_or_empty(tmp_path, command, words, rows, slug):
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n, 2] x) => (float[n, 2] y) {y = MatMul(x, w)}'
    text = text.replace("{", "<float[2, 2] w = {1, 2, 3, 4}> {", 1)
    model = write(tmp_path / "model.onnx", text)
    np.savez(tmp_path / "x.npz", x=np.full((rows, 2), np.nan, np.float32))
    words = [str(tmp_path / "out.onnx") if word == "OUT" else word for word in words]
    words += [] if command is convert else ["--case", str(tmp_path / "case")]
    assert refusal(command, str(model), "--inputs", str(tmp_path / "x.npz"), *words) == slug
    assert not (tmp_path / "out.onnx").exists()
