"""The freedoms of a healthy engine against its reference: one table, in the order in which it is walked.

A row excuses an error by its cost and no more. The first rows allow least, or depend on the model alone; the last ones
need the target's ops as well. Freedoms stand in one block: those that all engines of a class take are expected before
anything else is measured, the others count where ops take them (`tensortriage.envelope.judge`).
"""

import functools
from collections.abc import Collection

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.float64.function_accuracy import ACCURACIES
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.costs import (
    of_draws,
    of_format,
    of_freedoms,
    of_int16,
    of_moved_inputs,
    of_orders,
    of_rewrite,
    of_ties,
)
from tensortriage.envelope.explanations import (
    AMPLIFIED_FP32,
    FOLDED,
    PREDICTED,
    ROUNDED,
    Cost,
    Explanation,
    Needs,
    Usual,
)
from tensortriage.envelope.limits import OPS_IN_FP32, of_equal, of_floor
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_operands import (
    blocks_of_products,
    groups_of_products,
    int8_groups,
    int8_operands,
)
from tensortriage.model.quantization.int8_weights import float_weights, weights_in_int8
from tensortriage.model.quantization.qdq import integer_biases, is_quantized
from tensortriage.model.quantization.unrounded_sums import fused_sums, unrounded_sums
from tensortriage.model.quantization.whole_numbers import beside_ties, has_narrow_types, rounds_to_integers
from tensortriage.model.transforms.folded_norms import has_foldable_norms
from tensortriage.values.dtype import Precision

_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention", "MultiHeadAttention",
    "FusedMatMul", "FusedConv", "FusedGemm", "DeformConv", "MatMulNBits",
})  # fmt: skip
"""Operators that units for matrix products compute."""

_order = functools.partial(Explanation, cost=of_orders, allows=lambda cost, _: of_floor(cost))
"""A healthy fp32 evaluation under its options: as far off as the farthest of these is any healthy engine."""

_freedom = functools.partial(Explanation, cost=of_freedoms, needs=Needs(inside=True))
"""The model evaluated in the target's format under its options: alone, or with others that are taken."""

_IN_FP32 = dict.fromkeys(set(Precision) - set(ROUNDED), Usual.EXPECTED)

