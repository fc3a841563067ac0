"""The reference of a comparison that loses what does not fit in int16 gives its place to float64."""

import numpy as np
import pytest
from onnx import numpy_helper

import models
from investigations import investigate  # noqa: F401 - registers the stand-in
from machine import NEWER, OLDER, be_processor
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest


@pytest.fixture
def request_for(tmp_path, investigate):  # noqa: F811 - the fixture
    message = models.proto("g (uint8[4, 8] x) => (int32[4, 8] y) { [product] y = MatMulInteger(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(np.full((8, 8), 127, np.int8), "w"))
    feeding = FeedRequest(given=(Feed("f", {"x": np.full((4, 8), 250, np.uint8)}, Origin.REAL),))
    model = models.write(tmp_path / "m.onnx", message)
    return CompareRequest(
        model=model, reference=EngineSpec("saturating"), targets=[EngineSpec("float64")], feeding=feeding
    )


@pytest.mark.parametrize(("flags", "reference"), [(OLDER, "float64:rounding=results"), (NEWER, "saturating")])
def test_float64_is_the_reference_where_the_other_saturates(request_for, monkeypatch, caplog, flags, reference):
    be_processor(monkeypatch, flags)
    result = compare(request_for)
    assert result.reference == reference
    assert ("float64 is the reference" in caplog.text) is (flags is OLDER)
    assert result.passed is (flags is OLDER)
