"""Budgets: what is left, what engines may still take, and that nothing is asked once it is spent."""

import math
import time

import pytest

from tensortriage.engines.base import RUN_SECONDS, Limits
from tensortriage.runs.budget import Budget, BudgetSpent


def spent(seconds, after):
    return Budget(seconds, started=time.perf_counter() - after)


def test_without_a_budget_there_is_no_end():
    budget = Budget()
    budget.check()
    assert math.isinf(budget.left)
    assert budget.within(Limits(1.0, 2.0)) == Limits(1.0, 2.0)


def test_a_spent_budget_raises():
    budget = spent(5.0, after=6.0)
    assert budget.left == 0.0
    with pytest.raises(BudgetSpent):
        budget.check()


def test_engines_end_with_the_budget():
    limits = spent(10.0, after=7.0).within(Limits(600.0, 60.0))
    assert limits.build_seconds == pytest.approx(3.0, abs=0.1)
    assert limits.run_seconds == pytest.approx(3.0, abs=0.1)
    assert spent(1000.0, after=0.0).within(Limits(2.0, 1.0)) == Limits(2.0, 1.0)


def test_a_run_limit_that_is_left_open_is_set_only_when_time_is_short():
    assert spent(10.0, after=7.0).within(Limits()).run_seconds == pytest.approx(3.0, abs=0.1)
    assert spent(10 * RUN_SECONDS, after=0.0).within(Limits()).run_seconds is None
