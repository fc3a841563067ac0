import numpy as np
import pytest

import models
import running
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.annotate import with_inferred_shapes, with_input_shapes, with_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def declared(model):
    return {
        value.name: (value.dtype and value.dtype.name, None if value.shape is None else [str(d) for d in value.shape])
        for node in model.ir.graph
        for value in node.outputs
    }


MODEL = """
    g (float[N, 3] x) => (float[N, 3] y) { [a] a = Exp(x) [b] b = Transpose(a) [c] y = Transpose(b) }"""


def test_inferred_shapes_are_declared():
    model = models.parse(MODEL)
    assert declared(model)["b"] == (None, None)
    assert declared(with_inferred_shapes(model))["b"] == ("FLOAT", ["3", "N"])
    assert declared(model)["b"] == (None, None)


def test_specs_win_over_what_was_declared_and_leave_open_what_they_do_not_say():
    model = with_inferred_shapes(models.parse(MODEL))
    specs = {"b": ValueSpec("b", DType.FLOAT, (3, 7)), "a": ValueSpec("a", None, None)}
    result = declared(with_specs(model, specs))
    assert result["b"] == ("FLOAT", ["3", "7"])
    assert result["a"] == ("FLOAT", ["N", "3"])


def test_other_input_shapes_make_the_old_ones_behind_them_void():
    model = with_inferred_shapes(models.parse(MODEL.replace("N", "2")))
    result = with_input_shapes(model, {"x": (5, "M")})
    assert [spec.shape for spec in result.inputs] == [(5, "M")]
    assert result.outputs[0].shape == (None, None)
    assert declared(with_inferred_shapes(result))["b"] == ("FLOAT", ["M", "5"])
    found = running.run(with_inferred_shapes(result), {"x": np.ones((5, 4), np.float32)})
    assert found["y"].shape == (5, 4)


def test_an_unknown_input_is_an_error():
    with pytest.raises(UsageError) as caught:
        with_input_shapes(models.parse(MODEL), {"X": (1,)})
    assert caught.value.slug == "input-unknown"
    assert "'x'" in caught.value.cure
