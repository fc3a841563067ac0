"""What formats cannot hold: every kind on tensors made for it, with limits from the formats' definitions."""

import numpy as np
import pytest

from models import parse
from running import record
from tensortriage.runs.analyses.ranges import FORMATS, Ranges, range_scan
from tensortriage.values.dtype import Precision
from tensortriage.values.store import MemoryStore


def scan(text, feed, **given):
    """Return the rows of a model by value name."""
    model = parse(text)
    golden, _ = record(model, feed)
    rows = range_scan(model, MemoryStore(golden), feed, **given)
    assert len({row.value for row in rows}) == len(rows)
    return {row.value: row for row in rows}


def words(row, precision=Precision.FP16):
    return {misfit.slug: misfit.cannot for misfit in row.misfits_in(precision)}


@pytest.mark.parametrize(
    ("largest", "beyond"),
    [
        (65504.0, {"fp8e4m3", "fp8e5m2"}),
        (65519.0, {"fp8e4m3", "fp8e5m2"}),  # rounds down to 65504
        (65521.0, {"fp16", "fp8e4m3", "fp8e5m2"}),
        (448.0, set()),
        (500.0, {"fp8e4m3"}),
        (3.39e38, {"fp16", "fp8e4m3", "fp8e5m2"}),
    ],
)
def test_values_beyond_the_largest_number(largest, beyond):
    rows = scan("main (float[3] x) => (float[3] y) { y = Abs(x) }", {"x": np.float32([0, 1, -largest])})
    assert {m.format for m in rows["y"].misfits if m.slug == "beyond-range"} == beyond
    assert rows["y"].max_abs == pytest.approx(largest)
    assert rows["y"].min_abs == 1.0


def test_an_infinity_fits_and_a_finite_neighbour_is_still_seen():
    rows = scan("main (float[3] x) => (float[3] y) { y = Abs(x) }", {"x": np.float32([np.inf, 7e4, 1])})
    assert words(rows["y"]) == {"beyond-range": True}
    assert rows["y"].max_abs == 7e4


def test_small_numbers_matter_by_what_their_rounding_costs():
    text = "main (float[4] x) => (float[4] y) { y = Abs(x) }"
    alone = scan(text, {"x": np.float32([1e-6, 2.3e-6, 1.7e-6, 3.1e-6])})["y"]
    among = scan(text, {"x": np.float32([1e-6, 2.3e-6, 1.7e-6, 3.1])})["y"]
    gone = scan(text, {"x": np.float32([1e-9, 2e-9, 1e-9, 1e-9])})["y"]
    assert words(alone) == {"subnormal": False}
    assert words(among) == {}  # the error of all small ones is nothing to the large one
    assert words(gone) == {"subnormal": True}
    assert "zero altogether" in gone.misfits_in(Precision.FP16)[0].words
    assert words(alone, Precision.BF16) == {}


def test_weights_are_told_apart():
    text = """main (float[2] x) => (float[2] y)
        <float[2] large = {1e6, 1}, float[2] small = {1e-7, 3e-7}> {
        a = Mul(x, large)
        y = Mul(a, small)
    }"""
    rows = scan(text, {"x": np.float32([1e-3, 1])})
    assert rows["large"].constant
    assert (words(rows["large"]), words(rows["small"])) == ({"weight-beyond-range": True}, {"weight-subnormal": False})
    assert [row.value for row in rows.values()] == ["large", "a", "small", "y"]


