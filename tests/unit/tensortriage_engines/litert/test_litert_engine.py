"""What onnx2tf 2.6.9 reported of the bundled model (tests/data/litert), and the ladder of the engine."""

import json
from pathlib import Path

import numpy as np
import pytest

from tensortriage.model.model import Model
from tensortriage_engines.litert.engine import LiteRtEngine, holders, laid_out

ROOT = Path(__file__).parents[4]
ENGINE = LiteRtEngine()


def test_a_tensor_holds_the_last_of_the_values_that_were_fused_into_it():
    records = json.loads((ROOT / "tests/data/litert/digits_cnn.json").read_text())
    found = holders(records, Model.load(ROOT / "examples/digits_cnn.onnx").graph)
    assert "/stem/Conv_output_0" not in found  # fused into the Relu behind it
    assert found["/Relu_output_0"] == ("wa/block1/skip/Conv_input_nhwc", True)
    assert found["logits"] == ("logits", False)
    assert len({tensor for tensor, _ in found.values()}) == len(found)


def test_the_ladder_begins_with_the_built_in_kernels():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,delegate=none", "as given"]
    assert [words for words, _ in ENGINE.ladder({"precision": "int8"})] == [
        "precision=fp32,delegate=none",
        "precision=fp32",
        "as given",
    ]


@pytest.mark.parametrize(
    ("found", "declared", "flag", "expected"),
    [
        ((3, 2, 2, 64), ("batch", 64, 2, 2), False, (3, 64, 2, 2)),  # seen: the report is wrong about its layout
        ((3, 2, 2, 64), ("batch", 64, 2, 2), True, (3, 64, 2, 2)),
        ((3, 64, 2, 2), ("batch", 64, 2, 2), True, (3, 64, 2, 2)),
        ((3, 5, 7), None, True, (3, 7, 5)),
        ((3, 10), (3, 10), True, (3, 10)),
        ((3, 11), (3, 10), False, None),
    ],
)
def test_a_tensor_is_read_in_the_layout_that_fits(found, declared, flag, expected):
    array = laid_out(np.zeros(found, np.float32), declared, channels_last=flag)
    assert (None if array is None else array.shape) == expected
