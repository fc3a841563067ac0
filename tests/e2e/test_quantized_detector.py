"""The page docs/quantized-detector.md end to end: detections are lost, and back with the printed line."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FILE = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```$", re.DOTALL | re.MULTILINE)
pytestmark = [pytest.mark.lengthy, pytest.mark.unbudgeted]


def python(folder, *words):
    """Run Python and return what it prints."""
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def diagnosed(folder, *words):
    """Return the verdict on the detector."""
    command = [
        sys.executable,
        "-m",
        "tensortriage",
        "diagnose",
        "detector.onnx",
        "--inputs",
        "images.npz",
        *words,
        "--fresh",
    ]
    subprocess.run(
        command, cwd=folder, capture_output=True, timeout=300, check=False, env={**os.environ, "COLUMNS": "100"}
    )
    return json.loads((folder / "triage-case/verdict.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("detector")
    for text, name in FILE.findall((REPOSITORY / "docs/quantized-detector.md").read_text(encoding="utf-8")):
        (made / name).write_text(text, encoding="utf-8")
    python(made, "detector.py")
    assert python(made, "detect.py", "detector.onnx") == "4 of 4 objects detected\n"
    return made


def test_the_printed_line_brings_the_detections_back(folder):
    python(folder, "quantize.py")
    assert python(folder, "detect.py", "int8.onnx") == "0 of 4 objects detected\n"
    verdict = diagnosed(folder, "--target-model", "int8.onnx", "--target", "onnxruntime")
    assert verdict["verdict"] == "quantization"
    assert [culprit["node"] for culprit in verdict["culprits"]] == ["/head/Concat"]
    assert verdict["remedy"]["kind"] == "exclude"
    line = verdict["next"][0].replace("...", '"detector.onnx", "int8.onnx", Images(), per_channel=True')
    (folder / "printed.py").write_text(
        f"from onnxruntime.quantization import quantize_static\nfrom quantize import Images\n{line}\n", encoding="utf-8"
    )
    python(folder, "printed.py")
    assert python(folder, "detect.py", "int8.onnx") == "4 of 4 objects detected\n"
    assert diagnosed(folder, "--target-model", "int8.onnx", "--target", "onnxruntime")["verdict"] == "rounding"


@pytest.mark.skipif(importlib.util.find_spec("nncf") is None, reason="NNCF is not installed")
def test_a_file_of_nncf_keeps_them(folder):
    python(folder, "quantize_nncf.py")
    assert python(folder, "detect.py", "int8.xml") == "4 of 4 objects detected\n"
    assert diagnosed(folder, "--target", "openvino:file=int8.xml")["verdict"] == "rounding"
