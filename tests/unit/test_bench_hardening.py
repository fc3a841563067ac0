"""The instruments of bench/soak.py and bench/killed.py: few checks, commands and kills, and whether they see a leak."""

import importlib.util
import random
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module", params=["soak", "killed"])
def module(request):
    spec = importlib.util.spec_from_file_location(f"bench_{request.param}", BENCH / f"{request.param}.py")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCH))  # where a script finds its siblings
    spec.loader.exec_module(loaded)
    sys.path.remove(str(BENCH))
    yield loaded
    del sys.modules[spec.name]


@pytest.mark.parametrize("module", ["soak"], indirect=True)
def test_checks_leave_nothing(module, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    early, late = module.soak_checks(tmp_path, 80)
    assert [word for word in late.excess(early) if not word.startswith("memory")] == []
    assert late.resident_bytes < 1.15 * early.resident_bytes  # 80 checks say less of memory than a thousand
    assert module.Held(100, 9, 1, 0, 1).excess(module.Held(90, 8, 1, 0, 0)) == [
        "memory grew from 0 to 0 MB", "handles grew from 8 to 9", "temporary_files grew from 0 to 1",
    ]  # fmt: skip


@pytest.mark.parametrize("module", ["soak"], indirect=True)
def test_commands_leave_nothing(module, tmp_path):
    assert module.soak_commands(tmp_path, 6) == []


@pytest.mark.parametrize("module", ["killed"], indirect=True)
@pytest.mark.parametrize("name", ["reduce", "convert"])
def test_killed_commands_go_on(module, name, tmp_path):
    undisturbed = module.Trial(tmp_path / "undisturbed", name)
    code, seconds = undisturbed.finish()
    assert code == 0
    tally = module.disturbed(tmp_path / "killed", name, undisturbed, seconds, 2, random.Random(1))
    assert tally.faults == []
    assert tally.repeated == 0


@pytest.mark.parametrize("module", ["killed"], indirect=True)
def test_what_differs_is_told(module):
    verdict = {"verdict": "match", "cost": {"seconds": 1}, "next": ["a"]}
    assert module._steady(verdict) == {"verdict": "match", "next": ["a"]}
    assert module._difference([{"next": ["a"]}], [{"next": ["b"]}]) == "/0/next/0: a became b"
