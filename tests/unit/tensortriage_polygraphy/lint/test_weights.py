"""Weights against formats. Expected losses follow from the formats: float16 has steps of 2^-24 below 6.1e-5."""

import numpy as np
import pytest

from lint_models import BF16, FP16, found, with_weight

NET = "g (float[2, 64] x) => (float[2, 64] y) { [mm] y = MatMul(x, w) }"
RNG = np.random.default_rng(0)


def judged(array, aims=None):
    return found(NET, aims, edit=with_weight("w", array))


def normal(scale):
    return (RNG.standard_normal((64, 64)) * scale).astype(np.float32)


@pytest.mark.parametrize("scale", [0.02, 1.0, 100.0])
def test_trained_weights_are_fine(scale):
    """At 0.02 some 0.2 % of the weights are subnormal in float16, which costs nothing that matters."""
    assert judged(normal(scale), FP16) == []


def test_beyond_the_range():
    weight = normal(1.0)
    weight[3, 4] = 65519.0  # still rounds to 65504
    assert judged(weight, FP16) == []
    weight[3, 4] = 65520.0  # half a step further: Inf
    assert judged(weight, FP16) == [("weight-beyond-range", "problem", "mm")]
    assert judged(weight, BF16) == [("weight-beyond-range", "hint", "mm")]


def test_all_small():
    """Of N(0, 1e-6) float16 keeps steps of 6e-8: a relative error of 6e-8 / sqrt(12) / 1e-6 = 1.7 %."""
    assert judged(normal(1e-6), FP16) == [("weight-subnormal", "problem", "mm")]
    assert judged(normal(1e-6), BF16) == [("weight-subnormal", "hint", "mm")]


def test_not_quite_small_enough_to_be_a_problem():
    assert judged(normal(4e-6), FP16) == [("weight-subnormal", "hint", "mm")]


def test_small_ones_among_large_ones_do_not_matter():
    weight = normal(1e-7)
    weight[0] = 1.0
    assert judged(weight, FP16) == []


def test_bf16_loses_only_what_float32_hardly_holds():
    assert ("weight-subnormal", "problem", "mm") in judged(normal(1e-40), BF16)


def test_float16_weights_fit_float16():
    text = NET.replace("float[", "float16[")
    assert found(text, FP16, edit=with_weight("w", normal(1e-6).astype(np.float16))) == []


def test_the_numbers_are_told():
    from lint_models import findings

    weight = normal(1.0)
    weight[:2] = 1e6
    (finding,) = (f for f in findings(NET, FP16, edit=with_weight("w", weight)) if f.slug == "weight-beyond-range")
    assert finding.why == "128 of the weights, up to 1 million, are Inf in fp16"
    assert finding.value == "w"
