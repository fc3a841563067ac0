import numpy as np

import models
import running
from tensortriage_quantize.pairs.edit_pairs import quantized_only_for

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
