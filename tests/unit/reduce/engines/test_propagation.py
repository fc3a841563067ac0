"""Expected values come from the models themselves, which are sums of multiples: errors add up exactly."""

import functools

import numpy as np
import pytest

from models import parse
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.engines.propagation import carry
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.runs.lab import Lab

REFERENCE = EngineSpec("onnxruntime", {"optimization": "none"})
TEXT = """
g (float[2] x) => (float[2] y) <float two = {2.0}> {
  [a] p = Neg(x)  [b] q = Mul(p, two)  [c] t = Add(p, q)  [d] y = Mul(t, two)
}
"""
X = np.float32([1, 3])
GOLDEN = {"x": X, "p": -X, "q": -2 * X, "t": -3 * X, "y": -6 * X}


@pytest.mark.parametrize(
    ("inside", "errors", "reaching"),
    [
        (["a"], {"p": 1.0}, 6.0),
        (["a", "b"], {"p": 1.0, "q": 2.0}, 6.0),
        (["a", "c"], {"p": 1.0, "t": 1.0}, 6.0),  # t is wrong by 1 because p is, and by 2 more through b outside
        (["a", "b", "c"], {"t": 3.0}, 6.0),
        (["a", "c"], {"p": 1.0, "t": 5.0}, 14.0),  # 4 of the 5 come from c itself
    ],
)
def test_errors_arrive_once_by_every_way(inside, errors, reaching):
    model = parse(TEXT)
    wrong = {name: GOLDEN[name] + np.float32(error) for name, error in errors.items()}
    with Lab() as lab:
        found = carry(
            Pieces(model, specs=value_specs(model)),
            wrong,
            ["y"],
            inside=inside,
            sample=GOLDEN,
            run=functools.partial(lab.session, REFERENCE, sequence=True),
        )
    np.testing.assert_array_equal(found["y"], GOLDEN["y"] + np.float32(reaching))
