import numpy as np
import pytest

from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.batch_rows import batch_axes, gather_rows
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_testing import encoder, mlp, save_model


def spec(name, *shape):
    return ValueSpec(name, DType.FLOAT, shape)


def test_the_batch_is_the_name_that_most_inputs_begin_with():
    found = batch_axes([spec("ids", "batch", "seq"), spec("mask", "batch", "seq"), spec("table", "entries", 4)])
    assert (found.axes, found.fixed) == ({"ids": 0, "mask": 0}, None)


def test_the_state_of_a_recurrent_network_has_its_rows_on_another_axis():
    found = batch_axes([spec("x", "batch", "time", 4), spec("h", 2, "batch", 8)])
    assert found.axes == {"x": 0, "h": 1}


def test_a_batch_that_the_model_fixes_is_told_and_one_row_is_no_batch():
    assert batch_axes([spec("x", 8, 3)]).fixed == 8
    assert batch_axes([spec("x", 1, 3)]) is None


def test_a_dimension_is_named_or_refused():
    assert batch_axes([spec("x", "n", "m")], "m").axes == {"x": 1}
    with pytest.raises(UsageError, match="'q'") as caught:
        batch_axes([spec("x", "n", "m")], "q")
    assert caught.value.slug == "batch-unknown"


def test_rows_are_those_of_the_feeds_and_then_made_up_ones(tmp_path):
    model = Model.load(save_model(mlp(width=6, features=3, batch="batch"), tmp_path / "m.onnx"))
    given = Feed("f", {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}, Origin.REAL)
    rows = gather_rows(model, [given], batch_axes(model.inputs), 4)
    assert (len(rows.rows), rows.made_up) == (4, 2)
    batch = rows.batch([1, 0, 1], "three", blank=1)
    assert batch.tensors["x"].tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5], [0, 0, 0]]


def test_made_up_tokens_are_within_the_vocabulary(tmp_path):
    model = Model.load(
        save_model(encoder(layers=1, width=8, heads=2, tokens=4, vocabulary=5, batch="b"), tmp_path / "m.onnx")
    )
    given = Feed(
        "f", {"input_ids": np.ones((1, 4), np.int64), "attention_mask": np.ones((1, 4), np.int64)}, Origin.REAL
    )
    rows = gather_rows(model, [given], batch_axes(model.inputs), 6)
    assert len(rows.rows) == 6
    assert all(row["input_ids"].min() >= 0 and row["input_ids"].max() < 5 for row in rows.rows)
