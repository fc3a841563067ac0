import numpy as np
import pytest

from tensortriage_quantize.calibration.range_coverage import outgrown, range_uses


def test_clipping_and_rounding_are_weighed_against_each_other():
    """Half-width 1.27 has steps of 0.01, so rounding makes 0.01**2 / 12; one of four values lies 0.01 beyond."""
    array = np.array([0.5, -1.28, 1.27, 0.0])
    use = range_uses({"t": (-1.27, 1.0)}, [("t", array), ("unknown", array)])["t"]
    assert (use.half_width, use.clipped, use.count, use.clipped_share) == (1.27, 1, 4, 0.25)
    assert use.largest == 1.28
    assert use.clipping_over_rounding == pytest.approx(0.01**2 / 4 / (0.01**2 / 12))


def test_samples_add_up_and_the_worst_range_comes_first():
    ranges = {"mild": (-1.0, 1.0), "held": (-1.0, 1.0), "bad": (-1.0, 0.5)}
    arrays = [(name, np.array([0.9])) for name in ranges]
    arrays += [("mild", np.array([1.1])), ("bad", np.array([-5.0]))]
    uses = range_uses(ranges, arrays)
    assert {name: use.count for name, use in uses.items()} == {"mild": 2, "held": 1, "bad": 2}
    assert [use.value for use in outgrown(uses)] == ["bad", "mild"]


def test_a_range_of_nothing_clips_whatever_is_not_zero():
    uses = range_uses({"zero": (0.0, 0.0), "used": (0.0, 0.0)}, [("zero", np.zeros(3)), ("used", np.ones(3))])
    assert uses["zero"].clipping_over_rounding == 0.0
    assert [use.value for use in outgrown(uses)] == ["used"]
