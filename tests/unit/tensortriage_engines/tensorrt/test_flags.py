"""Polygraphy's TensorRT flags, as options of the engine."""

import pytest
from click.testing import CliRunner

from tensortriage.cli.declared import command
from tensortriage.errors import UsageError
from tensortriage_engines.tensorrt.flags import TensorrtOptions


def parse(*words: str) -> dict[str, str]:
    """Return the engine options that flags stand for."""
    found: dict[str, str] = {}

    def fill(given: TensorrtOptions, as_json: bool) -> None:
        found.update(given.words())
        found["any"] = given.any_given()

    result = CliRunner().invoke(command()(fill), list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"precision": "fp32", "any": ""}),  # Polygraphy leaves TF32 off unless asked
        ("--tf32", {"precision": "tf32", "any": "--tf32"}),
        ("--fp16", {"precision": "fp16", "any": "--fp16"}),
        ("--fp16 --int8", {"precision": "int8", "fallback": "fp16", "any": "--fp16"}),
        ("--int8 --bf16 --fp16", {"precision": "int8", "fallback": "bf16+fp16", "any": "--fp16"}),
        ("--strongly-typed", {"precision": "mixed", "any": "--strongly-typed"}),
    ],
)
def test_formats(words, expected):
    assert parse(*words.split()) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--builder-optimization-level", "0"], {"opt_level": "0"}),
        (["--save-engine", "a", "--load-timing-cache", "b", "--save-timing-cache", "c"],
         {"save_engine": "a", "load_timing_cache": "b", "timing_cache": "c"}),
        (["--save-tactics", "t", "--load-tactic-replay", "r"], {"save_tactics": "t", "load_tactics": "r"}),
        (["--tactic-sources", "CUBLAS", "CUBLAS_LT"], {"tactic_sources": "CUBLAS+CUBLAS_LT"}),
        (["--pool-limit", "workspace:1.5G"], {"workspace": "1536"}),
        (["--plugins", "a.so", "b.so"], {"plugins": "a.so+b.so"}),
        (["--layer-precisions", "a:float32", "b:fp32"], {"kept": "a+b", "constraints": "prefer"}),
        (["--layer-precisions", "a:float32", "--precision-constraints", "obey"], {"kept": "a", "constraints": "obey"}),
        (["--layer-precisions", "a:float32", "--precision-constraints", "none"], {}),
        (["--sparse-weights", "--refittable", "--version-compatible", "--error-on-timing-cache-miss"],
         {"sparse": "true", "refit": "true", "version_compatible": "true", "no_new_timings": "true"}),
        (["--max-aux-streams", "0"], {"max_aux_streams": "0"}),
        (["--calib-base-cls", "IInt8MinMaxCalibrator"], {"calibrator": "minmax"}),
        (["--calibration-cache", "no-such.cache"], {"save_calibration": "no-such.cache"}),
        (["--calibration-cache", __file__], {"calibration_cache": __file__}),
        (["--mark-unfused-tensors-as-debug-tensors"], {"observe": "unfused"}),
    ],
)  # fmt: skip
def test_everything_else(words, expected):
    found = parse(*words)
    assert found.pop("any"), "a flag that was given must be noticed"
    assert found == {"precision": "fp32", **expected}


def test_shapes_are_put_together_by_input():
    found = parse(
        "--trt-min-shapes", "x:[1,3,8]", "ids:[1,4]", "--trt-opt-shapes", "x:[2,3,8]",
        "--trt-max-shapes", "x:[4,3,8]", "ids:[9,4]",
    )  # fmt: skip
    assert found["profile.x"] == "1x3x8:2x3x8:4x3x8"
    assert found["profile.ids"] == "1x4:9x4:9x4"


@pytest.mark.parametrize(
    "words",
    [
        ["--fp16", "--strongly-typed"],
        ["--layer-precisions", "a:float16"],
        ["--pool-limit", "dla_local_dram:1G"],
        ["--trt-min-shapes", "x:[1]", "--trt-min-shapes", "x:[2]"],
        ["--trt-opt-shapes", "x:1x3"],
    ],
)
def test_what_has_no_counterpart_is_an_error(words):
    with pytest.raises(UsageError):
        parse(*words)
