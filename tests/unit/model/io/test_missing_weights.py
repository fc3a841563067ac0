"""A model whose external data are ignored: every reference to them survives what is done to the structure."""

import numpy as np
import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import ExternalData, ExternalLayout, Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.constant_folding import fold_constants
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.unused_removal import clean

MESSAGE = """
    g (float[2, 4] x) => (float[2, 8] y) <float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}> {
        [first] a = MatMul(x, W) [second] s = Add(a, b) [sum] d = Add(W, W) [third] m = MatMul(x, d)
        [last] y = Add(s, m) }"""


@pytest.fixture
def path(tmp_path):
    """A model whose weight W is said to lie in a file that is not there."""
    message = models.proto(MESSAGE)
    message.graph.initializer.append(models.external_tensor("W", onnx.TensorProto.FLOAT, (4, 8), "gone/w.bin"))
    return models.write(tmp_path / "m.onnx", message)


def references(path):
    message = onnx.load(path, load_external_data=False)
    return {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data} for tensor in message.graph.initializer
    }


@pytest.mark.parametrize("layout", [*ExternalData, ExternalLayout()], ids=str)
def test_what_is_saved_refers_to_the_same_bytes(path, tmp_path, layout):
    model = Model.load(path, ignore_external_data=True)
    edited = {
        "saved": model,
        "cleaned": clean(model),
        "folded": fold_constants(model),
        "cut": extract(model, ["first", "second"], specs=value_specs(model)),
        "raised": require_opset(model, model.opset + 3),
    }
    for name, result in edited.items():
        saved = result.save(tmp_path / name / "out.onnx", external_data=layout)
        assert references(saved)["W"] == references(path)["W"], name
        assert Model.load(saved, ignore_external_data=True).graph.initializers["W"].shape == (4, 8)


def test_what_needs_the_numbers_says_so(path):
    model = Model.load(path, ignore_external_data=True)
    with pytest.raises(ModelError) as caught:
        model.graph.weight("W")
    assert caught.value.slug == "weight-ignored"
    assert "'W'" in caught.value.message
    np.testing.assert_array_equal(model.graph.weight("b"), np.arange(1, 9, dtype=np.float32))


def test_without_the_option_missing_data_are_an_error(path):
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert caught.value.slug == "external-data-missing"
