"""The 8-bit models that engines want: a row of facts per engine, each from its documentation or its kernels.

A pair that an engine cannot use costs time and accuracy: it rounds, and the operator runs in float between a
dequantizer and a quantizer all the same. So types, symmetry and the places of pairs follow the engine that will run
the file.
"""

import dataclasses
import enum
from collections.abc import Mapping

from tensortriage.precision.sdk import DType
from tensortriage.sdk import EngineSpec, UsageError, did_you_mean


class PairPlaces(enum.Enum):
    """Values that get a pair."""

    OPERANDS = "operands"
    """Operands of the heavy operators."""

    RUNS = "runs"
    """All of those, the operands and results of operators without a float output, and values between two such
    operators."""

    EVERYTHING = "everything"
    """Every value in floating point that is neither shape computation nor constant, and small constants."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EngineStyle:
    """The 8-bit models that one engine wants.

    Attributes:
        name: Word of the style on the command line.
        activation: Type of activations.
        symmetric: Whether activations have the zero point 0, in a signed type.
        heavy: Operators whose operands are quantized.
        closed: Those whose integer kernels make integers only, so that their results are quantized too.
        bias: Whether biases are stored in int32, with the scale of the products; else they stay float.
        right: Type of a second operand that is no weight; symmetric.
        products: Whether products of two activations, as in attention, are quantized.
        places: Which values get a pair.
        source: Source of these facts.
    """

    name: str
    activation: DType
    symmetric: bool
    heavy: frozenset[str]
    closed: frozenset[str] = frozenset()
    bias: bool
    right: DType
    products: bool = True
    places: PairPlaces
    source: str


_ARITHMETIC = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

STYLES: Mapping[str, EngineStyle] = {
    style.name: style
    for style in (
        EngineStyle(
            name="onnxruntime",
            activation=DType.UINT8,
            symmetric=False,
            heavy=_ARITHMETIC - {"ConvTranspose"},
            closed=frozenset({"Conv"}),
            bias=True,
            right=DType.INT8,
            products=False,
            places=PairPlaces.RUNS,
            source="ONNX Runtime, core/optimizer/qdq_transformer/selectors_actions: Conv becomes QLinearConv between "
            "quantizers on all sides, its bias in int32; MatMul and Gemm become MatMulIntegerToFloat and QGemm, whose "
            "result may be float; Add, Concat, pooling and Resize stay in integers between quantizers; there is no "
            "integer ConvTranspose. MLAS has its fastest kernels for uint8 times int8, weights symmetric per channel "
            "(onnxruntime.ai, Quantize ONNX models).",
        ),
        EngineStyle(
            name="tensorrt",
            activation=DType.INT8,
            symmetric=True,
            heavy=_ARITHMETIC,
            bias=False,
            right=DType.INT8,
            places=PairPlaces.OPERANDS,
            source="TensorRT Developer Guide, Working with Quantized Types: int8 is symmetric, zero points must be 0, "
            "weights may have a scale per output channel, biases are not quantized; quantizers stand at the inputs of "
            "quantizable layers, and the builder fuses and moves them.",
        ),
        EngineStyle(
            name="openvino",
            activation=DType.UINT8,
            symmetric=False,
            heavy=_ARITHMETIC,
            bias=False,
            right=DType.INT8,
            places=PairPlaces.OPERANDS,
            source="OpenVINO, Low Precision Transformations: uint8 or int8 activations per tensor, with zero points, "
            "int8 weights per output channel without; a quantizer stands before each operator that computes in 8 bits, "
            "and is moved through those that only pass values on.",
        ),
        EngineStyle(
            name="qnn",
            activation=DType.UINT8,
            symmetric=False,
            heavy=_ARITHMETIC,
            closed=_ARITHMETIC,
            bias=True,
            right=DType.UINT8,
            places=PairPlaces.EVERYTHING,
            source="onnxruntime.ai, QNN Execution Provider: the HTP backend runs quantized models, every operator "
            "between pairs; activations uint8 or uint16, asymmetric, weights int8 symmetric, per channel for Conv, "
            "biases int32.",
        ),
    )
}
"""The engines that files in 8 bits are made for."""


EXPLICIT = "tensorrt"
"""The row for engines that have none: symmetric pairs where the heavy operators read, which round least."""


def style_word(target: EngineSpec) -> str:
    """Return the word of the row of a target: that of its first execution provider or engine; `EXPLICIT` without."""
    first = target.options.get("ep") or target.options.get("providers", "").partition("+")[0]
    named = (first.lower().removesuffix("executionprovider").replace("nvtensorrtrtx", "tensorrt"), target.name)
    return next((word for word in named if word in STYLES), EXPLICIT)


def written_for(word: str) -> tuple[str, ...]:
    """Return the options of ``triage convert`` for a row; none for that of ONNX Runtime, its default."""
    return () if word == "onnxruntime" else ("--for", word)


def engine_style(word: str) -> EngineStyle:
    """Return the row of an engine.

    Raises:
        UsageError: When there is none (``quantize-engine-unknown``).
    """
    if word not in STYLES:
        raise UsageError(
            f"there are no quantization rules for '{word}'",
            slug="quantize-engine-unknown",
            cure=did_you_mean(word, STYLES, otherwise=f"use one of: {', '.join(STYLES)}"),
        )
    return STYLES[word]
