"""What attention becomes whose operands are read of the first row or head; expected values are of operands repeated."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.operands import BATCHES

RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4, 6)).astype(np.float32)
BIAS = RNG.standard_normal((2, 3, 4, 4)).astype(np.float32)
LAYER = model(
    "g (float[2,3,4,6] x, float[2,3,4,4] bias) => (float[2,3,4,6] y) { y = Attention(x, x, x, bias) }", opset=23
)


@pytest.mark.parametrize(("words", "axis"), [("first row of the batch", 0), ("first head", 1)])
def test_a_mask_of_the_first_for_all(words, axis):
    repeated = np.repeat(np.take(BIAS, [0], axis), BIAS.shape[axis], axis)
    found = run(meant(LAYER, BATCHES, f"attn_mask were that of the {words}"), x=X, bias=BIAS)
    assert found == pytest.approx(run(LAYER, x=X, bias=repeated), rel=1e-6)
