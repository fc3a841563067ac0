"""The model in another arithmetic of integers: biases, weights and activations in int8, sums cut off in int16."""

from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.costs import of_int16, of_rewrite
from tensortriage.envelope.explanations import Explanation, Needs
from tensortriage.model.quantization.int8_operands import (
    blocks_of_products,
    groups_of_products,
    int8_groups,
    int8_operands,
)
from tensortriage.model.quantization.int8_weights import float_weights, weights_in_int8
from tensortriage.model.quantization.qdq import integer_biases, is_quantized
from tensortriage.model.quantization.softmax_steps import coarse_softmaxes, softmax_in_whole_steps
from tensortriage.model.quantization.unrounded_sums import fused_sums, unrounded_sums

INTEGERS: tuple[Explanation, ...] = (
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
        name="softmax-steps",
        words="Softmax rounded in whole steps",
        avoided="disabled_optimizers=['QDQSelectorActionTransformer'], or the Softmax left in float",
        source="ONNX Runtime 1.31.1 multiplies a quantized Softmax by the whole part of 1 over its scale, 254 "
        "for 1/255: seven classes of five scales are 2e-3 to 6e-3 off, and 3e-8 from this prediction",
        cost=of_rewrite,
        needs=Needs(finite=True),
        rewrite=softmax_in_whole_steps,
        applies=lambda model: bool(coarse_softmaxes(model.graph)),
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
)
"""Of single engines, as they were seen, and of all integer kernels."""
