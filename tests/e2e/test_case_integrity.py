"""What a disk or a stranger did to a case between two commands is noticed, and asked for again."""

import json
from pathlib import Path

import pytest

from reducing import dag
from running_cli import triage

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORDS = [
    "diagnose", EXAMPLES / "digits_cnn.onnx", "--target", "emulate:precision=fp16", "--inputs", EXAMPLES / "digits.npz",
]  # fmt: skip


def diagnose(folder):
    done = triage(*WORDS, "--json", "--case", folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["verdict"]


@pytest.mark.lengthy
def test_zeroed_tensors_change_no_verdict(tmp_path):
    case = tmp_path / "case"
    before = diagnose(case)
    shards = sorted((case / "runs").rglob("*.safetensors"))
    assert shards
    for shard in shards:
        data = bytearray(shard.read_bytes())
        data[-(len(data) // 4) :] = bytes(len(data) // 4)
        shard.write_bytes(data)
    after = diagnose(case)
    assert (after["verdict"], after["culprits"]) == (before["verdict"], before["culprits"])


def test_a_planted_link_is_not_written_through(tmp_path):
    case = tmp_path / "case"
    diagnose(case)
    (tmp_path / "mine").write_text("mine")
    for name in (".r.html.partial", ".report.html.partial"):
        (case / name).symlink_to(tmp_path / "mine")
    for name in ("r.html", "report.html"):
        assert triage("report", case, "-o", case / name, cwd=tmp_path).returncode == 0
        assert "<html" in (case / name).read_text()
    assert (tmp_path / "mine").read_text() == "mine"


def test_links_among_the_outputs_lead_nothing_of_the_users_astray(tmp_path):
    names = dag(tmp_path, 8)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/thesis.txt").write_text("mine")
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real/o.onnx").symlink_to("../theirs/thesis.txt")
    (tmp_path / "r_repro").symlink_to("theirs")
    done = triage("convert", "m.onnx", "--precision", "fp16", "-o", "folder/o.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "real/o.onnx").is_symlink()
    words = ["--target", f"script:faulty.py,kind=scale,node={names[4]}", "--inputs", "m.npz"]
    done = triage("debug", "reduce", "m.onnx", "-o", "r.onnx", *words, cwd=tmp_path)
    assert (done.returncode, "error[repro-folder-foreign]" in done.stderr) == (2, True), done.stderr
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "theirs/thesis.txt").read_text() == "mine"
