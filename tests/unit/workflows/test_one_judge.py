"""The same tolerance gives the same answer in every command, on the same pairs of tensors."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tensortriage.compare.judgement.output_judge import Compared, OutputJudge
from tensortriage.compare.judgement.tolerance import ErrorStat, EveryTolerance, PolygraphyTolerance
from tensortriage.compare.measured import compare_all
from tensortriage.diagnose.measurements.outputs import OutputFigures
from tensortriage.diagnose.measurements.outputs import judge as judge_outputs
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import GoalSample, ToleranceGoal
from tensortriage.values.store import MemoryStore

FEED = Feed("feed", {}, Origin.REAL)


def not_measured():
    raise AssertionError("a tolerance needs no floor")


def by_run(tolerance, reference, target):
    pair = Compared.of(reference, target)
    return EveryTolerance([tolerance]).judge("y", pair.metrics, reference, target).within


def by_diagnose(tolerance, reference, target):
    found = compare_all([("y", target)], MemoryStore({"y": reference}), tolerances={"y": tolerance})
    asked = SimpleNamespace(question=SimpleNamespace(tolerance=tolerance))
    return judge_outputs(asked, FEED, OutputFigures(found.metrics, judged=found.judged), Floors({}, {}, {}, "")).passes


def by_reduce_and_build(tolerance, reference, target):
    judge = OutputJudge(tolerance, not_measured)
    pair = Compared.of(reference, target)
    assert judge.excuses("y", pair) is not bool(judge.failing({"y": pair}))
    return judge.excuses("y", pair)


def by_precision(tolerance, reference, target):
    return ToleranceGoal(tolerance, "").judge([GoalSample(FEED, {"y": reference})], [{"y": target}]).within


JUDGES = (by_run, by_diagnose, by_reduce_and_build, by_precision)
TOLERANCES = [
    PolygraphyTolerance(atol=atol, rtol=rtol, check_error_stat=stat)
    for atol, rtol in ((1e-3, 1e-3), (1e-5, 0.1), (0.5, 0.0))
    for stat in ErrorStat
]


def agreed(tolerance, reference, target):
    answers = {judge(tolerance, reference, target) for judge in JUDGES}
    assert len(answers) == 1
    return answers.pop()


def test_some_elements_are_within_the_absolute_and_others_within_the_relative_limit():
    # 0.5 of 1000 is 5e-4, below rtol; 5e-4 of 1e-4 is five times it, below atol: every element is within, though
    # neither the largest absolute nor the largest relative error is.
    pair = np.float64([1000.0, 1e-4, 1.0]), np.float64([1000.5, 6e-4, 1.0])
    assert agreed(PolygraphyTolerance(atol=1e-3, rtol=1e-3), *pair)
    assert not agreed(PolygraphyTolerance(atol=1e-3, rtol=1e-3, check_error_stat=ErrorStat.MAX), *pair)
    assert not agreed(PolygraphyTolerance(atol=1e-4, rtol=1e-4), *pair)


PLAIN = np.float32([1.0, -2.0, 1e-4, 1000.0])
PAIRS = {
    "equal": (PLAIN, PLAIN),
    "nan": (PLAIN, np.float32([np.nan, -2.0, 1e-4, 1000.0])),
    "nan on both sides": (np.float32([np.nan, 1.0]), np.float32([np.nan, 1.0])),
    "inf": (PLAIN, np.float32([1.0, -2.0, 1e-4, np.inf])),
    "inf on both sides": (np.float32([np.inf, 1.0]), np.float32([np.inf, 1.0])),
    "empty": (PLAIN[:0], PLAIN[:0]),
    "integers": (np.int64([0, 5, 2**62]), np.int64([0, 6, -(2**62)])),
    "equal integers": (np.int64([0, 5]), np.int64([0, 5])),
    "zeros": (np.zeros(3, np.float32), np.float32([0.0, 5e-4, 0.0])),
}


@pytest.mark.parametrize("name", PAIRS)
def test_special_values(name):
    for tolerance in TOLERANCES:
        agreed(tolerance, *PAIRS[name])


numbers = arrays.arrays(np.float32, st.integers(1, 6), elements=st.floats(-1e4, 1e4, width=32))


@given(numbers, st.data())
def test_any_pair(reference, data):
    noise = data.draw(
        arrays.arrays(np.float32, reference.shape, elements=st.sampled_from([0.0, 1e-5, 8e-4, 2e-3, 0.3, 1.0]))
    )
    relative = data.draw(st.booleans())
    target = (reference * (1 + noise) if relative else reference + noise).astype(np.float32)
    for tolerance in itertools.islice(TOLERANCES, 0, None, data.draw(st.integers(1, 4))):
        agreed(tolerance, reference, target)
