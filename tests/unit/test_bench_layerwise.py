"""The benchmark's own instruments: does it see the time, the memory and the tensors that are there?"""

import importlib.util
import sys
from pathlib import Path

import onnx
import pytest

from tensortriage_testing.models import encoder, save_model

pytestmark = pytest.mark.lengthy

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "layerwise.py"
HOLD_200_MB = "import time; block = b'x' * 200_000_000; time.sleep(0.3); print('done')"


@pytest.fixture(scope="module")
def layerwise():
    spec = importlib.util.spec_from_file_location("bench_layerwise", SOURCE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(SOURCE.parent))  # where a script finds its siblings
    spec.loader.exec_module(module)
    sys.path.remove(str(SOURCE.parent))
    yield module
    del sys.modules[spec.name]


def test_peak_memory_and_time_of_a_process(layerwise, tmp_path):
    cost = layerwise.measure([sys.executable, "-c", HOLD_200_MB], tmp_path)
    assert (cost.exit_code, cost.output) == (0, "done\n")
    assert 200e6 < cost.peak_bytes < 300e6
    assert cost.wall_seconds > 0.3


def test_memory_of_children_counts(layerwise, tmp_path):
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD_200_MB!r}], check=True)"
    assert layerwise.measure([sys.executable, "-c", nested], tmp_path).peak_bytes > 200e6


def test_a_failure_is_shown_and_gives_no_ratio(layerwise, tmp_path):
    fine = layerwise.Cost(2.0, 1.5, 10**9, 0, "")
    broken = layerwise.measure([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path)
    rows = list(layerwise.table({"two bare sessions": fine, "polygraphy run": broken}))
    assert "exit code 1: no such thing" in rows[2]
    assert rows[1].split() == ["two", "bare", "sessions", "2.00", "1.00", "-", "1.50", "-", "1000", "+0"]


def test_ratios(layerwise):
    bare, polygraphy = layerwise.Cost(2.0, 1.5, 10**9, 0, ""), layerwise.Cost(30.0, 25.0, 3 * 10**9, 0, "")
    rows = list(layerwise.table({"two bare sessions": bare, "polygraphy run": polygraphy}))
    assert rows[1].split()[3:] == ["2.00", "1.00", "15.0x", "1.50", "16.7x", "1000", "+0"]
    assert rows[2].split()[2:] == ["30.00", "15.00", "1.0x", "25.00", "1.0x", "3000", "+2000"]


def test_every_tensor_is_marked_once(layerwise, tmp_path):
    model = encoder(layers=1)
    marked = onnx.load(layerwise.mark_everything(save_model(model, tmp_path / "m.onnx"), tmp_path))
    names = [value.name for value in marked.graph.output]
    assert len(names) == len(set(names)) == len(model.graph.node)
    assert set(names) == {node.output[0] for node in model.graph.node}
