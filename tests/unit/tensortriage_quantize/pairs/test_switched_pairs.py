import numpy as np
import pytest

import models
import running
from tensortriage.errors import ModelError
from tensortriage_quantize.pairs.switched_pairs import switch_pairs, switch_quantizers

# A tensor of thirds, a scale of one half: 1/3 becomes 1/2, 2/3 becomes 1/2 (round half to even of 1.33).
SHARED = """
    g (float[2] x) => (float[2] y, float[2] z) <float s = {0.5}, int8 o = {0}> {
        [there] q = QuantizeLinear(x, s, o)
        [back] d = DequantizeLinear(q, s, o)
        [one] y = Neg(d)
        [other] z = Add(d, d)
    }"""
X = np.array([1 / 3, 2 / 3], np.float32)
ROUNDED = np.array([0.5, 0.5], np.float32)


@pytest.mark.parametrize("kept", [(), ("one",), ("other",), ("one", "other")])
def test_one_model_is_every_choice(kept):
    switched = switch_quantizers(models.parse(SHARED))
    assert switched.nodes == ("one", "other")
    got = running.run(switched.model, {"x": X} | switched.feed(kept))
    np.testing.assert_array_equal(got["y"], -(X if "one" in kept else ROUNDED))
    np.testing.assert_array_equal(got["z"], 2 * (X if "other" in kept else ROUNDED))


PAIRS = """
    g (float[2] x) => (float[2] d, float[2] z) <float s = {0.5}, int8 o = {0}, int8[2] w = {1, -2}> {
        [there] q = QuantizeLinear(x, s, o)
        [back] d = DequantizeLinear(q, s, o)
        [weight] v = DequantizeLinear(w, s, o)
        [other] z = Add(d, v)
    }"""
WEIGHT = np.array([0.6, -0.9], np.float32)  # stored as 0.5 and -1


@pytest.mark.parametrize("kept", [(), ("back",), ("weight",), ("back", "weight")])
def test_every_pair_has_a_switch(kept):
    switched = switch_pairs(models.parse(PAIRS), {"v": WEIGHT})
    assert switched.nodes == ("back", "weight")
    got = running.run(switched.model, {"x": X} | switched.feed(kept))
    data = X if "back" in kept else ROUNDED
    np.testing.assert_array_equal(got["d"], data)  # a result of the model as well
    np.testing.assert_array_equal(got["z"], data + (WEIGHT if "weight" in kept else np.array([0.5, -1.0], np.float32)))


def test_a_stored_weight_without_its_original_has_none():
    assert switch_pairs(models.parse(PAIRS), {}).nodes == ("back",)
    with pytest.raises(ModelError) as none:
        switch_pairs(models.parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"), {})
    assert none.value.slug == "quantizers-none"


def test_a_model_without_pairs():
    with pytest.raises(ModelError) as none:
        switch_quantizers(models.parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert none.value.slug == "quantizers-none"