REGISTRY: tuple[Explanation, ...] = (
    _order(
        name="order-of-sums",
        words="sums in another order, functions as CPUs compute them",
        source="an evaluation whose every operator is `MATCH_FACTOR` times as wrong as a healthy kernel's result",
        options=AMPLIFIED_FP32.options,
    ),
    *(
        _order(
            name=f"order-of-sums-{number}",
            words="sums in yet another order, where roundings to integers may flip",
            source="what a flipped rounding costs depends on which one it is: over seven feeds of a quantized mixer "
            "one evaluation was up to 2.9 times quieter than OpenVINO, the loudest of three 1.2 times",
            options={"accumulator": "fp32", "functions": "cpu", "amplify": amplify, "block": block, "seed": seed},
            applies=rounds_to_integers,
        )
        for number, amplify, block, seed in (
            (2, f"{MATCH_FACTOR - 1:g}", "8", "1"),
            (3, f"{MATCH_FACTOR + 1:g}", "16", "2"),
        )
    ),
    _order(
        name="unrounded",
        words="nothing rounded between operators",
        source="results of engines that compute narrow types in float32 and fuse ops",
        options={"rounding": "none"},
        applies=has_narrow_types,
    ),
    _order(
        name="folded",
        words="weights folded with their BatchNormalization before the first run, stored in the model's narrow type",
        source="over thirty small networks ONNX Runtime was 1.1 to 2.8 times as far off as unrounded",
        options=FOLDED.options,
        applies=lambda model: has_foldable_norms(model) and has_narrow_types(model),
    ),
    Explanation(
        name="number-format",
        words="rounding to the format",
        source="every operator exact, its result rounded to the format; TF32 and formats of blocks shorten operands",
        cost=of_format,
        formats=dict.fromkeys(PREDICTED, Usual.EXPECTED),
    ),
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
    Explanation(
        name="integer-kernels",
        words="biases in int32",
        source="an engine in integers must round its biases to int32, in units of scale times scale",
        cost=of_rewrite,
        needs=Needs(finite=True),
        rewrite=integer_biases,
        applies=lambda model: integer_biases(model) is not None,
    ),
    Explanation(
        name="int8-weights",
        words="float weights in int8",
        avoided="switch the pass off (disabled_optimizers=['WeightBiasQuantization']), or have the file quantize them",
        source="ONNX Runtime 1.31.1 puts the float weight of a Conv, ConvTranspose or Gemm between quantizers in int8 "
        "(pass WeightBiasQuantization), which costs a ConvTranspose 2e-2, and is 1e-7 from this prediction",
        cost=of_rewrite,
        needs=Needs(finite=True),
        rewrite=weights_in_int8,
        applies=lambda model: bool(float_weights(model.graph)),
        hardware=frozenset({Hardware.CPU}),
        engines=frozenset({"onnxruntime"}),
    ),
    Explanation(
        name="unrounded-sums",
        words="results of a Conv added before they are rounded to 8 bits",
        source="OpenVINO 2026.4.1 computes a Conv, the Add behind it and the quantizer of the sum as one primitive; "
        "residual networks of 5e-3 to 2e-2 are 0 from this prediction",
        cost=of_rewrite,
        needs=Needs(finite=True),
        rewrite=unrounded_sums,
        applies=lambda model: bool(fused_sums(model.graph)),
        hardware=frozenset({Hardware.CPU}),
        engines=frozenset({"openvino"}),
    ),
    Explanation(
        name="int16-sums",
        words="sums of 8-bit products saturated in int16 on processors without VNNI, by at most the cost of rounding "
        "to 8 bits",
        avoided="weights in 7 bits (or in uint8 on ONNX Runtime), or a processor with VNNI",
        source="ONNX Runtime 1.31.1 and OpenVINO 2026.4.1 without VNNI: a network of five Gemms is 1e-7 from this on "
        "both, of a loss of 4e-2 (tests/engines/test_without_vnni.py; bench/RESULTS.md, Processors without VNNI)",
        cost=of_int16,
        needs=Needs(finite=True),
        applies=lambda model: any(map(sums_in_int16, ("onnxruntime", "openvino"))) and is_quantized(model.graph),
        hardware=frozenset({Hardware.CPU}),
        engines=frozenset({"onnxruntime", "openvino"}),
    ),
    Explanation(
        name="int8-activations",
        words="activations in int8",
        source="ONNX Runtime 1.31.1 (CPU) fuses DequantizeLinear of a weight of 4 bits and MatMul into MatMulNBits of "
        "accuracy level 4, which rounds what it multiplies to int8 in the weight's blocks: 256 terms in blocks of 32 "
        "make 5.5e-3, and are 3e-7 from this prediction",
        cost=of_rewrite,
        needs=Needs(finite=True, alone=1.0),
        rewrite=int8_operands,
        applies=lambda model: bool(blocks_of_products(model.graph)),
        hardware=frozenset({Hardware.CPU}),
        engines=frozenset({"onnxruntime"}),
    ),
    Explanation(
        name="int8-activations-in-groups",
        words="activations in int8",
        avoided="config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0",
        source="OpenVINO 2026.4.1 (CPU) quantizes what it multiplies by compressed weights dynamically, by default in "
        "groups of 32: 256 terms by weights of 8 or 4 bits make 9e-3, and are 7e-8 from this prediction",
        cost=of_rewrite,
        needs=Needs(finite=True, alone=1.0),
        rewrite=int8_groups,
        applies=lambda model: bool(groups_of_products(model.graph)),
        hardware=frozenset({Hardware.CPU}),
        engines=frozenset({"openvino"}),
    ),
    Explanation(
        name="ties",
        words="a tie that falls on its other side",
        source="float32 carries numbers to ten units in the last place here, within which a Cast, a Round or a Greater "
        "may decide either way: -23.9999964 on OpenVINO (bench/judge_rules.py)",
        cost=of_ties,
        allows=lambda cost, _: cost,
        needs=Needs(alone=OPS_IN_FP32, unproven=True),
        applies=lambda model: beside_ties(model, 0.0) is not None,
        formats=_IN_FP32,
    ),
    Explanation(
        name="amplification",
        words="the model amplifies rounding",
        source="an engine cannot be closer to the reference than the reference is to itself on inputs that float32 "
        "barely separates",
        cost=of_moved_inputs,
        allows=lambda cost, _: of_floor(cost),
        needs=Needs(alone=OPS_IN_FP32, unproven=True),
        draws=4,
        formats=_IN_FP32,
    ),
    Explanation(
        name="chance",
        words="rounding by chance",
        source="of thirteen draws of one distribution, any given draw is the largest once in 13, and rarely by 3 dB",
        cost=of_draws,
        allows=lambda cost, _: of_equal(cost),
        needs=Needs(alone=1.0),
        draws=12,
        formats=dict.fromkeys(set(ROUNDED) - {Precision.INT8}, Usual.EXPECTED),
    ),
)
"""All of them; the first that explains an error is named."""


def freedoms_of_target(
    target: EngineSpec, usual: Usual | None = None, *, op_types: Collection[str] | None = None
) -> tuple[Explanation, ...]:
    """Return the freedoms of a target; see `freedoms_of`."""
    engine = resolve(target)
    return freedoms_of(engine.hardware, engine.precision, usual, engine=engine.known_as, op_types=op_types)


def costing(cost: Cost) -> tuple[Explanation, ...]:
    """Return the rows whose cost a function finds, in order."""
    return tuple(each for each in REGISTRY if each.cost is cost)


def draws_of(precision: Precision) -> int:
    """Return how often rounding to a format is drawn where chance may explain an error; 0 where it explains none."""
    return next((each.draws for each in costing(of_draws) if precision in each.formats), 0)


def orders_of(model: Model) -> tuple[Explanation, ...]:
    """Return the rows by which healthy fp32 evaluations of a model differ."""
    return tuple(each for each in costing(of_orders) if each.applies(model))


def freedoms_of(
    hardware: Hardware,
    precision: Precision,
    usual: Usual | None = None,
    *,
    engine: str = "",
    op_types: Collection[str] | None = None,
) -> tuple[Explanation, ...]:
    """Return the freedoms of a class of engines that compute in a format.

    Args:
        hardware: The class; engines of an unknown one may choose anything. Without habits, nothing is usual.
        precision: The format.
        usual: How usual that is there; None for any.
        engine: The name of one; empty where no more than its class is known.
        op_types: Operators, one of which must be in the model; None for any.
    """
    return tuple(
        each
        for each in costing(of_freedoms)
        if precision in each.formats
        and each.is_of(hardware, engine)
        and (usual is None or hardware.has_habits)
        and usual in (None, each.formats[precision])
        and (op_types is None or each.concerns(op_types))
    )
