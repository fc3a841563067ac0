"""Where a NaN or Inf comes from, told by the rule, the operands, and who else makes it."""

import numpy as np
import pytest

from diagnosing import ask, named, step
from tensortriage.diagnose.measurements.element_origins.provenance import mismatches

pytestmark = pytest.mark.slow

LOG = """main (float[2, 4] x) => (float[2, 4] y) {
    small = Exp(x)
    y = Log(small)
}"""


def test_a_logarithm_of_what_the_format_rounds_to_zero(tmp_path):
    x = np.array([[0, 1, 2, -20], [0, 1, 2, 3]], np.float32)  # exp(-20) = 2.1e-9 is 0 in fp16
    verdict, report = ask(tmp_path, named(LOG, "sig", "log"), {"x": x}, "emulate:precision=fp16")
    assert (verdict.verdict, verdict.culprits[0].node) == ("range-overflow", "log")
    assert "element [0, 3] is -Inf: log(0)" in verdict.culprits[0].reason
    assert "the reference and float64 make it too" in verdict.culprits[0].reason
    assert report.verdict.anatomy[0].startswith("1 element of 8 (at [0, 3]) is -Inf")


@pytest.mark.lengthy
def test_a_root_of_an_operand_that_another_op_made_negative(tmp_path):
    text = """main (float[3, 4] x) => (float[3, 4] y) {
        square = Mul(x, x)
        y = Sqrt(square)
    }"""
    x = np.linspace(0.01, 1, 12, dtype=np.float32).reshape(3, 4)
    target = "fault:kind=sign,node=mul"
    verdict, _ = ask(tmp_path, named(text, "mul", "root"), {"x": x}, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", "mul")
    rules = step(verdict, "where does the NaN").evidence["rules"]["root"]
    assert rules["rule"] == "root of a negative number"
    assert rules["reference_too"] is rules["float64_too"] is True
    assert rules["elements"] == 12
    assert "sqrt(-0.0001)" in verdict.summary


@pytest.mark.lengthy
def test_an_op_that_makes_a_nan_of_good_operands_has_no_excuse(tmp_path):
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    verdict, _ = ask(tmp_path, named(LOG, "sig", "log"), {"x": x}, "fault:kind=nan,node=sig")
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", "sig")
    assert "give no reason" in verdict.culprits[0].reason
    assert "the reference and float64 stay finite on the same operands" in verdict.culprits[0].reason


def test_independent_origins_are_all_listed_and_harmless_ones_apart(tmp_path):
    text = """main (float[2, 2] x) => (float[2, 2] y) {
        one = Log(x)
        two = Sqrt(x)
        y = Add(one, two)
        three = Log(x)
        shape = Shape(three)
    }"""
    (tmp_path / "engine.py").write_text(
        "import numpy as np\nfrom tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Session:\n"
        "    def __init__(self, session, sign): self.session, self.sign = session, sign\n"
        "    def run(self, feed):\n"
        "        return self.session.run({k: self.sign * v if v.dtype.kind == 'f' else v for k, v in feed.items()})\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        sign = 1 if b'Identity' in open(model, 'rb').read() else -1  # its ops are wrong, not what it is fed\n"
        "        return Session(OnnxRuntimeEngine().compile(model, {'optimization': 'none'}), np.float32(sign))\n"
    )
    x = np.array([[1, 2], [3, 4]], np.float32)
    model = named(text, "log", "root", "sum", "lost", "shape")
    verdict, _ = ask(tmp_path, model, {"x": x}, f"script:{tmp_path / 'engine.py'}")
    assert verdict.verdict == "non-finite"
    assert {culprit.node for culprit in verdict.culprits} == {"log", "root"}
    assert "in 1 other op independently" in verdict.summary
    assert step(verdict, "where does the NaN").evidence["harmless"] == ["lost"]


def test_a_nan_of_the_reference_is_traced_and_asked_of_float64(tmp_path):
    text = """main (float[1, 3] x) => (float[1, 3] y) {
        total = ReduceSum(x)
        rest = Sub(total, x)
        root = Sqrt(rest)
        y = Neg(root)
    }"""
    x = np.array([[1e8, 3, -1e8]], np.float32)  # exactly 3; in float32 1e8 + 3 is 1e8, so that the sum is 0
    verdict, _ = ask(tmp_path, named(text, "sum", "sub", "root", "neg"), {"x": x}, "onnxruntime")
    assert (verdict.verdict, verdict.culprits[0].node) == ("comparison-unsound", "root")
    assert "sqrt(-1e+08)" in verdict.summary
    assert verdict.summary.endswith("so it is in float64")


def test_a_nan_of_fp32_alone_is_told_apart(tmp_path):
    text = """main (float[1, 3] x, float one) => (float[1, 3] y) {
        more = Add(x, one)
        one_again = Sub(more, x)
        zero = Sub(one_again, one_again)
        ratio = Div(zero, one_again)
        y = Add(ratio, x)
    }"""
    feed = {"x": np.array([[1, 1e8, 2]], np.float32), "one": np.float32(1)}  # in float32 1e8 + 1 is 1e8
    model = named(text, "more", "again", "zero", "ratio", "add")
    verdict, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert (verdict.verdict, verdict.culprits[0].node) == ("comparison-unsound", "ratio")
    assert "element [0, 1] is NaN: 0 / 0; in float64 it is a number" in verdict.summary


def test_an_infinity_that_the_target_lacks_is_not_called_one_that_it_makes(tmp_path):
    text = """main (float[2, 3] x) => (float[2, 1] y, float[2, 3] z) <int64[1] axes = {1}> {
        y = ReduceMax(x, axes)
        z = Abs(x)
    }"""
    x = np.array([[1, 2, 3], [-np.inf] * 3], np.float32)
    (tmp_path / "engine.py").write_text(
        "import numpy as np\nfrom tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Session:\n"
        "    def __init__(self, session): self.session = session\n"
        "    def run(self, feed):\n"
        "        found = self.session.run(feed)\n"
        "        return {k: np.maximum(v, np.float32(-3.4e38)) for k, v in found.items()}\n"
        "class Engine:\n"
        "    def compile(self, model, options): return Session(OnnxRuntimeEngine().compile(model, {}))\n"
    )
    verdict, _ = ask(tmp_path, named(text, "most", "size"), {"x": x}, f"script:{tmp_path / 'engine.py'}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("non-finite", "most")
    assert "in different places than the reference" in verdict.culprits[0].reason


def test_a_nan_where_the_reference_is_infinite_is_looked_at_too():
    right = np.float32([-np.inf, 1.0, np.nan, np.inf])
    assert mismatches(right, np.float32([np.nan, np.nan, np.nan, -np.inf])).tolist() == [True, True, False, False]
