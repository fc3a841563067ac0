"""The effect that a pattern has on an op's result, as a headline tells it."""

import numpy as np
import pytest

from tensortriage.compare.patterns.anatomy import dissect

RIGHT = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)


@pytest.mark.parametrize(
    ("target", "effect"),
    [
        (RIGHT * np.float32(1.03), "returns 1.03 times the right value"),
        (RIGHT * np.float32(1.0003), "returns 1.0003 times the right value"),
        (-RIGHT, "returns the right value with the wrong sign"),
        (np.zeros_like(RIGHT), "returns 0 everywhere"),
        (np.where(RIGHT > 0.5, np.float32(np.nan), RIGHT), "returns NaN"),
        (RIGHT.astype(np.float16).astype(np.float32), "rounds its result to float16 or TF32"),
        (RIGHT[::-1].copy(), "returns right numbers in wrong places"),
        (RIGHT + np.random.default_rng(1).standard_normal(RIGHT.shape).astype(np.float32), ""),
        (RIGHT, ""),
    ],
)
def test_the_effect_of_a_pattern(target, effect):
    assert dissect(RIGHT, target).effect == effect


def test_a_scale_of_some_elements_is_none_of_the_op():
    target = RIGHT.copy()
    target[:, ::2] *= np.float32(3.0)
    assert "times the right value" not in dissect(RIGHT, target).effect
