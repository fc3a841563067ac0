import numpy as np
import pytest

from tensortriage.compare.metrics import blocks, max_ulp, ulp
from tensortriage.compare.metrics.tensor_metrics import measure


@pytest.mark.parametrize("apart", [1, 2, 3, 100, 511, 1000, 1023])
def test_no_number_of_float16_is_farther_than_its_relative_error_allows(apart):
    """All pairs of positive numbers so many apart, subnormal ones included, and the bound is nearly reached."""
    bits = np.arange(1, 0x7C00 - apart, dtype=np.uint16)
    low, high = (part.view(np.float16).astype(np.float64) for part in (bits, bits + np.uint16(apart)))
    numbers = 2.0 * max_ulp._format(np.dtype(np.float16))[0]
    shares = []
    for reference, target in ((low, high), (high, low)):
        relative = np.abs(target - reference) / reference
        small = relative[relative <= 0.5].tolist()
        allowed = np.array([max_ulp._farthest(each, numbers) for each in small]) - max_ulp._SLACK
        shares += (apart / allowed).tolist()
    assert max(shares) <= 1.0
    assert max(shares) > 0.7


@pytest.mark.parametrize("seed", range(4))
def test_alike_relative_errors_everywhere_hide_no_farther_element(seed):
    """Noise in proportion, where hardly a block stands out: the maximum is that of all elements."""
    random = np.random.default_rng(seed)
    reference = random.standard_normal(1 << 19, dtype=np.float32)
    target = reference * (1 + np.float32(10.0**-seed / 20) * random.standard_normal(1 << 19, dtype=np.float32))
    assert measure(reference, target).max_ulp_error == ulp.max_distance(reference, target, np.dtype(np.float32))


def test_opposite_signs_near_the_end_of_the_range_are_counted():
    """The bound on their product is beyond float64; float64 beside int64 is never computed by the compiled pass."""
    reference, target = np.full(2 * blocks.BLOCK, 1e308), np.full(2 * blocks.BLOCK, -(2**63))
    expected = ulp.max_distance(reference[:1], target[:1], np.dtype(np.float64))
    assert measure(reference, target).max_ulp_error == expected
