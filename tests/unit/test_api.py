"""The public surface is a list, every name of it can be had, and having one does not load the others."""

import inspect
import subprocess
import sys

from running_cli import EXAMPLES
from tensortriage import api


def test_the_list_is_sorted_and_complete():
    assert api.__all__ == sorted(api.__all__)
    assert set(api.__all__) == set(api._HOMES)


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
