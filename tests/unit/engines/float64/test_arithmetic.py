"""The policy that options describe, and what it means for a step and for a value."""

import pytest

from tensortriage.engines.float64.accumulation import EXACT_SUMS, Accumulation
from tensortriage.engines.float64.arithmetic import EXACT, OPTIONS, RESULTS_ROUNDED, Arithmetic, read_arithmetic
from tensortriage.engines.float64.function_accuracy import Functions
from tensortriage.engines.float64.number_rounding import Rounding
from tensortriage.engines.options import read_options
from tensortriage.engines.spec import Hardware
from tensortriage.errors import UsageError
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import DType, Precision

FLOAT, HALF, BRAIN, DOUBLE = DType.FLOAT, DType.FLOAT16, DType.BFLOAT16, DType.DOUBLE


def read(text):
    return read_arithmetic(read_options(dict(pair.split("=") for pair in text.split(",") if pair), OPTIONS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", EXACT),
        ("rounding=none", EXACT),
        ("rounding=results", RESULTS_ROUNDED),
        ("format=fp16", Arithmetic(rounds=True, format=HALF)),
        ("format=bf16,rounding=none", Arithmetic(rounds=True, format=BRAIN)),
        ("accumulator=fp32", Arithmetic(products=Accumulation(FLOAT), sums=Accumulation(FLOAT))),
        ("accumulator=fp16,block=8", Arithmetic(products=Accumulation(HALF, 8), sums=Accumulation(FLOAT, 8))),
        ("accumulator_rounding=truncate", Arithmetic(products=Accumulation(truncate=True))),
        ("accumulated=narrow", Arithmetic(narrow_only=True)),
        ("conv_results=truncate", Arithmetic(cut_convolutions=True)),
        ("operands=tf32", Arithmetic(products=Accumulation(operand_bits=10))),
        ("operands=tf32-truncated", Arithmetic(products=Accumulation(operand_bits=10, operand_truncate=True))),
        ("operands=bf16", Arithmetic(products=Accumulation(operand_bits=7))),
        ("functions=npu,seed=3,reciprocals=truncate", Arithmetic(functions=Functions(Hardware.NPU, 3,
                                                                                     cut_reciprocals=True))),
        ("fused=true", Arithmetic(fused=True)),
        ("denormals=flush", Arithmetic(flush=True)),
        ("amplify=9", Arithmetic(amplify=9)),
        *((f"winograd={word}", Arithmetic(winograd=size)) for word, size in
          {"false": 0, "true": 2, "2": 2, "4": 4, "6": 6}.items()),
        *((f"operands={precision.value}", Arithmetic(products=Accumulation(operand_blocks=block)))
          for precision, block in BLOCK_FORMATS.items()),
    ],
)  # fmt: skip
def test_options_describe_a_policy(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "rounding=all", "format=fp32", "format=int8", "accumulator=fp64", "accumulated=some", "block=0", "block=x",
        "operands=fp8", "accumulator_rounding=up", "conv_results=up", "functions=tpu", "reciprocals=up", "seed=-1",
        "fused=maybe", "denormals=zero", "amplify=0", "winograd=3",
    ],
)  # fmt: skip
def test_unknown_values_are_usage_errors(text):
    with pytest.raises(UsageError) as caught:
        read(text)
    assert caught.value.cure


def test_the_precision_is_the_format_else_that_of_the_results():
    assert EXACT.precision is read("accumulator=fp32").precision is Precision.FP64
    assert RESULTS_ROUNDED.precision is Precision.FP32
    assert read("format=bf16,accumulator=bf16").precision is Precision.BF16


@pytest.mark.parametrize("dtype", [DOUBLE, DType.INT32, None])
def test_steps_of_other_types_are_exact(dtype):
    assert read("format=fp16,functions=cpu,accumulator=fp16").for_results(dtype) == EXACT


@pytest.mark.parametrize(
    ("text", "dtype", "stored"),
    [
        ("functions=gpu", FLOAT, FLOAT),
        ("functions=gpu", HALF, HALF),
        ("functions=gpu,format=bf16", FLOAT, BRAIN),
        ("functions=gpu,format=bf16", HALF, HALF),
    ],
)
def test_functions_know_how_their_results_are_stored(text, dtype, stored):
    assert read(text).for_results(dtype).functions == Functions(Hardware.GPU, stored=stored)


@pytest.mark.parametrize(
    ("text", "dtype", "accumulator"),
    [
        ("accumulator=fp16", FLOAT, HALF),
        ("accumulator=fp16,accumulated=narrow", FLOAT, FLOAT),
        ("accumulator=fp16,accumulated=narrow", HALF, HALF),
        ("accumulator=fp16,accumulated=narrow,format=fp16", FLOAT, HALF),
        ("accumulated=narrow", FLOAT, None),
    ],
)
def test_sums_of_wide_results_need_not_be_narrow(text, dtype, accumulator):
    assert read(text).for_results(dtype).products.accumulator is accumulator
    assert read("accumulated=narrow").for_results(FLOAT).products == EXACT_SUMS


def test_values_are_rounded_to_their_type_and_then_to_the_format():
    assert EXACT.rounding(FLOAT) is None
    assert RESULTS_ROUNDED.rounding(HALF) == Rounding((HALF,))
    narrow = read("format=fp16,denormals=flush")
    assert narrow.rounding(FLOAT) == Rounding((FLOAT, HALF), flush=True)
    assert narrow.rounding(FLOAT, to_format=False) == Rounding((FLOAT,), flush=True)
    assert narrow.rounding(HALF) == Rounding((HALF,), flush=True)


def test_results_of_convolutions_alone_are_cut_off():
    cut = read("rounding=results,conv_results=truncate")
    assert cut.rounding(HALF, convolved=True) == Rounding((HALF,), False, True)
    assert cut.rounding(HALF) == Rounding((HALF,))
    assert RESULTS_ROUNDED.rounding(HALF, convolved=True) == Rounding((HALF,))
