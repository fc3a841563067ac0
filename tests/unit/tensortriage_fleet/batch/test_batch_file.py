"""The file of a batch: YAML and TOML say the same, and what is misspelt is named."""

import sys

import pytest

from tensortriage.errors import TriageError
from tensortriage_fleet.batch.batch_file import read_batch_file

YAML = """
models:
  net: net.onnx
  other: {file: other.onnx, feeds: [real], options: [--seed, 3]}
feeds: {real: feed.npz}
targets: {fp16: "emulate:precision=fp16"}
commands: [run, check lint]
timeout: 60.0
expect:
  - {model: net, verdict: [match, rounding]}
"""
TOML = """
timeout = 60.0
commands = ["run", "check lint"]
[models]
net = "net.onnx"
other = {file = "other.onnx", feeds = ["real"], options = ["--seed", 3]}
[feeds]
real = "feed.npz"
[targets]
fp16 = "emulate:precision=fp16"
[[expect]]
model = "net"
verdict = ["match", "rounding"]
"""


def read(folder, text, name="batch.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_batch_file(path)


def test_yaml_and_toml_say_the_same(tmp_path):
    found = read(tmp_path, YAML)
    assert found == read(tmp_path, TOML, "batch.toml")
    assert found.models["net"].file == "net.onnx"
    assert found.feeds["real"].inputs == ("feed.npz",)
    assert found.commands["check lint"].run == "check lint"
    assert found.expect[0].verdict == ("match", "rounding")


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        ("modles: {a: a.onnx}\ncommands: [run]", "batch-file-key", "did you mean 'models'?"),
        ("models: {a: {fil: a.onnx}}\ncommands: [run]", "batch-file-key", "did you mean 'file'?"),
        (
            "models: {a: a.onnx}\ncommands: [run]\nexpect: [{verdit: match}]",
            "batch-file-key",
            "did you mean 'verdict'?",
        ),
        ("models: {a: a.onnx}\ncommands: [run]\nexpect: [{verdict: macht}]", "batch-file-invalid", "'match'"),
        (
            "models: {a: a.onnx}\ncommands: [run]\nexpect: [{match: true, exit: 0}]",
            "batch-file-invalid",
            "more than one",
        ),
        ("models: {a: a.onnx}\ncommands: [run]\ntimeout: soon", "batch-file-invalid", "$.timeout"),
        ("models: {a: a.onnx}", "batch-file-invalid", "commands"),
        ("models: {a: [1]}\ncommands: [run]", "batch-file-invalid", "models"),
        ("models: {'a/b': a.onnx}\ncommands: [run]", "batch-file-name", "a/b"),
        ("models: {no: a.onnx}\ncommands: [run]", "batch-file-name", "False"),
        ("models: {a: a.onnx, a: b.onnx}\ncommands: [run]", "batch-file-unreadable", "given twice"),
        ("models: &all {a: a.onnx}\nfeeds: *all\ncommands: [run]", "batch-file-unreadable", "alias"),
        ("models: [", "batch-file-unreadable", "line 1"),
        ("[1, 2]", "batch-file-invalid", "no table"),
        ("", "batch-file-invalid", "no table"),
        ("format: tensortriage.batch/9\nmodels: {a: a.onnx}\ncommands: [run]", "format-unknown", "batch/9"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, slug, said):
    with pytest.raises(TriageError) as raised:
        read(tmp_path, text)
    assert raised.value.slug == slug
    assert said in f"{raised.value.message} {raised.value.cure}"


def test_nested_yaml_ends_in_an_error(tmp_path):
    with pytest.raises(TriageError) as raised:
        read(tmp_path, "[" * 500)
    assert raised.value.slug == "batch-file-unreadable"


def test_toml_needs_no_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert read(tmp_path, TOML, "batch.toml").targets["fp16"].engine == "emulate:precision=fp16"
    with pytest.raises(TriageError) as raised:
        read(tmp_path, YAML)
    assert raised.value.slug == "yaml-missing"
