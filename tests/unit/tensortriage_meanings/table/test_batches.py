"""What attention becomes whose operands are read of the first row or head; expected values are of operands repeated."""

import numpy as np
import onnx
import pytest

from meant_otherwise import meant, model, run
from models import of_message
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


FUSED = """g (float[2,4,6] x, int32[2,4] mask) => (float[2,4,6] y)
<int64[1] last = {1}> {
    n = ReduceSum<keepdims=0>(mask, last)
    y = com.microsoft.Attention<num_heads=2>(x, w, b, n)
}"""


def test_a_mask_of_which_a_file_has_the_number_of_ones():
    one = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> {FUSED}')
    w, b = RNG.standard_normal((6, 18)).astype(np.float32), np.zeros(18, np.float32)
    one.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in (("w", w), ("b", b)))
    x, mask = RNG.standard_normal((2, 4, 6)).astype(np.float32), np.array([[0, 1, 1, 0], [1, 0, 1, 1]], np.int32)
    q, k, v = ((x @ part).reshape(2, 4, 2, 3).transpose(0, 2, 1, 3) for part in np.split(w, 3, axis=1))
    scores = np.where(mask[:, None, None] > 0, q @ k.transpose(0, 1, 3, 2) / np.sqrt(3), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 4, 6)
    fused = of_message(one)
    assert run(fused, x=x, mask=mask) != pytest.approx(right, rel=1e-3)
    assert run(meant(fused, BATCHES, "were 'mask' itself"), x=x, mask=mask) == pytest.approx(right, rel=1e-4)
