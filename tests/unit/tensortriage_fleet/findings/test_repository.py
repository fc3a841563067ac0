"""Where a finding is: a line of the repository's own source, else the model's file."""

from pathlib import Path

import pytest

from tensortriage_fleet.findings.finding import Finding
from tensortriage_fleet.findings.repository import FilePlace, Repository

MODEL = Path("models/net.onnx")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for file in ("net.py", "pkg/layers.py", "lib/site-packages/torch/conv.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x\n" * 20)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    return Repository.here()


@pytest.mark.parametrize(
    ("recorded", "line", "expected"),
    [
        ("{root}/pkg/layers.py", 13, FilePlace("pkg/layers.py", 13)),
        ("/home/me/project/pkg/layers.py", 13, FilePlace("pkg/layers.py", 13)),
        (r"C:\work\project\pkg\layers.py", 13, FilePlace("pkg/layers.py", 13)),
        ("net.py", 21, FilePlace("net.py", 21)),
        ("/home/me/net.py", 22, FilePlace("models/net.onnx")),  # another file: this one has no such line
        ("/venv/lib/python3.11/site-packages/pkg/layers.py", 13, FilePlace("models/net.onnx")),
        ("{root}/lib/site-packages/torch/conv.py", 13, FilePlace("models/net.onnx")),
        ("../pkg/layers.py", 13, FilePlace("models/net.onnx")),
        ("/elsewhere/other.py", 1, FilePlace("models/net.onnx")),
        ("net.py", 0, FilePlace("models/net.onnx")),
        ("", 0, FilePlace("models/net.onnx")),
        ("a\0b.py", 1, FilePlace("models/net.onnx")),
    ],
)
def test_the_source_where_the_repository_has_it(repository, tmp_path, recorded, line, expected):
    finding = Finding("r", "t", "m", file=recorded.format(root=tmp_path), line=line)
    assert repository.place(finding, MODEL) == expected


def test_paths_are_from_the_root_wherever_the_command_runs(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "models")
    assert Repository.here() == repository
    assert Repository.here().path(Path("net.onnx")) == "models/net.onnx"
    assert repository.path(Path("/elsewhere/net.onnx")) == "/elsewhere/net.onnx"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "models"))
    assert Repository.here().path(Path("net.onnx")) == "net.onnx"
