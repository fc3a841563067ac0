"""What the adapter refuses before it asks TensorRT."""

import types
from pathlib import Path

import pytest

from tensorrt_stand_in import Runtime
from tensortriage_engines.tensorrt.worker import adapter, memory
from tensortriage_worker.adapter import AdapterError, AdapterFailure


def test_an_engine_without_weights_is_not_run(monkeypatch):
    """It may be built; what it would compute is not the model's."""
    monkeypatch.setattr(memory, "_runtime", Runtime)
    monkeypatch.setattr(adapter, "load", lambda options: types.SimpleNamespace(ILogger=object, __version__="10"))
    with pytest.raises(AdapterError, match="without its weights") as caught:
        adapter.compile(Path("m.onnx"), {"builder_flags": "direct_io+strip_plan"})
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "engine-stripped")
