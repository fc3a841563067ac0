"""One element, too small for its tensor's error to show, that the next op makes a NaN or a wrong number of.

The planted fault ``flush`` zeroes elements below a share of the tensor's root mean square; on these feeds only the
element named in each case is that small (its right value is in the comment, computed by hand).
"""

import numpy as np
import pytest

from diagnosing import ask, named, step

pytestmark = pytest.mark.slow

CHAIN = "main (float[2, 4] x) => (float[2, 4] y) {{\n small = {first}(x)\n y = {second}(small)\n }}"
DEEP = """main (float[2, 4] x) => (float[4, 2] y) {{
    more = Mul(x, x)
    small = {first}(x)
    turned = Transpose<perm = [1, 0]>(small)
    shown = {second}(turned)
    moved = Transpose<perm = [1, 0]>(more)
    y = Add(shown, moved)
}}"""
X = np.array([[0, 1, 2, 3], [0.5, -40, 2, 1]], np.float32)
SUB = "main (float[2, 4] x, float[2, 4] z) => (float[2, 4] y) {\n small = Sub(x, z)\n y = Sqrt(small)\n }"
DEEP_SUB = """main (float[2, 4] x, float[2, 4] z) => (float[1, 8] y) <int64[2] shape = {4, 2}, int64[2] flat = {1, 8}> {
    small = Sub(x, z)
    wide = Reshape(small, shape)
    root = Sqrt(wide)
    more = Exp(root)
    y = Reshape(more, flat)
}"""


def flushed(node, amount="1e-10"):
    return f"fault:kind=flush,node={node},amount={amount}"


@pytest.mark.lengthy
@pytest.mark.parametrize(("first", "low", "amount", "right"), [
    ("Softplus", -40, "1e-10", "4.24835e-18"),  # log(1 + exp(-40)) and exp(-40)
    ("Exp", -40, "1e-10", "4.24835e-18"),
    ("Sigmoid", -12, "1e-5", "6.1441"),  # 1 / (1 + exp(12)) = 6.14417e-6
])  # fmt: skip
@pytest.mark.parametrize(("text", "names"), [
    (CHAIN, ("small", "log")),
    (DEEP, ("more", "small", "turn", "log", "move", "add")),
], ids=["chain", "deep"])  # fmt: skip
def test_a_zero_under_a_logarithm(tmp_path, text, names, first, low, amount, right):
    x = np.where(X == -40, np.float32(low), X)
    model = named(text.format(first=first, second="Log"), *names)
    verdict, _ = ask(tmp_path, model, {"x": x}, flushed("small", amount))
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", "small"), verdict.summary
    reason = verdict.culprits[0].reason
    assert f"element [1, 1] of its result is 0 instead of {right}" in reason
    assert "it shows in Log 'log'" in reason
    assert "log(0)" in reason
    assert step(verdict, "do single wrong elements").evidence["explained"] == 1.0


@pytest.mark.lengthy
@pytest.mark.parametrize(("text", "names"), [
    (SUB, ("small", "root")),
    (DEEP_SUB, ("small", "wide", "root", "more", "flat")),
], ids=["chain", "deep"])  # fmt: skip
def test_a_sign_under_a_root(tmp_path, text, names):
    """1 - (1 - 2**-24) is 5.96046e-08; an offset of -2e-8 times the root mean square makes it negative."""
    x = np.array([[1, 3, 4, 5], [6, 7, 8, 9]], np.float32)
    z = np.array([[1 - 2**-24, 1, 1, 1], [1, 1, 1, 1]], np.float32)
    model = named(text, *names)
    verdict, _ = ask(tmp_path, model, {"x": x, "z": z}, "fault:kind=offset,node=small,amount=-2e-8")
    wrong = f"{2.0**-24 - 2e-8 * np.sqrt(203 / 8):.3g}"  # 203 = 2**2 + ... + 8**2
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", "small"), verdict.summary
    assert f"element [0, 0] of its result is {wrong[:5]}" in verdict.culprits[0].reason
    assert "instead of 5.96046e-08" in verdict.culprits[0].reason
    assert f"sqrt({wrong[:5]}" in verdict.culprits[0].reason


@pytest.mark.lengthy
@pytest.mark.parametrize("deep", [False, True])
def test_a_zero_under_a_quotient_that_stays_finite(tmp_path, deep):
    """Relu loses 1e-8; with the epsilon of 1e-12 the quotient is 1e12 instead of 1e8: huge, and finite."""
    more = "more = Tanh(ratio)\n y = Add(ratio, more)" if deep else "y = Identity(ratio)"
    text = f"""main (float[2, 4] x, float[2, 4] z) => (float[2, 4] y) <float epsilon = {{1e-12}}> {{
        small = Relu(x)
        safe = Add(small, epsilon)
        ratio = Div(z, safe)
        {more}
    }}"""
    x = np.array([[1, 2, 3, 4], [2, 1e-8, 3, 1]], np.float32)
    names = ("small", "safe", "ratio", *(("tanh", "end") if deep else ("end",)))
    model = named(text, *names)
    verdict, _ = ask(tmp_path, model, {"x": x, "z": np.ones_like(x)}, flushed("small", "1e-7"))
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "small"), verdict.summary
    assert "element [1, 1] of its result is 0 instead of 1e-08" in verdict.culprits[0].reason
    assert "it shows in Div 'ratio'" in verdict.culprits[0].reason


@pytest.mark.parametrize("text", [CHAIN, DEEP], ids=["chain", "deep"])
def test_a_logarithm_of_a_denormal_that_is_flushed_is_no_fault(tmp_path, text):
    """exp(-90) = 8.2e-40 is below the smallest normal number of float32, 1.17549e-38."""
    names = ("small", "log") if text is CHAIN else ("more", "small", "turn", "log", "move", "add")
    x = np.where(X == -40, np.float32(-90), X)
    model = named(text.format(first="Exp", second="Log"), *names)
    verdict, _ = ask(tmp_path, model, {"x": x}, "float64:rounding=results,denormals=flush")
    assert (verdict.verdict, verdict.culprits[0].node) == ("range-overflow", "log"), verdict.summary
    assert "denormals are flushed to zero" in verdict.summary
    assert "below the smallest normal number of fp32, 1.17549e-38" in verdict.summary
