"""Public bug reports, rebuilt by `bench/reports`: the verdict that is right, with the cause and the culprit in words.

What is right is what the threads found; `bench/reports.py` holds the answer against it and exits with 1 if it differs.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "reports.py"
FIRST = [
    "masked-row", "boxes-and-scores-share-a-scale", "clipped-biases", "biases-that-fit", "opset-number-raised",
    "floordiv-of-a-framework", "blue-first", "integer-of-a-sigmoid", "first-run-of-a-session", "variance-beyond-fp16",
    "vanishing-epsilon", "pad-of-a-made-up-length",
]  # fmt: skip
CHEAP = [
    "gelu-of-the-other-form", "square-matrix-transposed", "division-by-a-vanished-epsilon", "nearest-pixel",
    "resize-with-another-grid", "clip-of-the-low-bits", "large-floats-made-integers", "layer-normalization-in-int8",
    "noise-of-a-vocoder", "neighbours-of-equal-distance", "backward-half-starts-elsewhere",
]  # fmt: skip


def answer_of(name: str) -> subprocess.CompletedProcess[str]:
    """Return what the runner prints of one report."""
    return subprocess.run([sys.executable, BENCH, name], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.lengthy
@pytest.mark.subprocess
@pytest.mark.parametrize("name", [*FIRST, *CHEAP])
def test_the_answer_is_what_the_thread_found(name):
    if name == "masked-row" and importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    run = answer_of(name)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 reports: right kind 1 (100%), cause in words 1 (100%), wrong and sure 0" in run.stdout
