"""Variances in single steps, however they are written; numpy's, with ``ddof=1``, is what is right."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.bodies import BODIES

HEAD = "g (float[3,8] x) => (float[3,1] y) <int64[1] a = {1}, float n = {8}, float i = {0.125}, float two = {2}> "
MEAN = "m = ReduceMean<axes=[1]>(x) d = Sub(x, m) "
FORMS = {
    "mean of squares": MEAN + "q = Mul(d, d) y = ReduceMean<axes=[1]>(q)",
    "sum of powers over their number": MEAN + "q = Pow(d, two) s = ReduceSum(q, a) y = Div(s, n)",
    "sum of squares times the inverse": MEAN + "s = ReduceSumSquare<axes=[1]>(d) y = Mul(i, s)",
    "without the square of the mean": (
        "q = Mul(x, x) e = ReduceMean<axes=[1]>(q) m = ReduceMean<axes=[1]>(x) p = Mul(m, m) y = Sub(e, p)"
    ),
}
OTHERS = {
    "mean": "y = ReduceMean<axes=[1]>(x)",
    "sum over a number": "s = ReduceSum(x, a) y = Div(s, n)",
    "sum of squares over no whole number": "s = ReduceSumSquare<axes=[1]>(x) t = Div(n, two) u = Sqrt(n) y = Div(s, u)",
    "cubes": "p = Pow(x, n) y = ReduceMean<axes=[1]>(p)",
}


@pytest.mark.parametrize("form", FORMS)
def test_one_less_than_there_are_numbers(form):
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    one = model(f"{HEAD}{{ {FORMS[form]} }}")
    assert run(one, x=x) == pytest.approx(x.var(1, keepdims=True), rel=1e-4)
    rewriter, last = Rewriter(one), one.graph.producer("y").name  # a mean of squares may be one as well
    ways = (each for each in sites_of(rewriter, BODIES) if "unbiased" in each[next(iter(each))].words)
    (way,) = (each for each in ways if last in each)
    assert run(rewriter.rewritten(way), x=x) == pytest.approx(x.var(1, keepdims=True, ddof=1), rel=1e-4)


@pytest.mark.parametrize("form", OTHERS)
def test_what_is_no_variance_is_none(form):
    ways = sites_of(Rewriter(model(f"{HEAD}{{ {OTHERS[form]} }}")), BODIES)
    assert not [way for each in ways for way in each.values() if "unbiased" in way.words]