def test_whole_numbers_that_the_format_skips():
    text = "main (float[6000] x) => (float[6000] y) { y = Abs(x) }"
    rows = scan(text, {"x": np.arange(6000, dtype=np.float32)})
    shares = {m.format: m.share for m in rows["y"].misfits if m.slug == "integers"}
    # Between 2048 and 4096 fp16 has every second whole number, from there to 6000 every fourth.
    assert shares["fp16"] == pytest.approx((2048 // 2 + (6000 - 4096) * 3 // 4) / 6000, abs=1e-3)
    assert {"bf16", "fp16"} <= set(shares)
    small = scan(text, {"x": np.arange(6000, dtype=np.float32) % 2048})
    assert "integers" not in words(small["y"])
    alone = scan("main (float[2] x) => (float[2] y) { y = Abs(x) }", {"x": np.float32([0, -10001])})
    assert "integers" not in words(alone["y"])  # a mask constant is rounded like any other number
    broken = scan(text, {"x": np.arange(6000, dtype=np.float32) + 0.5})
    assert "integers" not in words(broken["y"])


def test_sums_that_leave_the_format_on_the_way_to_a_small_result():
    text = "main (float[1, 1000] x, float[1000, 1] w) => (float[1, 1] y) { y = MatMul(x, w) }"
    x = np.float32([[100, -100] * 500])
    row = scan(text, {"x": x, "w": np.ones((1000, 1), np.float32)})["y"]
    assert row.sum_bound == 1e5
    assert words(row)["sum-beyond-range"] is False
    assert "sum-beyond-range" not in words(row, Precision.FP8E4M3)
    assert row.condition == np.inf  # the sum is exactly zero


def test_cancellation_is_the_rounding_of_the_terms_over_what_is_left():
    text = "main (float[4] x, float[4] z) => (float[4] y) { y = Sub(x, z) }"
    x = np.float32([1000, 1001, 1002, 1003])
    row = scan(text, {"x": x, "z": x - np.float32(0.125)})["y"]
    assert row.condition == pytest.approx(np.sqrt(2 * np.mean(x.astype(np.float64) ** 2)) / 0.125, rel=1e-3)
    assert words(row) == {"cancellation": True}  # 11327 x 2^-11 > 1
    assert words(scan(text, {"x": x, "z": x / 2})["y"]) == {}


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("main (float[2, 8] x) => (float[2, 1] y) { y = ReduceMean <axes = [1]> (x) }", 8.0),
        ("main (float[2, 8] x) => (float[2, 1] y) { y = ReduceL2 <axes = [1]> (x) }", 8.0),
        ("main (float[2, 8] x) => (float[2, 8] y) { y = Softmax <axis = 1> (x) }", 8.0),
        ("main (float[2, 8] x) => (float[1, 1] y) { y = ReduceSumSquare(x) }", 16.0),
    ],
)
def test_bounds_of_sums(text, bound):
    text = text if "axes" not in text else f'<ir_version: 8, opset_import: ["": 17]>\n{text}'
    assert scan(text, {"x": np.ones((2, 8), np.float32)})["y"].sum_bound == pytest.approx(bound)


def test_products_of_every_kind_have_the_bound_of_their_magnitudes():
    rng = np.random.default_rng(0)
    conv = "main (float[1, 2, 6, 6] x, float[4, 1, 3, 3] w) => (float[1, 4, 4, 4] y) { y = Conv <group = 2> (x, w) }"
    x, w = rng.standard_normal((1, 2, 6, 6)), rng.standard_normal((4, 1, 3, 3))
    row = scan(conv, {"x": np.float32(x), "w": np.float32(w)})["y"]
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(x), (3, 3), axis=(2, 3))
    sums = [np.einsum("ijkl,kl->ij", windows[0, c // 2], np.abs(w[c, 0])) for c in range(4)]
    assert row.sum_bound == pytest.approx(np.max(sums), rel=1e-5)
    gemm = """main (float[3, 4] a, float[5, 4] b, float[5] c) => (float[3, 5] y) {
        y = Gemm <alpha = -2.0, beta = 3.0, transB = 1> (a, b, c) }"""
    a, b, c = rng.standard_normal((3, 4)), rng.standard_normal((5, 4)), rng.standard_normal(5)
    row = scan(gemm, {"a": np.float32(a), "b": np.float32(b), "c": np.float32(c)})["y"]
    assert row.sum_bound == pytest.approx((2 * np.abs(a) @ np.abs(b).T + 3 * np.abs(c)).max(), rel=1e-5)
    squares = 4 * a**2 @ (b**2).T + 9 * c**2
    exact = -2 * a @ b.T + 3 * c
    assert row.condition == pytest.approx(np.sqrt(squares.mean()) / np.sqrt((exact**2).mean()), rel=1e-5)


def test_the_document_puts_the_targets_format_first():
    text = "main (float[2] x) => (float[2] y) { a = Mul(x, x)\n y = Sqrt(a) }"
    rows = tuple(scan(text, {"x": np.float32([299.5, 1])}).values())
    shown = Ranges.of(rows, Precision.FP8E4M3, "feed")
    assert (shown.tensors, [row.value for row in shown.rows]) == (2, ["a"])
    assert [row.value for row in Ranges.of(rows, Precision.FP16, "feed").rows] == ["a"]
    assert Precision.BF16 in FORMATS
    assert Ranges.of(rows, Precision.BF16, "feed").rows[0].misfits_in(Precision.BF16) == ()


def test_bounds_that_do_not_matter_are_left_out_and_nothing_else():
    text = """main (float[1, 1000] x, float[1000, 2] w) => (float[1, 2] y) { s = MatMul(x, w)
        y = Softmax <axis = 1> (s) }"""
    feed = {"x": np.float32([[100, -100] * 500]), "w": np.ones((1000, 2), np.float32)}
    exact = scan(text, feed)
    for limit, bounds in ((65504.0, (1e5, None)), (3e38, (None, None))):
        rows = scan(text, feed, beyond=limit)
        assert (rows["s"].sum_bound, rows["y"].sum_bound) == bounds
        assert rows["s"].condition == exact["s"].condition == np.inf
    assert words(scan(text, feed, beyond=65504.0)["s"]) == words(exact["s"])
