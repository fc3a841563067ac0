"""Freedoms forgive what they cost and no more, and on unknown hardware only when they are a habit."""

import numpy as np
import pytest

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.limits import Limit
from tensortriage.envelope.ops import with_freedoms
from tensortriage.envelope.registry import REGISTRY

FP16_SUMS = next(each for each in REGISTRY if each.name == "fp16-accumulator")
CENTRE = np.random.default_rng(0).standard_normal(4096)


def off_by(error):
    """Return the figures of a tensor whose relative RMS error is as given."""
    noise = np.random.default_rng(1).standard_normal(CENTRE.size)
    noise *= error * np.sqrt(np.mean(CENTRE**2)) / np.sqrt(np.mean(noise**2))
    return measure(CENTRE, CENTRE + noise)


def taken(errors, *, hardware=Hardware.GPU, allowed=1e-3, kinds="MatMul", suspects=None):
    """Return the limits of some values, which are 1e-4 with one freedom that allows so much."""
    plain = dict.fromkeys(errors, Limit(1e-4, Basis.FORMAT))
    figures = {FP16_SUMS: {value: off_by(allowed) for value in errors}}
    return with_freedoms(
        plain, figures, errors, op_types=lambda value: frozenset({kinds}), suspects=suspects or list(errors),
        hardware=hardware,
    )  # fmt: skip


def test_an_error_of_the_size_of_a_freedom_is_granted_and_a_larger_one_is_not():
    found = taken({"a": 1.2e-3, "b": 2e-2})
    assert found.chosen == {"a": FP16_SUMS}
    assert 1e-3 < found.limits["a"].error < 2e-3  # 3 dB and a little for few elements
    assert found.limits["a"].by == ("fp16-accumulator",)
    assert found.limits["b"] == Limit(1e-4, Basis.FORMAT)


def test_a_freedom_concerns_its_operators_only():
    assert taken({"a": 1e-3}, kinds="Add").chosen == {}


@pytest.mark.parametrize(("hardware", "expected"), [(Hardware.ANY, set()), (Hardware.GPU, {"a"})])
def test_one_product_of_many_is_no_habit_of_unknown_hardware(hardware, expected):
    errors = {"a": 1e-3, "b": 5e-5, "c": 5e-5, "d": 5e-5}
    assert set(taken(errors, hardware=hardware, suspects=["a"]).chosen) == expected


def test_half_of_the_products_are_a_habit():
    errors = {"a": 1e-3, "b": 1e-3, "c": 5e-5, "d": 5e-5}
    assert set(taken(errors, hardware=Hardware.ANY, suspects=["a", "b"]).chosen) == {"a", "b"}
