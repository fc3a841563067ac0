"""A sample of the study of planted sensitive nodes: the bars of ``bench/precision.py`` hold for each case by itself."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "precision.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_precision", SOURCE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("number", range(4))
def test_planted_nodes_are_found(bench, number):
    """Sensitive nodes exactly, interacting pairs within 2, in at most 10 builds; the smallest set is planted."""
    kind = bench.KINDS[number]
    (row,) = bench.study(1, "emulate:precision=fp16", (40, 60), [kind], first=number)
    assert row.hit
    assert row.kept - row.needed <= 2 * kind.pairs
    assert row.builds <= 10
