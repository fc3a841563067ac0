"""The instruments of bench/killed.py: few kills, and whether it sees what differs after them."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def killed():
    spec = importlib.util.spec_from_file_location("bench_killed", BENCH / "killed.py")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCH))  # where a script finds its siblings
    spec.loader.exec_module(loaded)
    sys.path.remove(str(BENCH))
    yield loaded
    del sys.modules[spec.name]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["reduce", "convert"])
def test_killed_commands_go_on(killed, name, tmp_path):
    undisturbed = killed.Trial(tmp_path / "undisturbed", name)
    code, seconds = undisturbed.finish()
    assert code == 0
    tally = killed.disturbed(tmp_path / "killed", name, undisturbed, seconds, 2, random.Random(1))
    assert tally.faults == []
    assert tally.repeated == 0


def test_what_differs_is_told(killed):
    verdict = {"verdict": "match", "cost": {"seconds": 1}, "next": ["a"]}
    assert killed._steady(verdict) == {"verdict": "match", "next": ["a"]}
    assert killed._difference([{"next": ["a"]}], [{"next": ["b"]}]) == "/0/next/0: a became b"
