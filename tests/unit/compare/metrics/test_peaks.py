"""Expected places: numpy.flatnonzero on the whole array."""

import numpy as np
import pytest

from tensortriage.compare.metrics.peaks import RUN, SMALL, few_reaching, gathered, peaks, places_reaching

SIZES = [1, RUN + 1, SMALL, SMALL + 1, SMALL + RUN, 40 * RUN + 7]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("limit", [-9.0, 1.0, 3.0, 9.0])
def test_places_are_all_those_that_reach_a_limit(size, limit):
    values = np.abs(np.random.default_rng(size).standard_normal(size))
    values[-1] = 3.5
    assert places_reaching(values, peaks(values), limit).tolist() == np.flatnonzero(values >= limit).tolist()


@pytest.mark.parametrize("size", [size for size in SIZES if size > SMALL])
def test_each_run_has_its_maximum(size):
    values = np.abs(np.random.default_rng(size).standard_normal(size, dtype=np.float32))
    assert peaks(values).tolist() == [values[begin : begin + RUN].max() for begin in range(0, size, RUN)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_with_a_nan_has_no_maximum(dtype, sign):
    values = np.full(20 * RUN, np.inf, dtype)
    values[3 * RUN + 1] = np.copysign(np.nan, sign)  # 0 / 0 is a negative one on x86
    assert np.flatnonzero(np.isnan(peaks(values))).tolist() == [3]


def test_the_elements_of_the_last_shorter_run_are_gathered():
    values = np.zeros(20 * RUN + 7)
    values[[RUN, 20 * RUN + 3]] = 1.0
    runs = few_reaching(peaks(values), 1.0)
    assert runs.tolist() == [1, 20]
    assert gathered(values, runs).tolist() == [*values[RUN : 2 * RUN], *values[20 * RUN :]]


def test_many_runs_are_not_few():
    assert few_reaching(np.ones(8), 1.0) is None
