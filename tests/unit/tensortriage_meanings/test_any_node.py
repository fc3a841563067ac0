"""Every node of ONNX's own tests, its operands as constants where they can be: rows are made of it without an error."""

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx.backend.test.case.node import collect_testcases

from tensortriage.model.model import Model
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.rung import INSTEAD, PIXELS, SIGNATURES, TABLE
from tensortriage_meanings.search import sites_of

FEWEST = 1500
"""Nodes that onnx 1.18 and later have at least (1.23 has 1,884): none is left out in silence."""


def with_constants(case):
    """Return a test's model with all inputs but the first as constants, if they are numbers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    arrays = case.data_sets[0][0] if case.data_sets else []
    for at in range(min(len(model.graph.input), len(arrays)) - 1, 0, -1):
        array = arrays[at]
        if isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, model.graph.input[at].name))
            del model.graph.input[at]
    return Model.from_ir(onnx_ir.from_proto(model))


@pytest.mark.filterwarnings("ignore:::onnx")  # of onnx, as it makes its tests
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.lengthy
def test_rows_are_made_of_any_node():
    made = 0
    for case in collect_testcases(None):
        rewriter = Rewriter(with_constants(case))
        made += 1
        for table in (TABLE, PIXELS, INSTEAD, SIGNATURES):
            list(sites_of(rewriter, table, {}))
    assert made >= FEWEST
