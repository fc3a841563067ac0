import numpy as np
import pytest

import models
import running
from tensortriage.errors import ModelError
from tensortriage.model.quantizer_pairs import quantized_only_for, switch_quantizers

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


def test_only_the_named_nodes_read_quantized_operands():
    got = running.run(quantized_only_for(models.parse(SHARED), {"one"}), {"x": X})
    np.testing.assert_array_equal(got["y"], -ROUNDED)
    np.testing.assert_array_equal(got["z"], X + X)


def test_a_pair_that_nobody_reads_goes_away():
    left = quantized_only_for(models.parse(SHARED), set())
    assert [node.name for node in left.graph.nodes] == ["one", "other"]
    np.testing.assert_array_equal(running.run(left, {"x": X})["y"], -X)


@pytest.mark.parametrize("kept", [(), ("one",), ("other",), ("one", "other")])
def test_one_model_is_every_choice(kept):
    switched = switch_quantizers(models.parse(SHARED))
    assert switched.nodes == ("one", "other")
    got = running.run(switched.model, {"x": X} | switched.feed(kept))
    np.testing.assert_array_equal(got["y"], -(X if "one" in kept else ROUNDED))
    np.testing.assert_array_equal(got["z"], 2 * (X if "other" in kept else ROUNDED))


def test_a_model_without_pairs():
    with pytest.raises(ModelError) as none:
        switch_quantizers(models.parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert none.value.slug == "quantizers-none"
