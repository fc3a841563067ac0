"""Expected figures are computed here by Python's own statistics module, or by hand."""

import statistics

import ml_dtypes
import numpy as np
import pytest

from tensortriage_polygraphy.statistics import Histogram, histogram, summarize


def test_figures_of_a_plain_tensor():
    values = [3.0, -1.0, 0.0, 8.0, 2.5, 0.0]
    summary = summarize("x", np.array(values, np.float32).reshape(2, 3))
    assert (summary.name, summary.dtype, summary.shape, summary.count) == ("x", "float32", (2, 3), 6)
    assert (summary.nan, summary.inf) == (0, 0)
    figures = summary.figures
    assert (figures.minimum, figures.minimum_at, figures.maximum, figures.maximum_at) == (-1, (0, 1), 8, (1, 0))
    assert figures.zeros == 2
    assert figures.mean == pytest.approx(statistics.mean(values))
    assert figures.deviation == pytest.approx(statistics.pstdev(values))
    assert figures.median == statistics.median(values)
    assert figures.mean_magnitude == pytest.approx(14.5 / 6)
    assert figures.percentiles == pytest.approx((5.5, 6.75, 7.75))  # between the two largest, 3 and 8


def test_nan_and_inf_are_counted_and_left_out():
    summary = summarize("x", np.array([[np.nan, 2, np.inf], [-np.inf, np.nan, 4]]))
    assert (summary.nan, summary.inf) == (2, 2)
    figures = summary.figures
    assert (figures.minimum, figures.minimum_at, figures.maximum, figures.maximum_at) == (2, (0, 1), 4, (1, 2))
    assert (figures.mean, figures.deviation, figures.median) == (3, 1, 3)


@pytest.mark.parametrize("array", [np.array([np.nan, np.inf]), np.zeros((0, 3)), np.array(["a"]), np.zeros(0, bool)])
def test_no_figures_where_there_is_nothing_to_count(array):
    assert summarize("x", array).figures is None
    assert summarize("x", array).count == array.size
    assert histogram(array) is None


def test_integers_are_exact():
    figures = summarize("x", np.array([2**62 + 1, -(2**62) - 1, 5])).figures
    assert (figures.minimum, figures.maximum) == (-(2**62) - 1, 2**62 + 1)
    assert figures.mean_magnitude == pytest.approx((2**63 + 7) / 3)
    assert summarize("x", np.array([2**64 - 1], np.uint64)).figures.maximum == 2**64 - 1


@pytest.mark.parametrize(
    ("array", "dtype", "minimum", "maximum"),
    [
        (np.array([1.5, -2]).astype(ml_dtypes.bfloat16), "bfloat16", -2, 1.5),
        (np.array([1.5, -2]).astype(ml_dtypes.float8_e4m3fn), "float8_e4m3fn", -2, 1.5),
        (np.array([7, -8]).astype(ml_dtypes.int4), "int4", -8, 7),
        (np.array([65504, -65504], np.float16), "float16", -65504, 65504),
        (np.array([True, False]), "bool", 0, 1),
        (np.array([3 + 4j, 1]), "complex128", 1, 5),
        (np.float32(7), "float32", 7, 7),
    ],
)
def test_every_type(array, dtype, minimum, maximum):
    summary = summarize("x", np.asarray(array))
    assert summary.dtype == dtype
    assert (summary.figures.minimum, summary.figures.maximum) == (minimum, maximum)


def test_extremes_do_not_overflow():
    largest = np.finfo(np.float64).max
    figures = summarize("x", np.array([largest, -largest])).figures
    assert figures.minimum == -largest
    assert histogram(np.array([largest, -largest])) is None


def test_histogram():
    found = histogram(np.array([0.0, 0.1, 0.95, 1.0, np.nan, np.inf]))
    assert found.edges == pytest.approx([i / 10 for i in range(11)])
    assert found.counts == (1, 1, 0, 0, 0, 0, 0, 0, 0, 2)
    assert histogram(np.full((2, 3), 7)) == Histogram((7.0, 7.0), (6,))
