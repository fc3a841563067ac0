"""Healthy rounding noise has no anatomy, whatever the tensor looks like, and any pair of tensors is survived."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.arrays import NUMBERS, SHAPES, arrays, layouts
from tensortriage.compare.patterns.anatomy import SLUGS, dissect
from tensortriage.values.dtype import DType

HEALTHY = {"rounding", "noise", "narrow-format"}
"""Findings that only say that there is noise, and of which kind."""

TENSOR_SHAPES = st.sampled_from([(64,), (1000,), (16, 16), (2, 64, 16), (4, 8, 10, 10), (2, 65, 24), (3, 1, 40)])


def outlier_channel(normal):
    normal[..., 0] *= 100
    return normal


def massive_activation(normal):
    normal.flat[0] = 3e4
    return normal


KINDS = {
    "normal": lambda normal: normal,
    "relu": lambda normal: np.maximum(normal, 0),
    "relu6": lambda normal: np.clip(3 * normal, 0, 6),
    "softmax": lambda normal: np.exp(4 * normal) / np.exp(4 * normal).sum(-1, keepdims=True),
    "outlier channel": outlier_channel,
    "massive activation": massive_activation,
    "lognormal": lambda normal: np.exp(2 * normal),
    "masked": lambda normal: np.where(normal > 1, -1e4, normal),
    "ramp": lambda normal: np.linspace(0, 1, normal.size).reshape(normal.shape),
}


@settings(deadline=None, max_examples=120)
@given(st.sampled_from([*KINDS]), TENSOR_SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([*"abcd"]))
def test_rounding_to_a_format_is_rounding_and_nothing_else(kind, shape, seed, format_):
    reference = KINDS[kind](np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
    target_type = {"a": np.float16, "b": ml_dtypes.bfloat16, "c": np.float16, "d": ml_dtypes.bfloat16}[format_]
    target = reference.astype(target_type)
    if format_ in "cd":
        target = target.astype(np.float32)
    assert set(dissect(reference, target).slugs) <= {"rounding"}


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from([*KINDS]),
    TENSOR_SHAPES,
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-6, 1e-3, 2e-2]),
    st.sampled_from(["relative", "uniform", "absolute"]),
)
def test_noise_is_noise_and_nothing_else(kind, shape, seed, amount, law):
    rng = np.random.default_rng(seed)
    reference = KINDS[kind](rng.standard_normal(shape))
    size = np.sqrt(np.mean(reference**2)) if law == "absolute" else np.abs(reference)
    drawn = rng.uniform(-1, 1, shape) if law == "uniform" else rng.standard_normal(shape)
    target = reference + amount * size * drawn
    assert set(dissect(reference, target).slugs) <= HEALTHY


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_fault_shows_through_the_noise_of_bfloat16(kind):
    rng = np.random.default_rng(0)
    reference = KINDS[kind](rng.standard_normal((4, 16, 24)))
    target = 1.5 * reference * (1 + 2e-3 * rng.standard_normal(reference.shape))
    assert "scale" in dissect(reference, target).slugs


def test_a_signalling_nan_is_survived():
    reference = np.array([0, 0, 0x7C01], np.uint16).view(np.float16)  # the quiet bit is not set (IEEE 754-2008, 6.2.1)
    assert {*dissect(reference, np.ones(3, np.float32)).slugs} <= {*SLUGS}


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_pair_of_arrays_is_survived(data):
    shape = data.draw(SHAPES)
    kinds = [DType.STRING] if data.draw(st.booleans()) else NUMBERS
    reference, target = (data.draw(arrays(kinds, st.just(shape)).flatmap(layouts)) for _ in range(2))
    found = dissect(reference, target, others={"other": data.draw(arrays(NUMBERS, st.just(shape)))})
    assert {*found.slugs} <= {*SLUGS}
    assert all(0 <= finding.strength <= 1 for finding in found.findings)
