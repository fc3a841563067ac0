"""Types of the results of ONNX Runtime's own operators, for which ONNX has no schemas."""

from collections.abc import Mapping, Sequence

import onnx_ir as ir

_INT32 = ir.TensorType(ir.DataType.INT32)
_FLOAT = ir.TensorType(ir.DataType.FLOAT)
_UINT8 = ir.TensorType(ir.DataType.UINT8)

IN_STANDARD = "SimplifiedLayerNormalization"
"""One of them, which ONNX Runtime keeps in the standard domain."""
RUNTIME_DOMAIN = "com.microsoft"
LAYOUT_DOMAINS = ("com.microsoft.nchwc", "com.ms.internal.nhwc")

_LIKE_FIRST_INPUT = frozenset(
    {
        "Attention", "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax", "BiasSplitGelu",
        "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul", "ExpandDims", "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul",
        "FusedMatMulActivation", "GatedRelativePositionBias", "GatherND", "Gelu", "GemmFastGelu", "GridSample",
        "GroupNorm", "GroupQueryAttention", "Inverse", "LongformerAttention", "MatMulBnb4", "MatMulFpQ4",
        "MatMulNBits", "MoE", "MultiHeadAttention", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "PackedAttention",
        "PackedMultiHeadAttention", "Pad", "QLinearAdd", "QLinearAveragePool", "QLinearGlobalAveragePool",
        "QLinearLeakyRelu", "QLinearMul", "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuickGelu",
        "Range", "RelativePositionBias", "RestorePadding", "RotaryEmbedding", "SimplifiedLayerNormalization",
        "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SparseAttention",
        "TransposeMatMul", "Trilu",
    }
)  # fmt: skip
"""Operators whose results have the type of their first input."""

_RESULTS: Mapping[str, Sequence[int | ir.TensorType]] = {
    "DequantizeLinear": (1,),
    "EmbedLayerNormalization": (2, _INT32, 2),
    "GatherBlockQuantized": (2,),
    "MatMulInteger16": (_INT32,),
    "MatMulIntegerToFloat": (2,),
    "MulInteger": (_INT32,),
    "QAttention": (3, 3),
    "QEmbedLayerNormalization": (8, _INT32),
    "QLinearConcat": (1,),
    "QLinearConv": (7,),
    "QLinearWhere": (1,),
    "QuantizeLinear": (2,),
    "ReduceSumInteger": (_INT32,),
    "RemovePadding": (0, _INT32, _INT32, _INT32),
}
"""Of others, for each result: the input that has its type, or the type."""


def runtime_results(node: ir.Node, fed: Sequence[ir.TypeProtocol | None]) -> list[ir.TypeProtocol | None] | None:
    """Return the types of the results of an ONNX Runtime operator; None for any other operator.

    Args:
        node: The operator.
        fed: The types of its inputs, as far as they are known.
    """

    def of(index: int) -> ir.TypeProtocol | None:
        return fed[index] if index < len(fed) else None

    op = node.op_type
    if node.domain in LAYOUT_DOMAINS and not op.startswith("QLinearConv"):
        return [of(0)] * len(node.outputs)
    if op in _LIKE_FIRST_INPUT and (node.domain == RUNTIME_DOMAIN or op == IN_STANDARD):
        return [of(0)] * len(node.outputs)
    if node.domain != RUNTIME_DOMAIN:
        return None
    if op == "QGemm":  # in integers where there is a scale of the result
        return [of(8) or _UINT8 if len(node.inputs) > 7 and node.inputs[7] is not None else _FLOAT]
    if op in _RESULTS:
        return [of(kind) if isinstance(kind, int) else kind for kind in _RESULTS[op]][: len(node.outputs)]
    return None
