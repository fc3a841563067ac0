import numpy as np
import pytest

from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import DataError


def row(name, error):
    reference = np.ones(3, np.float32)
    target = reference + np.float32(error)
    metrics = measure(reference, target)
    return Row(name, "node", "Add", metrics, PolygraphyTolerance().judge(name, metrics, reference, target))


def test_rows_beyond_their_limit_are_told_in_order():
    comparison = Comparison("onnxruntime", "openvino", (row("a", 0), row("b", 1), row("c", 0), row("d", 2)))
    assert [found.value for found in comparison.outside] == ["b", "d"]


def test_comparing_nothing_is_an_error():
    with pytest.raises(DataError) as caught:
        Comparison("reference", "target", ())
    assert caught.value.slug == "nothing-compared"
