"""The freedoms that a simulated accelerator takes, read from its options."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from tensortriage.engines.sdk import Options, Precision, UsageError
from tensortriage_testing.simulated.approximations import APPROXIMATIONS, Approximation, sized
from tensortriage_testing.simulated.formats import SimulatedFormat

OPERANDS = ("fp32", "tf32", "tf32-truncated", "fp16", "bf16", "bf16x3")
ORDERS = ("whole", "reversed", "sequential")
RESULTS = (Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16)


@dataclasses.dataclass(frozen=True)
class Freedoms:
    """Deviations of the accelerator from the plain ONNX definition.

    Attributes:
        result: Format in which values are stored between operators, model inputs and weights included.
        operands: How operands of products are rounded: one of `OPERANDS`.
        accumulator: Format in which products are summed; fp64 stands for exact sums (int32 of an int8 engine).
        block: Terms that are summed at once, in float32 or better, before the accumulator is rounded; 0 for all.
        toward_zero: Whether the accumulator truncates.
        order: Order of sums: one of `ORDERS`. ``whole`` leaves it to numpy; ``sequential`` adds one term at a time.
        winograd: Outputs per tile and axis of 3x3 convolutions, 2 or 4; 0 for none.
        fused: Whether chains of element-wise operators are rounded once, at their end.
        flush: Whether subnormal numbers become zero.
        ties_away: Whether QuantizeLinear rounds ties away from zero instead of to even.
        functions: Approximations by operator type.
    """

    result: SimulatedFormat = SimulatedFormat.FP32
    operands: str = "fp32"
    accumulator: SimulatedFormat = SimulatedFormat.FP32
    block: int = 0
    toward_zero: bool = False
    order: str = "whole"
    winograd: int = 0
    fused: bool = False
    flush: bool = False
    ties_away: bool = False
    functions: Mapping[str, Approximation] = dataclasses.field(default_factory=dict)

    OPTIONS: ClassVar[Mapping[str, str]] = {
        "precision": "format of results, weights and inputs: fp32, fp16, bf16; tf32: fp32 with TF32 operands",
        "operands": "of MatMul, Gemm and Conv: " + ", ".join(OPERANDS) + " (default: as precision says)",
        "accumulator": "of MatMul, Gemm and Conv: fp32, fp16, bf16, or fp64 for exact sums as those of integers",
        "block": "terms summed before the accumulator is rounded, e.g. 16, 32, 64 (default: all)",
        "rounding": "of the accumulator: nearest or zero (truncated)",
        "order": "of sums in MatMul, Gemm, Conv and reductions: " + ", ".join(ORDERS),
        "winograd": "2 or 4: convolutions of 3x3 as F(2x2,3x3) or F(4x4,3x3)",
        "fused": "true: chains of element-wise operators are rounded once",
        "denormals": "keep or flush (to zero)",
        "ties": "of QuantizeLinear: even or away (from zero)",
        "functions": "approximations NAME:HOW joined with +; HOW is a relative error (tanh:2e-6) or one of "
        + ", ".join(APPROXIMATIONS),
    }

    @property
    def plain_products(self) -> bool:
        """Whether products are summed as any float32 engine may do it."""
        given = (self.operands, self.accumulator, self.order, self.block, self.toward_zero)
        return given == ("fp32", SimulatedFormat.FP32, "whole", 0, False)

    @classmethod
    def read(cls, given: Options) -> "Freedoms":
        """Read options.

        Raises:
            UsageError: For a value that is not understood.
        """
        precision = given.precision("precision", RESULTS, Precision.FP32)
        narrow = {Precision.FP16: SimulatedFormat.FP16, Precision.BF16: SimulatedFormat.BF16}
        operands = "tf32" if precision is Precision.TF32 else "fp32"
        sums = {
            each.value: each
            for each in (SimulatedFormat.FP64, SimulatedFormat.FP32, SimulatedFormat.FP16, SimulatedFormat.BF16)
        }
        return cls(
            result=narrow.get(precision, SimulatedFormat.FP32),
            operands=given.choice("operands", {word: word for word in OPERANDS}, operands),
            accumulator=given.choice("accumulator", sums, SimulatedFormat.FP32),
            block=given.integer("block", 0),
            toward_zero=given.choice("rounding", {"nearest": False, "zero": True}, False),
            order=given.choice("order", {word: word for word in ORDERS}, ORDERS[0]),
            winograd=given.choice("winograd", {"0": 0, "2": 2, "4": 4}, 0),
            fused=given.boolean("fused", default=False),
            flush=given.choice("denormals", {"keep": False, "flush": True}, False),
            ties_away=given.choice("ties", {"even": False, "away": True}, False),
            functions=dict(pair for word in given.words("functions") for pair in _approximations(word)),
        )


def _approximations(word: str) -> list[tuple[str, Approximation]]:
    name, _, how = word.partition(":")
    if word in APPROXIMATIONS:
        return [(op_type, APPROXIMATIONS[word]) for op_type in APPROXIMATIONS[word].functions]
    try:
        made = sized(name, float(how))
    except (ValueError, KeyError):
        raise UsageError(
            f"'{word}' is not an approximation",
            slug="engine-option-value",
            cure="write NAME:SIZE, e.g. tanh:2e-6, or one of " + ", ".join(APPROXIMATIONS),
        ) from None
    return [(op_type, made) for op_type in made.functions]
