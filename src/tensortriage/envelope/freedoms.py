"""What engines are free to choose beyond the last bit: accumulators, shortened operands, approximated functions.

A freedom is told in words when an engine takes it, and forgives what it costs and no more. Each is an option of the
engine ``reference``, which evaluates the model as an engine would that takes it.
"""

import dataclasses
from collections.abc import Collection, Mapping

from tensortriage.envelope.hardware import Hardware
from tensortriage.values.dtype import Precision

_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention", "MultiHeadAttention",
    "FusedMatMul", "FusedConv", "FusedGemm", "DeformConv", "MatMulNBits",
})  # fmt: skip
"""Operators that units for matrix products compute."""

_EVERY = frozenset(Precision)
_WIDE = frozenset({Precision.FP32, Precision.TF32})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """One choice that leaves an engine healthy.

    Attributes:
        name: Short name, for files.
        words: What it is, after the name of an operator and a colon: ``sums kept in fp16, usual on GPUs``.
        avoided: How to avoid it, for people; empty when there is no general way.
        options: Of the engine ``reference``, on top of those of the target's format.
        hardware: Classes of hardware that may take it; `Hardware.ANY` always may, and alone where there is none.
        precisions: Formats of the target in which it is taken.
        operators: ONNX operators it concerns; empty for those whose results it changes.
        source: Where its size comes from.
    """

    name: str
    words: str
    avoided: str
    options: Mapping[str, str]
    hardware: frozenset[Hardware]
    precisions: frozenset[Precision]
    operators: frozenset[str] = frozenset()
    source: str = ""

    def concerns(self, op_types: Collection[str]) -> bool:
        """Say whether one of some operators may take it."""
        return not self.operators or not self.operators.isdisjoint(op_types)


