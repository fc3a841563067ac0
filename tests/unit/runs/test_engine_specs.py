"""Which engines may be asked for what, as far as that shows without a model."""

import pytest

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError, UsageError
from tensortriage.runs import engine_specs
from tensortriage.runs.engine_specs import ask_ahead, usable


def test_an_engine_from_a_file_is_not_to_be_built_anew(tmp_path):
    """Reduced, every piece would be the whole; built again, every build the same. Known without TensorRT."""
    (tmp_path / "a.plan").write_bytes(b"plan")
    spec = f"tensorrt:load_engine={tmp_path / 'a.plan'},precision=fp16"
    with pytest.raises(UsageError, match="runs as a whole") as caught:
        usable(spec, anew=True)
    assert caught.value.slug == "engine-given"
    assert "tensorrt:precision=fp16" in caught.value.cure
    with pytest.raises(TriageError) as without:  # TensorRT or a device is missing here
        usable(spec.replace("tensorrt:", "tensorrt:library=tensorrt_rtx,"))
    assert without.value.slug != "engine-given"


def test_what_is_asked_ahead_is_told_once_and_failures_when_they_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(engine_specs, "_usable", lambda text, **_: asked.append(text) or EngineSpec.parse(text))
    ask_ahead("float64")
    assert usable("float64") == EngineSpec("float64")
    assert asked == ["float64"]
    usable("float64")
    assert asked == ["float64", "float64"]
    monkeypatch.undo()
    ask_ahead("no-such-engine")
    with pytest.raises(UsageError):
        usable("no-such-engine")


def test_what_is_asked_within_other_limits_is_asked_for_itself(monkeypatch):
    asked = []
    monkeypatch.setattr(engine_specs, "_usable", lambda text, **more: asked.append(more.get("limits")))
    ask_ahead("float64")
    usable("float64", limits=Limits(run_seconds=1.0))
    assert asked == [None, Limits(run_seconds=1.0)]
    assert usable("float64", limits=Limits()) is None  # the first answer was left
    assert len(asked) == 2
