"""Operators are told with how many there are of each."""

from tensortriage.diagnose.rungs.number_format.explaining import counted


def test_operators_are_counted():
    assert counted(["Conv", "Gemm", "Conv"]) == "2 Conv and Gemm"
