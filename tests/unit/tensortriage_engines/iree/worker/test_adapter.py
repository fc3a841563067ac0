"""What IREE's adapter asks of compiler and runtime; stand-ins for both, none of IREE."""

import json
import sys
import types

import numpy as np
import pytest

from tensortriage_engines.iree.worker import adapter
from tensortriage_engines.iree.worker.adapter import IreeSession
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

PROGRAM = """#!/bin/sh
{then}
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then made="$2"; shift; else said="$said $1"; fi
  shift
done
echo "$said" > "$made"
[ -f "${{made%.vmfb}}.mlir" ] && [ "${{made%.vmfb}}" != "$made" ] && cat "${{made%.vmfb}}.mlir" >> "$made"
exit 0
"""
"""Writes its arguments, and of the compiler what it compiles behind them."""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return what puts the programs beside the Python that runs."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    def put(then=""):
        for name in ("iree-import-onnx", "iree-compile"):
            (tmp_path / name).write_text(PROGRAM.format(then=then))
            (tmp_path / name).chmod(0o755)
        return tmp_path / "m.onnx"

    return put


def options(**given):
    x, y = ({"name": name, "dtype": "float32", "shape": [2]} for name in "xy")
    words = {"declared": {"inputs": [x], "outputs": [y]}, "flags": {}}
    return {"precision": "fp32", "opset": "17", **{key: json.dumps(word) for key, word in words.items()}, **given}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["--iree-llvmcpu-target-cpu=host"]),
        ({"optimize": "O2"}, ["--iree-opt-level=O2", "--iree-llvmcpu-target-cpu=host"]),
        ({"precision": "fp16"}, ["--iree-input-demote-f32-to-f16", "--iree-llvmcpu-target-cpu=host"]),
        (
            {"flags": json.dumps({"iree-llvmcpu-target-cpu": "generic", "switch": ""})},
            ["--iree-llvmcpu-target-cpu=generic", "--switch"],
        ),
    ],
)
def test_options_become_flags_of_the_compiler(programs, given, words):
    model = programs()
    compiled, imported = adapter._converted(model, options(**given)).decode().splitlines()
    source, *flags = compiled.split()
    assert source.endswith("model.mlir")
    assert flags == [*adapter._BACKEND, *words]
    assert imported.split() == [str(model), "--opset-version", "17"]


def test_a_refusal_is_told_without_the_place_in_the_text(programs):
    model = programs('echo "/tmp/x/model.mlir:3:9: error: no op"; echo "note"; exit 1')
    with pytest.raises(AdapterError) as caught:
        adapter._converted(model, options())
    assert caught.value.message == "iree-import-onnx failed: error: no op"


def test_without_the_programs_it_is_missing(programs, tmp_path):
    with pytest.raises(AdapterError) as caught:
        adapter._converted(tmp_path / "m.onnx", options())
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "iree-missing")


class Runtime:
    """A runtime whose modules have given functions; what is compiled of marked text returns inner values behind."""

    def __init__(self, names=("__init", "main$async", "main"), refusal=None):
        self.names, self.refusal, self.loaded, self.called = list(names), refusal, [], []
        self.Config = lambda driver: driver
        self.SystemContext = lambda config: self
        self.VmModule, self.instance = self, None

    def copy_buffer(self, instance, content):
        if self.refusal:
            raise self.refusal
        self.loaded.append(content)
        return types.SimpleNamespace(function_names=self.names, name="module")

    def add_vm_module(self, module):
        self.modules = {"module": {"main": self.function(len(self.loaded))}}

    def function(self, number):
        def function(array):
            self.called.append(array.dtype.name)
            results = [array * 2, array * 3][:number]
            return types.SimpleNamespace(to_host=lambda: results[0]) if number == 1 else results

        return function


FEED = {"x": Item("x", np.float32([1, 2]))}


def opened(runtime, **words):
    chosen = options(**words)
    return IreeSession(runtime, b"content", json.loads(chosen["declared"]), {}, chosen)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("fp16", "float16")])
def test_a_module_is_called_in_its_format(precision, dtype):
    runtime = Runtime()
    session = opened(runtime, precision=precision)
    (item,) = session.run(FEED)
    assert (item.array.dtype, item.array.tolist()) == (np.float32, [2, 4])
    assert (runtime.called, runtime.loaded) == ([dtype], [b"content"])
    assert session.another().outputs == session.outputs
    assert runtime.loaded == [b"content"] * 2  # what was compiled serves both
    session.close()


@pytest.mark.parametrize(
    "runtime", [Runtime(["__init", "a$b"]), Runtime(refusal=RuntimeError("no")), Runtime(refusal=ValueError("no"))]
)
def test_a_module_that_the_runtime_refuses(runtime):
    with pytest.raises(AdapterError) as caught:
        opened(runtime)
    assert caught.value.kind is AdapterFailure.BUILD


def test_an_earlier_conversion_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(adapter, "imported", lambda library: (Runtime(),))
    (tmp_path / "m.vmfb").write_bytes(b"kept")
    session = adapter.compile(tmp_path / "m.onnx", options(converted=str(tmp_path / "m.vmfb")))
    assert session.answer("converted", {}, {}, None)[1][0].array.tobytes() == b"kept"
