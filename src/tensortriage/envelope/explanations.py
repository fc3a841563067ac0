"""What a healthy engine may do that its reference does not: one registry, the explanations that allow most last.

An explanation excuses an error by what it costs and no more. Each entry is data: how its cost is found, where it shows,
which hardware does it in which formats, and how usual that is. What it costs a value is found by
`tensortriage.envelope.evaluations` and, where the reference has to be asked again, by the rungs of a diagnosis; nothing
anywhere asks which entry it has before it.
"""

import dataclasses
import enum
from collections.abc import Callable, Collection, Mapping

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.engines.float64.function_accuracy import ACCURACIES
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.model_traits import has_narrow_types, rounds_to_integers
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import integer_biases
from tensortriage.model.transforms.folded_norms import has_foldable_norms
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

ROUNDED = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats whose rounding can be emulated result by result."""

PREDICTED = (*ROUNDED, Precision.TF32, *BLOCK_FORMATS)
"""Formats whose error can be predicted; TF32 and formats of blocks shorten operands of products, not results."""


class ExplanationKind(enum.Enum):
    """How the cost of an explanation is found, and in that order they are tried."""

    ORDER = "order of sums"
    """The model evaluated in fp32 under its options: as far off as the farthest of these is any healthy engine."""
    FORMAT = "number format"
    """The model evaluated in the target's format."""
    FREEDOM = "freedom"
    """The model evaluated in the target's format under its options: alone, or with others that are taken."""
    REWRITE = "another model"
    """The model that its `Explanation.rewrite` makes, run on the reference."""
    CHANCE = "chance"
    """The largest of so many draws of rounding, on inputs that the format cannot tell apart."""
    AMPLIFICATION = "amplification"
    """The largest of so many runs of the reference, on inputs moved by one unit in the last place."""


class Usual(enum.Enum):
    """How usual it is among engines that may do it."""

    EXPECTED = "all that compute in the format are taken to do it"
    SELDOM = "in some ops, and in which is not known: it is added where what is expected does not suffice"
    WHERE_IT_FAILS = "asked about only at ops that are wrong otherwise: it is dear to evaluate, or would allow much"


_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention", "MultiHeadAttention",
    "FusedMatMul", "FusedConv", "FusedGemm", "DeformConv", "MatMulNBits",
})  # fmt: skip
"""Operators that units for matrix products compute."""

_ALWAYS = dict.fromkeys(Precision, Usual.EXPECTED)
_ANYONE = frozenset({Hardware.CPU, Hardware.LIGHT, Hardware.GPU, Hardware.NPU})


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Explanation:
    """One way in which a healthy engine may differ from its reference.

    Attributes:
        name: Short name, for files.
        words: What it is, after the name of an operator and a colon: ``sums kept in fp16, usual on GPUs``.
        source: Where its size comes from.
        kind: How its cost is found.
        options: Of the engine ``float64``, on top of those of the target's format.
        rewrite: Returns the model that shows its cost; None for a model that has none.
        draws: How often inputs are moved.
        applies: Whether it can be of any model; asked of explanations that are no matter of hardware.
        avoided: How to avoid it, for people; empty when there is no general way.
        hardware: Classes of hardware that may do it; `Hardware.ANY` always may.
        engines: Names of those of these classes that do it, where not all do; empty for all.
        formats: Formats of the target in which it is done, and how usual that is.
        operators: ONNX operators it concerns; empty for those whose results it changes.
        additive: Whether no op does it together with others: what it costs is evaluated by itself, and added to theirs.
    """

    name: str
    words: str
    source: str
    kind: ExplanationKind = ExplanationKind.FREEDOM
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rewrite: Callable[[Model], Model | None] = lambda model: None
    draws: int = 0
    applies: Callable[[Model], bool] = lambda model: True
    avoided: str = ""
    hardware: frozenset[Hardware] = _ANYONE
    engines: frozenset[str] = frozenset()
    formats: Mapping[Precision, Usual] = dataclasses.field(default_factory=lambda: _ALWAYS)
    operators: frozenset[str] = frozenset()
    additive: bool = False

    def concerns(self, op_types: Collection[str]) -> bool:
        """Say whether one of some operators may do it."""
        return not self.operators or not self.operators.isdisjoint(op_types)

    def is_expected_of_some(self, precision: Precision) -> bool:
        """Say whether all engines of some class of hardware are taken to do it in a format."""
        return any(each.has_habits for each in self.hardware) and self.formats.get(precision) is Usual.EXPECTED

    def evaluation(self, base: Mapping[str, str] = {}) -> EngineSpec:
        """Return the evaluation of a model under its options, on top of others."""
        return evaluation({**base, **self.options})


