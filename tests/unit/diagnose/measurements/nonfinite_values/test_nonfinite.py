"""What formats can hold: the numbers follow from bits of exponent and mantissa, (2 - 2^-m) * 2^e at most."""

import pytest

from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import largest_number
from tensortriage.values.dtype import Precision

FP32 = (2.0 - 2.0**-23) * 2.0**127


@pytest.mark.parametrize(
    ("precision", "largest"),
    [
        (Precision.FP16, (2.0 - 2.0**-10) * 2.0**15),
        (Precision.BF16, (2.0 - 2.0**-7) * 2.0**127),
        (Precision.FP8E4M3, 448.0),  # OCP OFP8 1.0, table 1: the last mantissa is NaN
        (Precision.FP8E5M2, (2.0 - 2.0**-2) * 2.0**15),
        (Precision.FP32, FP32),
        (Precision.TF32, FP32),
        (Precision.INT8, FP32),
    ],
)
def test_the_largest_number_is_that_of_what_results_are_kept_in(precision, largest):
    assert largest_number(precision) == largest
