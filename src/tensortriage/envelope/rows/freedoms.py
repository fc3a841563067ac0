"""Freedoms of hardware: accumulators, shortened operands, functions, results that are cut off."""

import functools

from tensortriage.engines.float64.function_accuracy import ACCURACIES
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.costs import of_freedoms
from tensortriage.envelope.explanations import Explanation, Needs, Usual
from tensortriage.values.dtype import Precision

_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention", "MultiHeadAttention",
    "FusedMatMul", "FusedConv", "FusedGemm", "DeformConv", "MatMulNBits",
})  # fmt: skip
"""Operators that units for matrix products compute."""

_freedom = functools.partial(Explanation, cost=of_freedoms, needs=Needs(inside=True))
"""The model evaluated in the target's format under its options: alone, or with others that are taken."""

FREEDOMS: tuple[Explanation, ...] = (
    _freedom(
        name="fp16-accumulator",
        words="sums kept in fp16, usual on GPUs and NPUs",
        avoided="keep these ops in fp32 (--kept), or ask for precision=fp32 or bf16",
        options={"accumulator": "fp16", "block": "8"},
        hardware=frozenset({Hardware.GPU, Hardware.NPU}),
        formats={Precision.FP16: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="PTX ISA, mma.m16n8k8 with .f16 accumulators: 8 products between roundings, the smallest block of"
        " the units in use; TensorRT 8.5.3 (H200, FP16) rounds after 16: MatMul over 768 products is off "
        "by 1.07e-3, over 3072 by 2.05e-3; for convolutions of few channels see "
        "`Accumulation.over_channels`",
    ),
    _freedom(
        name="fp16-results-cut",
        words="results cut off to fp16, seen on TensorRT",
        avoided="keep these ops in fp32 (--kept), or ask for precision=fp32 or bf16",
        options={"conv_results": "truncate"},
        hardware=frozenset({Hardware.GPU}),
        formats={Precision.FP16: Usual.SELDOM},
        operators=frozenset({"Conv", "ConvTranspose", "FusedConv"}),
        additive=True,
        source="TensorRT 8.5.3 (H100, FP16), Convs of a ResNet-50 alone: 20 of 32 shrink their results by 3.2e-4"
        " to 3.7e-4, and scatter by 3.0e-4 about that, as numbers cut off at 11 bits do (3.5e-4); "
        "rounding to nearest shrinks nothing",
    ),
    _freedom(
        name="bf16-accumulator",
        words="sums kept in bf16, usual on NPUs",
        avoided="keep these ops in fp32 (--kept), or ask for precision=fp16 or fp32",
        options={"accumulator": "bf16", "block": "16"},
        hardware=frozenset({Hardware.NPU}),
        formats={Precision.BF16: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="running sums rounded to bf16 after every 16 products, the smallest block of the units in use",
    ),
    _freedom(
        name="fp32-accumulator-cut",
        words="sums cut off to fp32, usual on tensor cores of GPUs",
        options={"accumulator": "fp32", "accumulator_rounding": "truncate", "block": "8"},
        hardware=frozenset({Hardware.GPU}),
        formats=dict.fromkeys((Precision.FP32, Precision.TF32), Usual.WHERE_IT_FAILS),
        operators=_PRODUCTS,
        source="Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer "
        "Science 7:e330 (2021): what is added to a running sum is truncated, after 4 (V100) or 8 products"
        " (A100)",
    ),
    _freedom(
        name="winograd",
        words="convolution by Winograd's method",
        options={"winograd": "4"},
        formats={Precision.FP32: Usual.EXPECTED},
        operators=frozenset({"Conv", "FusedConv"}),
        source="F(4x4, 3x3), the larger tiles of Lavin and Gray, CVPR 2016, in fp32; no engine was seen to do it in "
        "narrower formats, or on operands of tensor cores",
    ),
    _freedom(
        name="winograd-6",
        words="convolution by Winograd's method in tiles of 6 x 6, seen on MNN and ncnn",
        options={"winograd": "6"},
        hardware=frozenset({Hardware.LIGHT}),
        engines=frozenset({"mnn", "ncnn"}),
        formats={Precision.FP32: Usual.EXPECTED},
        operators=frozenset({"Conv", "FusedConv"}),
        source="F(6x6, 3x3) on whole points: a Conv of 64 channels and 56 x 56 pixels is off by 1.6e-4 on MNN "
        "3.6.1, 1.8e-4 predicted; of 32 channels and 28 x 28 by 2.5e-6 on ncnn, whose points are 0, 1, "
        "-1, 2, -2, 1/2, -1/2; IREE, TVM and LiteRT convolve directly, 3e-7",
    ),
    _freedom(
        name="tf32-operands",
        words="operands in TF32, usual on GPUs",
        avoided="switch TF32 off in the engine",
        options={"operands": "tf32"},
        hardware=frozenset({Hardware.GPU}),
        formats={Precision.FP32: Usual.WHERE_IT_FAILS, Precision.TF32: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="NVIDIA A100 whitepaper: operands keep 10 bits of their fractions",
    ),
    _freedom(
        name="tf32-operands-cut",
        words="operands cut to TF32, usual on GPUs",
        avoided="switch TF32 off in the engine",
        options={"operands": "tf32-truncated"},
        hardware=frozenset({Hardware.GPU}),
        formats={Precision.FP32: Usual.WHERE_IT_FAILS, Precision.TF32: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="as TF32; units that are handed float32 numbers leave out the last bits instead of rounding (PTX "
        "ISA, mma, .tf32)",
    ),
    _freedom(
        name="gpu-functions",
        words="approximated function, usual on GPUs",
        options={"functions": "gpu"},
        hardware=frozenset({Hardware.GPU}),
        source="tensortriage.engines.float64.function_accuracy, class gpu",
    ),
    _freedom(
        name="npu-functions",
        words="approximated function, usual on NPUs",
        options={"functions": "npu"},
        hardware=frozenset({Hardware.NPU}),
        source="tensortriage.engines.float64.function_accuracy, class npu",
    ),
    _freedom(
        name="light-functions",
        words="approximated function, seen on MNN",
        options={"functions": "light"},
        hardware=frozenset({Hardware.LIGHT}),
        engines=frozenset({"mnn"}),
        operators=frozenset(ACCURACIES[Hardware.LIGHT]),
        source="tensortriage.engines.float64.function_accuracy, class light; LiteRT 2.1.2, ncnn 1.0.20261020 and MNN "
        "3.6.1 but for its GELU are within `MATCH_FACTOR` of class cpu (bench/function_accuracy.py)",
    ),
    _freedom(
        name="npu-softmax",
        words="approximated Softmax, off to one side, usual on NPUs",
        avoided="keep these ops in fp32 (--kept)",
        options={"functions": "npu", "reciprocals": "truncate"},
        hardware=frozenset({Hardware.NPU}),
        formats={Precision.FP16: Usual.WHERE_IT_FAILS},
        operators=frozenset({"Softmax", "Attention"}),
        source="tensortriage.engines.float64.function_accuracy, CUT_RECIPROCALS: one reciprocal scales a row. "
        "QNN 2.7.0 (HTP emulator, fp16): an Attention of 4 x 8 is 0.9989 of its exact value; errors of "
        "changing sign cancel in the product behind the Softmax, 3e-4",
    ),
)
"""One block of the registry."""
