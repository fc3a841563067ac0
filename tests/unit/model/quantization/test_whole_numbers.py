"""Numbers beside ties: expected values are those of the products, by hand."""

import numpy as np
import onnxruntime
import pytest

from models import parse
from tensortriage.model.quantization.whole_numbers import beside_ties

CAST = "g (float[4] x) => (int64[4] y) { a = Add(x, x) y = Cast<to = 7>(a) }"
COMPARED = "g (float[4] x) => (bool[4] y) <float z = {2.0}> { a = Add(x, x) y = Greater(a, z) }"
STAYS = "g (float[4] x) => (float16[4] y) { a = Add(x, x) y = Cast<to = 10>(a) }"
FED = "g (float[4] x) => (float[4] y) { a = Floor(x) y = Neg(a) }"


@pytest.mark.parametrize(
    ("text", "share", "expected"),
    [
        (CAST, 1e-6, [2, -2, 3, 0]),
        (CAST, -1e-6, [1, -1, 3, 0]),
        (COMPARED, 1e-6, [True, False, True, False]),
        (COMPARED, -1e-6, [False, False, True, False]),
    ],
)
@pytest.mark.parametrize("ulps", [-1, 1])
def test_what_lies_beside_a_tie_falls_on_the_side_it_is_moved_to(text, share, expected, ulps, tmp_path):
    x = np.array([1.0, -1.0, 1.75, 0.0], np.float32) * np.float32(1.0 + ulps * 2.0**-23)
    np.testing.assert_array_equal(run(beside_ties(parse(text), share), x, tmp_path), expected)


@pytest.mark.parametrize("share", [1e-6, -1e-6])
def test_whole_numbers_stay(share, tmp_path):
    whole = "g (float[4] x) => (int64[4] y) { a = Add(x, x) b = Floor(a) y = Cast<to = 7>(b) }"
    x = np.array([1.0, -1.0, 1.75, 0.0], np.float32)
    np.testing.assert_array_equal(run(beside_ties(parse(whole), share), x, tmp_path), [2, -2, 3, 0])


def run(model, x, folder):
    session = onnxruntime.InferenceSession(model.save(folder / "m.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("text", [STAYS, FED])
def test_numbers_that_stay_numbers_or_are_fed_are_no_ties(text):
    assert beside_ties(parse(text), 1e-6) is None