FP16_SUMS = Freedom(
    "fp16-accumulator",
    "sums kept in fp16, usual on GPUs and NPUs",
    "keep these ops in fp32 (--kept), or ask for precision=fp32 or bf16",
    {"accumulator": "fp16", "block": "8"},
    frozenset({Hardware.GPU, Hardware.NPU}),
    frozenset({Precision.FP16}),
    _PRODUCTS,
    "PTX ISA, mma.m16n8k8 with .f16 accumulators: 8 products between roundings, the smallest block of the units in "
    "use; TensorRT 8.5.3 (H200, FP16) rounds after 16: MatMul over 768 products is off by 1.07e-3, over 3072 by "
    "2.05e-3; for convolutions of few channels see `Accumulation.over_channels`",
)
FP16_RESULTS_CUT = Freedom(
    "fp16-results-cut",
    "results cut off to fp16, seen on TensorRT",
    "keep these ops in fp32 (--kept), or ask for precision=fp32 or bf16",
    {"conv_results": "truncate"},
    frozenset({Hardware.GPU}),
    frozenset({Precision.FP16}),
    frozenset({"Conv", "ConvTranspose", "FusedConv"}),
    "TensorRT 8.5.3 (H100, FP16), Convs of a ResNet-50 alone: 20 of 32 shrink their results by 3.2e-4 to 3.7e-4, and "
    "scatter by 3.0e-4 about that, as numbers cut off at 11 bits do (3.5e-4); rounding to nearest shrinks nothing",
)
BF16_SUMS = Freedom(
    "bf16-accumulator",
    "sums kept in bf16, usual on NPUs",
    "keep these ops in fp32 (--kept), or ask for precision=fp16 or fp32",
    {"accumulator": "bf16", "block": "16"},
    frozenset({Hardware.NPU}),
    frozenset({Precision.BF16}),
    _PRODUCTS,
    "running sums rounded to bf16 after every 16 products, the smallest block of the units in use",
)
FP32_SUMS_CUT = Freedom(
    "fp32-accumulator-cut",
    "sums cut off to fp32, usual on tensor cores of GPUs",
    "",
    {"accumulator": "fp32", "accumulator_rounding": "truncate", "block": "8"},
    frozenset({Hardware.GPU}),
    _WIDE,
    _PRODUCTS,
    "Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330 "
    "(2021): what is added to a running sum is truncated, after 4 (V100) or 8 products (A100)",
)
TF32 = Freedom(
    "tf32-operands",
    "operands in TF32, usual on GPUs",
    "switch TF32 off in the engine",
    {"operands": "tf32"},
    frozenset({Hardware.GPU}),
    _WIDE,
    _PRODUCTS,
    "NVIDIA A100 whitepaper: operands keep 10 bits of their fractions",
)
TF32_CUT = Freedom(
    "tf32-operands-cut",
    "operands cut to TF32, usual on GPUs",
    "switch TF32 off in the engine",
    {"operands": "tf32-truncated"},
    frozenset({Hardware.GPU}),
    _WIDE,
    _PRODUCTS,
    "as TF32; units that are handed float32 numbers leave out the last bits instead of rounding (PTX ISA, mma, .tf32)",
)
GPU_FUNCTIONS = Freedom(
    "gpu-functions",
    "approximated function, usual on GPUs",
    "",
    {"functions": "gpu"},
    frozenset({Hardware.GPU}),
    _EVERY,
    frozenset(),
    "tensortriage.engines.reference.function_accuracy, class gpu",
)
NPU_FUNCTIONS = Freedom(
    "npu-functions",
    "approximated function, usual on NPUs",
    "",
    {"functions": "npu"},
    frozenset({Hardware.NPU}),
    _EVERY,
    frozenset(),
    "tensortriage.engines.reference.function_accuracy, class npu",
)
NPU_SOFTMAX = Freedom(
    "npu-softmax",
    "approximated Softmax, off to one side, usual on NPUs",
    "keep these ops in fp32 (--kept)",
    {"functions": "npu", "reciprocals": "truncate"},
    frozenset({Hardware.NPU}),
    frozenset({Precision.FP16}),
    frozenset({"Softmax", "Attention"}),
    "tensortriage.engines.reference.function_accuracy, CUT_RECIPROCALS: one reciprocal scales a row. QNN 2.7.0 (HTP "
    "emulator, fp16): an Attention of 4 x 8 is 0.9989 of its exact value; errors of changing sign cancel in the "
    "product behind the Softmax, 3e-4",
)
WINOGRAD = Freedom(
    "winograd",
    "convolution by Winograd's method",
    "",
    {"winograd": "4"},
    frozenset({Hardware.CPU, Hardware.GPU, Hardware.NPU}),
    _EVERY,
    frozenset({"Conv", "FusedConv"}),
    "F(4x4, 3x3), the larger tiles of Lavin and Gray, CVPR 2016",
)
LARGE_WINOGRAD = Freedom(
    "winograd-6",
    "convolution by Winograd's method in tiles of 6 x 6, seen on MNN and ncnn",
    "",
    {"winograd": "6"},
    frozenset(),
    _EVERY,
    frozenset({"Conv", "FusedConv"}),
    "F(6x6, 3x3) on whole points: a Conv of 64 channels and 56 x 56 pixels is off by 1.6e-4 on MNN 3.6.1, 1.8e-4 "
    "predicted; of 32 channels and 28 x 28 by 2.5e-6 on ncnn, whose points are 0, 1, -1, 2, -2, 1/2, -1/2; IREE, TVM "
    "and LiteRT convolve directly, 3e-7",
)

FREEDOMS = (
    FP16_SUMS,
    FP16_RESULTS_CUT,
    BF16_SUMS,
    FP32_SUMS_CUT,
    WINOGRAD,
    LARGE_WINOGRAD,
    TF32,
    TF32_CUT,
    GPU_FUNCTIONS,
    NPU_FUNCTIONS,
    NPU_SOFTMAX,
)
"""All of them; where several explain an error, the first one is named."""


def freedoms_of(hardware: Hardware, precision: Precision) -> tuple[Freedom, ...]:
    """Return what engines of a class may choose while they compute in a format."""
    return tuple(
        freedom
        for freedom in FREEDOMS
        if precision in freedom.precisions and (hardware is Hardware.ANY or hardware in freedom.hardware)
    )


def expected_of(hardware: Hardware, precision: Precision) -> tuple[Freedom, ...]:
    """Return what a healthy engine of a known class is expected to choose; nothing where the class is not known.

    Shortened operands are none of it for an engine that was asked for fp32: the format TF32 has a name of its own. Sums
    cut off to fp32 are asked about only where an engine fails: evaluating them takes twelve times as long as the rest.
    So are results cut off to fp16 and a Softmax off to one side: not all ops of an engine do it, and where all did, it
    would allow much.
    """
    if hardware is Hardware.ANY:
        return ()
    unexpected = (FP32_SUMS_CUT, FP16_RESULTS_CUT, NPU_SOFTMAX) + (
        () if precision is Precision.TF32 else (TF32, TF32_CUT)
    )
    return tuple(freedom for freedom in freedoms_of(hardware, precision) if freedom not in unexpected)
