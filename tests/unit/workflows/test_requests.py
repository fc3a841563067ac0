"""What commands do unless they are told otherwise, in Python as on the command line, and what only --help-all lists."""

import dataclasses
from pathlib import Path

import pytest

from tensortriage.cli.declared import parameters, taken
from tensortriage.runs.options.request_fields import BATCH_BYTES, LOW_MEMORY_BATCH_BYTES
from tensortriage.values.options import DECLARED, OptionPart
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_builds.request import BuildRequest
from tensortriage_polygraphy.lint.request import LintRequest

MODEL = {"model": Path("m.onnx"), "target": "openvino"}
FED = {"--seed", "--val-range", "--iterations", "--data-loader-script", "--data-loader-backend-module"}
"""Rare options of made-up data, which every command with feeds has."""
WEIGHTS = {"--external-data-dir"}


def usual(request_type):
    """Return what a command line with nothing but what is needed gives for the parameters of click."""
    found = {}
    for one in parameters(request_type):
        many = one.multiple or one.nargs == -1
        found[one.name] = () if many else one.default if isinstance(one.default, str | int | float | Path) else None
    return {**found, **{name: value for name, value in MODEL.items() if name in found}}


@pytest.mark.parametrize(
    ("request_type", "given", "values"),
    [
        (DiagnoseRequest, MODEL, {"random_too": True, "repro": True, "in_blocks": True, "batch_bytes": BATCH_BYTES}),
        (LintRequest, {"model": Path("m.onnx")}, {"target": "onnxruntime", "formats": ()}),
        (BuildRequest, MODEL, {"record": True, "check": None, "output": None, "keep_artifact": False}),
    ],
)
def test_python_and_the_command_line_have_the_same_defaults(request_type, given, values):
    made = request_type(**given)
    assert {name: getattr(made, name) for name in values} == values
    words = usual(request_type) | ({"target": "onnxruntime"} if request_type is LintRequest else {})
    assert request_type(**taken(OptionPart(request_type), words)) == made


@pytest.mark.parametrize(("request_type", "most"), [(DiagnoseRequest, 8), (LintRequest, 1), (BuildRequest, 2)])
def test_how_many_feeds_are_used(request_type, most):
    assert request_type(**MODEL).feeding.most == most


@pytest.mark.parametrize(
    ("request_type", "rare"),
    [
        (DiagnoseRequest, FED | WEIGHTS | {"--no-random-data", "--no-repro"}),
        (LintRequest, FED | WEIGHTS),
    ],
)
def test_what_only_the_long_help_lists(request_type, rare):
    assert {one.opts[0] for one in parameters(request_type) if getattr(one, "rare", False)} == rare


def test_no_request_can_be_changed_or_be_mistaken_for_another():
    request = DiagnoseRequest(**MODEL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.target = "other"
    with pytest.raises(TypeError):
        DiagnoseRequest(Path("m.onnx"), "openvino")


def option_of(request_type, name):
    """Return the only option of a field."""
    (declared,) = request_type.__dataclass_fields__[name].metadata[DECLARED]
    return declared


def test_less_memory_is_a_smaller_batch_of_tensors():
    assert option_of(DiagnoseRequest, "batch_bytes").value == LOW_MEMORY_BATCH_BYTES < BATCH_BYTES


def test_limits_of_numbers():
    assert option_of(DiagnoseRequest, "budget_seconds").above == 0
    assert option_of(DiagnoseRequest, "builds").least == 0
