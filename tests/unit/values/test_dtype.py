"""What a precision makes of numbers of a type: float16 has 10 fraction bits and 5 of exponent, bfloat16 7 and 8."""

from tensortriage.values.dtype import DType, Precision


def test_a_precision_narrows_types_that_have_more_digits_or_a_larger_range():
    assert [p for p in Precision if p.narrows(DType.FLOAT16)] == [
        Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8,
    ]  # fmt: skip
    assert Precision.FP16.narrows(DType.BFLOAT16)
    assert Precision.FP16.narrows(DType.FLOAT)
    assert not Precision.FP32.narrows(DType.FLOAT)
    assert not Precision.FP64.narrows(DType.FLOAT)
