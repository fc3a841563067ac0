"""The notebooks of the examples, executed in a copy of their folder: they end as they show, and show no place."""

import json
import re
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAID = {
    "nan_in_fp16": (
        "range-overflow 0.99 exit code 1",
        "Mul /attention_bias/Mul",
        "stay in fp32:\n/attention_bias/Mul",
        "True ['rms",
    ),
    "exporter_mistake": (
        "model-changed by padding",
        "Conv /block2/conv1/Conv",
        "pads (0, 0, 2, 2) instead of (1, 1, 1, 1)",
    ),
    "int8": (
        "rounding exit code 0",
        "quantization exit code 1",
        "its scale is too large, by a factor of 16",
        "shows first at /block1/conv2/Conv_output_0",
    ),
}


def shown(notebook):
    """Return the text that a notebook shows."""
    found = []
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
        found += [output.get("text", ""), *output.get("data", {}).values()]
    return "\n".join("".join(text) for text in found)


@pytest.mark.parametrize("name", SAID)
def test_what_a_notebook_shows_names_no_place_and_no_time_of_day(name):
    text = shown(json.loads((EXAMPLES / f"{name}.ipynb").read_text()))
    assert all(words in text for words in SAID[name])
    assert not re.search(r"/(tmp|root|home|usr|work)/|0x[0-9a-f]{6}|\d\d:\d\d:\d\d", text)


@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs_and_ends_as_it_shows(name, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("triage-case*"))
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    place = {"metadata": {"path": str(tmp_path / "examples")}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    text = shown(notebook)
    assert all(words in text for words in SAID[name])
    assert "is the reference sound? yes" in text, "the answers show as they come"
