"""Options of ncnn, and values recognised by their numbers."""

import numpy as np
import pytest

from tensortriage.errors import UsageError
from tensortriage_engines.ncnn.engine import NcnnEngine, same_values

ENGINE = NcnnEngine()
RANDOM = np.random.default_rng(0)


def test_a_value_is_the_blob_with_its_numbers():
    x, y = RANDOM.standard_normal((1, 4, 6), np.float32), RANDOM.standard_normal((1, 4, 6), np.float32)
    blobs = {"1": y[0], "2": x[0] * np.float32(1 + 1e-6), "3": x[0], "4": np.zeros(24, np.float32)}
    found = same_values(blobs, {"x": x, "y": y, "flat": y.reshape(24), "none": x + y, "zero": np.zeros(24, np.float32)})
    assert found == {"x": ("2", (1, 4, 6)), "y": ("1", (1, 4, 6)), "flat": ("1", (24,))}


def test_the_ladder_begins_with_plain_kernels():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,kernels=plain", "as given"]
    rungs = ENGINE.ladder({"precision": "bf16"})
    assert [words for words, _ in rungs] == ["precision=fp32,kernels=plain", "precision=fp32", "as given"]


def test_a_file_without_its_weights_is_refused(tmp_path):
    (tmp_path / "m.param").write_text("")
    with pytest.raises(UsageError) as caught:
        ENGINE.check({"file": str(tmp_path / "m.param")})
    assert caught.value.slug == "engine-option-file"
