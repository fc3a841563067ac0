"""The public surface is a list, every name of it can be had, and having one does not load the others."""

import dataclasses
import inspect
import re
import subprocess
import sys

import pytest

from running_cli import EXAMPLES
from tensortriage import api
from tensortriage.runs.commands.check import CheckSpec
from tensortriage_builds.goal import BuildGoal


def test_the_list_is_sorted_and_complete():
    assert api.__all__ == sorted(api.__all__)
    assert {"diagnose", "EngineSpec"} <= set(api.__all__)
    assert {"diagnose", "EngineSpec", "study_builds", "BuildRequest"} <= set(dir(api))


def test_every_name_can_be_had_and_says_what_it_is():
    for name in api.__all__:
        found = getattr(api, name)
        assert inspect.getdoc(found), name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(api, "diagnoze")


def test_a_request_and_its_function_come_together():
    requests = {name for name in api.__all__ if name.endswith("Request")} - {"FeedRequest"}
    annotations = {
        parameter.annotation.__name__ if inspect.isclass(parameter.annotation) else str(parameter.annotation)
        for name in api.__all__
        if inspect.isfunction(getattr(api, name))
        for parameter in inspect.signature(getattr(api, name), eval_str=True).parameters.values()
    }
    assert requests <= annotations


def test_importing_it_loads_nothing_else():
    heavy = "onnx", "onnx_ir", "onnxruntime", "numpy", "click", "rich"
    code = f"import sys, tensortriage.api; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_diagnosis_from_python(tmp_path):
    verdict = api.diagnose(
        api.DiagnoseRequest(
            model=EXAMPLES / "digits_cnn.onnx",
            target="onnxruntime",
            feeding=api.FeedRequest(paths=[str(EXAMPLES / "digits.npz")]),
            case=tmp_path / "case",
        )
    )
    assert verdict.kind is api.VerdictKind.MATCH


def written(folder):
    return api.Target(folder / "o.onnx")


CALLS = {
    "compare": lambda model, folder: api.CompareRequest(model=model, targets=[api.EngineSpec.parse("onnxruntime")]),
    "reduce": lambda model, folder: api.ReduceRequest(
        model=model, output=folder / "piece.onnx", case=folder / "case", artifact=folder / "now.onnx",
        check=CheckSpec(words=("sh", "-c", f"! grep -q Relu {folder / 'now.onnx'}")),
    ),
    "find_precision": lambda model, folder: api.PrecisionRequest(
        model=model, target="emulate:precision=fp16", case=folder / "case"
    ),
    "study_builds": lambda model, folder: api.BuildRequest(
        model=model, target="onnxruntime", goal=BuildGoal(until=1), case=folder / "case"
    ),
    "sanitize": lambda model, folder: api.SanitizeRequest(source=api.Source(model), target=written(folder)),
    "extract": lambda model, folder: api.ExtractRequest(source=api.Source(model), target=written(folder)),
    "convert": lambda model, folder: api.ConvertRequest(source=api.Source(model), target=written(folder)),
}  # fmt: skip
"""The other calls that the documentation lists, with the least that each needs."""


@pytest.mark.parametrize("name", CALLS)
def test_every_documented_call_runs_with_a_request_alone(name, tmp_path):
    request = CALLS[name](EXAMPLES / "digits_cnn.onnx", tmp_path)
    assert dataclasses.is_dataclass(getattr(api, name)(request))


def test_the_documentation_lists_no_other_calls():
    page = (EXAMPLES.parent / "docs/machines.md").read_text()
    listed = set(re.findall(r"`(\w+)\(\w+Request\)`", page))
    assert listed == {*CALLS, "diagnose"}
