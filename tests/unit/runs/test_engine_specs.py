"""Which engines may be asked for what, as far as that shows without a model."""

import pytest

from tensortriage.errors import TriageError, UsageError
from tensortriage.runs.engine_specs import usable


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