def evaluation(options: Mapping[str, str]) -> EngineSpec:
    """Return the evaluation of the model under an arithmetic; its results are rounded to their types."""
    return EngineSpec("float64", {"rounding": "results", **options})


CORRECTLY_ROUNDED = evaluation({})
"""The model as its types say, every result correctly rounded: what all other evaluations are compared with."""

AMPLIFIED_FP32 = evaluation({"accumulator": "fp32", "functions": "cpu", "amplify": f"{MATCH_FACTOR:g}"})
"""A healthy fp32 evaluation whose every operator errs `MATCH_FACTOR` times as much."""

FOLDED = evaluation({"rounding": "none", "norms": "folded"})
"""Nothing rounded between operators, and weights as engines keep them that fold BatchNormalizations."""

REGISTRY = (
    Explanation(
        name="order-of-sums",
        words="sums in another order, functions as CPUs compute them",
        source="an evaluation whose every operator is `MATCH_FACTOR` times as wrong as a healthy kernel's result",
        kind=ExplanationKind.ORDER,
        options=AMPLIFIED_FP32.options,
    ),
    *(
        Explanation(
            name=f"order-of-sums-{number}",
            words="sums in another order yet, where roundings to integers may flip",
            source="what a flipped rounding costs depends on which one it is: over seven feeds of a quantized mixer "
            "one evaluation was up to 2.9 times quieter than OpenVINO, the loudest of three 1.2 times",
            kind=ExplanationKind.ORDER,
            options={"accumulator": "fp32", "functions": "cpu", "amplify": amplify, "block": block, "seed": seed},
            applies=rounds_to_integers,
        )
        for number, amplify, block, seed in (
            (2, f"{MATCH_FACTOR - 1:g}", "8", "1"),
            (3, f"{MATCH_FACTOR + 1:g}", "16", "2"),
        )
    ),
    Explanation(
        name="unrounded",
        words="nothing rounded between operators",
        source="what engines make of narrow types that compute in float32 and fuse",
        kind=ExplanationKind.ORDER,
        options={"rounding": "none"},
        applies=has_narrow_types,
    ),
    Explanation(
        name="folded",
        words="weights that took their BatchNormalization in before the first run, kept in the model's narrow type",
        source="over thirty small networks ONNX Runtime was 1.1 to 2.8 times as far off as unrounded",
        kind=ExplanationKind.ORDER,
        options=FOLDED.options,
        applies=lambda model: has_foldable_norms(model) and has_narrow_types(model),
    ),
    Explanation(
        name="number-format",
        words="rounding to the format",
        source="every operator exact, its result rounded to the format; TF32 and formats of blocks shorten operands",
        kind=ExplanationKind.FORMAT,
        formats=dict.fromkeys(PREDICTED, Usual.EXPECTED),
    ),
    Explanation(
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
    Explanation(
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
    Explanation(
        name="bf16-accumulator",
        words="sums kept in bf16, usual on NPUs",
        avoided="keep these ops in fp32 (--kept), or ask for precision=fp16 or fp32",
        options={"accumulator": "bf16", "block": "16"},
        hardware=frozenset({Hardware.NPU}),
        formats={Precision.BF16: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="running sums rounded to bf16 after every 16 products, the smallest block of the units in use",
    ),
    Explanation(
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
    Explanation(
        name="winograd",
        words="convolution by Winograd's method",
        options={"winograd": "4"},
        operators=frozenset({"Conv", "FusedConv"}),
        source="F(4x4, 3x3), the larger tiles of Lavin and Gray, CVPR 2016",
    ),
    Explanation(
        name="winograd-6",
        words="convolution by Winograd's method in tiles of 6 x 6, seen on MNN and ncnn",
        options={"winograd": "6"},
        hardware=frozenset({Hardware.LIGHT}),
        engines=frozenset({"mnn", "ncnn"}),
        operators=frozenset({"Conv", "FusedConv"}),
        source="F(6x6, 3x3) on whole points: a Conv of 64 channels and 56 x 56 pixels is off by 1.6e-4 on MNN "
        "3.6.1, 1.8e-4 predicted; of 32 channels and 28 x 28 by 2.5e-6 on ncnn, whose points are 0, 1, "
        "-1, 2, -2, 1/2, -1/2; IREE, TVM and LiteRT convolve directly, 3e-7",
    ),
    Explanation(
        name="tf32-operands",
        words="operands in TF32, usual on GPUs",
        avoided="switch TF32 off in the engine",
        options={"operands": "tf32"},
        hardware=frozenset({Hardware.GPU}),
        formats={Precision.FP32: Usual.WHERE_IT_FAILS, Precision.TF32: Usual.EXPECTED},
        operators=_PRODUCTS,
        source="NVIDIA A100 whitepaper: operands keep 10 bits of their fractions",
    ),
    Explanation(
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
    Explanation(
        name="gpu-functions",
        words="approximated function, usual on GPUs",
        options={"functions": "gpu"},
        hardware=frozenset({Hardware.GPU}),
        source="tensortriage.engines.float64.function_accuracy, class gpu",
    ),
    Explanation(
        name="npu-functions",
        words="approximated function, usual on NPUs",
        options={"functions": "npu"},
        hardware=frozenset({Hardware.NPU}),
        source="tensortriage.engines.float64.function_accuracy, class npu",
    ),
    Explanation(
        name="light-functions",
        words="approximated function, seen on MNN",
        options={"functions": "light"},
        hardware=frozenset({Hardware.LIGHT}),
        engines=frozenset({"mnn"}),
        operators=frozenset(ACCURACIES[Hardware.LIGHT]),
        source="tensortriage.engines.float64.function_accuracy, class light; LiteRT 2.1.2, ncnn 1.0.20261020 and MNN "
        "3.6.1 but for its GELU are within `MATCH_FACTOR` of class cpu (bench/function_accuracy.py)",
    ),
    Explanation(
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
        words="integer arithmetic",
        source="an engine in integers must round its biases to int32, in units of scale times scale",
        kind=ExplanationKind.REWRITE,
        rewrite=integer_biases,
    ),
    Explanation(
        name="chance",
        words="rounding, as chance has it",
        source="of twelve draws of one distribution and a thirteenth, that is the largest once in 13, and seldom"
        " by 3 dB",
        kind=ExplanationKind.CHANCE,
        draws=12,
        formats=dict.fromkeys(set(ROUNDED) - {Precision.INT8}, Usual.EXPECTED),
    ),
    Explanation(
        name="amplification",
        words="the model amplifies rounding",
        source="an engine cannot be closer to the reference than that is to itself on inputs that float32 barely"
        " tells apart",
        kind=ExplanationKind.AMPLIFICATION,
        draws=4,
        formats=dict.fromkeys(set(Precision) - set(ROUNDED), Usual.EXPECTED),
    ),
)
"""All of them; where several explain an error, the first one is named."""


def freedoms_of_target(
    target: EngineSpec, usual: Usual | None = None, *, op_types: Collection[str] | None = None
) -> tuple[Explanation, ...]:
    """Return what a target may choose; see `freedoms_of`."""
    engine = resolve(target)
    return freedoms_of(engine.hardware, engine.precision, usual, engine=engine.known_as, op_types=op_types)


def explanations_of(kind: ExplanationKind) -> tuple[Explanation, ...]:
    """Return the entries of a kind, in order."""
    return tuple(each for each in REGISTRY if each.kind is kind)


def freedoms_of(
    hardware: Hardware,
    precision: Precision,
    usual: Usual | None = None,
    *,
    engine: str = "",
    op_types: Collection[str] | None = None,
) -> tuple[Explanation, ...]:
    """Return what engines of a class may choose while they compute in a format.

    Args:
        hardware: The class; engines of an unknown one may choose anything. Without habits, nothing is usual.
        precision: The format.
        usual: How usual that is there; None for any.
        engine: The name of one; empty where no more than its class is known.
        op_types: Operators of which one has to be concerned; None for any.
    """
    return tuple(
        each
        for each in explanations_of(ExplanationKind.FREEDOM)
        if precision in each.formats
        and (hardware is Hardware.ANY or hardware in each.hardware)
        and (not engine or not each.engines or hardware is Hardware.ANY or engine in each.engines)
        and (usual is None or hardware.has_habits)
        and usual in (None, each.formats[precision])
        and (op_types is None or each.concerns(op_types))
    )
