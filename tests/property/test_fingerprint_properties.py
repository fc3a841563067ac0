"""The tensors of whole models, renamed, rounded, transposed: nearly all are recognised, and none is taken for another.

A match is right when the true name is the one given, or one of its aliases, whose values are the same up to order.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortriage.compare.alignment.tensor_fingerprint import fingerprint
from tensortriage.compare.alignment.value_matching import match
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage_testing import conv_net, encoder, feed_for, save_model

pytestmark = pytest.mark.lengthy

MODELS = {"encoder": lambda: encoder(layers=3), "conv_net": conv_net}
FORMATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.fixture(scope="module")
def activations(tmp_path_factory):
    """Every tensor of each model, as ONNX Runtime computes it."""
    found = {}
    for name, build in MODELS.items():
        folder, proto = tmp_path_factory.mktemp(name), build()
        model = Model.load(save_model(proto, folder / "model.onnx"))
        marked = mark_outputs(model, markable(model)).save(folder / "marked.onnx")
        session = OnnxRuntimeEngine().compile(marked, {"optimization": "none"})
        outputs = session.run(feed_for(proto))
        session.close()
        found[name] = {value: np.asarray(outputs[value]) for value in markable(model)}
    return found


@pytest.fixture(scope="module")
def reference(activations):
    return {
        name: {value: fingerprint(array) for value, array in arrays.items()} for name, arrays in activations.items()
    }


def altered(array, format_, rng, *, transpose):
    """An array as another engine might hold it."""
    if array.dtype.kind == "f":
        array = array.astype(FORMATS[format_]).astype(np.float32)
    return np.ascontiguousarray(array.transpose(rng.permutation(array.ndim))) if transpose else array


@pytest.mark.parametrize("transpose", [False, True], ids=["in order", "transposed"])
@pytest.mark.parametrize("format_", [*FORMATS])
@pytest.mark.parametrize("name", [*MODELS])
def test_renamed_tensors_of_a_model_are_recognised(activations, reference, name, format_, transpose):
    rng = np.random.default_rng(1)
    target = {
        f"t{number}": fingerprint(altered(array, format_, rng, transpose=transpose))
        for number, array in enumerate(activations[name].values())
    }
    truth = dict(zip(target, activations[name], strict=True))
    found = match(reference[name], target)
    wrong = [made for made in found.values() if truth[made.target] not in (made.reference, *made.aliases)]
    assert wrong == []
    assert len(found) >= 0.95 * len(target)


@settings(deadline=None, max_examples=25)
@given(
    name=st.sampled_from([*MODELS]),
    format_=st.sampled_from([*FORMATS]),
    seed=st.integers(0, 2**32 - 1),
    transpose=st.booleans(),
)
def test_a_part_of_the_tensors_is_matched_without_error(activations, reference, name, format_, seed, transpose):
    """Engines keep only some tensors, so the target is a random part of them."""
    rng = np.random.default_rng(seed)
    some = {value: array for value, array in activations[name].items() if rng.random() < 0.3}
    target = {f"t{number}": array for number, array in enumerate(some.values())}
    truth = dict(zip(target, some, strict=True))
    prints = {key: fingerprint(altered(array, format_, rng, transpose=transpose)) for key, array in target.items()}
    found = match(reference[name], prints)
    assert [made for made in found.values() if truth[made.target] not in (made.reference, *made.aliases)] == []
