"""Which values the engine ``float64`` rounds, and which it leaves exact: one policy for a whole evaluation.

The engine computes in float64. An `Arithmetic` defines where a healthy engine would lose digits instead: results
rounded to the types of the model or to a format, sums kept in an accumulator, operands shortened, functions
approximated. Every combination is a healthy evaluation of the model, so evaluations under several policies show the
range of healthy results. Kernels see the policy of their step through `Call.arithmetic`; the rounding of results is
made part of the program when it is built.
"""

import dataclasses

from tensortriage.engines.float64.accumulation import EXACT_SUMS, Accumulation
from tensortriage.engines.float64.function_accuracy import ACCURACIES, EXACT_FUNCTIONS, Functions
from tensortriage.engines.float64.number_rounding import Rounding
from tensortriage.engines.float64.stored_numbers import AS_STORED, CutsOff, StoredNumbers
from tensortriage.engines.options import Options
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import DType, Precision

FORMATS = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2)
"""Formats that results can be rounded to."""
OPTIONS = {
    "rounding": "none: everything in float64 (default); results: each result rounded to the type the model declares",
    "format": "format that float32 values are rounded to as well, kept in float32: fp16, bf16, fp8e4m3 or fp8e5m2",
    "accumulator": "type in which sums of products are kept: exact (default), fp32, fp16 or bf16",
    "block": "how many products are added before the accumulator rounds; the last block comes first (default 32)",
    "accumulated": "all: every sum of products goes through the accumulator (default); narrow: those of narrow results",
    "conv_results": "results of convolutions stored in fp16: nearest (default), or truncate: cut off towards zero",
    "accumulator_rounding": "how the accumulator rounds: nearest (default) or truncate",
    "operands": "operands of matrix products and convolutions: exact (default), tf32, tf32-truncated, bf16, or in "
    "blocks along the summed axis mxfp8e4m3, mxfp8e5m2, mxfp6e2m3, mxfp6e3m2, mxfp4 or nvfp4",
    "functions": "accuracy of exp, tanh, division, ...: exact (default), or as on a cpu, gpu or npu, or light: as MNN",
    "reciprocals": "on an npu: nearest (default), or truncate: results of Softmax, Div and Reciprocal are too small",
    "seed": "which approximation of each function, a whole number (default 0)",
    "fused": "true: results that only one element-wise operator reads are not rounded",
    "denormals": "keep (default) or flush: subnormal results become zero",
    "amplify": "factor by which every operator errs more than the arithmetic says, a whole number (default 1)",
    "winograd": "3x3 convolutions of stride 1 by Winograd's method: false, true or 2 for F(2x2,3x3), 4 for F(4x4,3x3), "
    "6 for F(6x6,3x3)",
    "quantizers": "rounded (default); unrounded: quantizers clip to their range and do not round, so that a quantized "
    "file computes the network it represents; signed: they cut off only where the range ends at 0, as a "
    "Relu does, and then also where the other end is a whole number, as Relu6's; unbounded: they do neither",
    "but": "names of nodes whose quantizers still round, joined by +",
    "draw": "from 1 on: stored integers and constants in fp16 or bf16 moved by up to half a step, at random by this "
    "number",
    "at": "names of the nodes, and constants, that the draw moves, joined by +; all when left out",
}
"""The options of the engine that describe an arithmetic, each with its line of help."""

_ROUNDING = {"none": False, "results": True}
_ACCUMULATORS = {"exact": None, "fp32": DType.FLOAT, "fp16": DType.FLOAT16, "bf16": DType.BFLOAT16}
_OPERANDS = {"exact": (None, False), "tf32": (10, False), "tf32-truncated": (10, True), "bf16": (7, False)}
_BLOCKS = {precision.value: block for precision, block in BLOCK_FORMATS.items()}
_QUANTIZERS = {
    "rounded": (True, CutsOff.RANGE),
    "unrounded": (False, CutsOff.RANGE),
    "signed": (False, CutsOff.SIGN),
    "unbounded": (False, CutsOff.NOTHING),
}
_WINOGRAD = {"false": 0, "true": 2, "2": 2, "4": 4, "6": 6}


@frozen_dataclass
class Arithmetic:
    """A policy.

    Attributes:
        rounds: Whether results are rounded to the types that the model declares.
        format: Type that float32 values are rounded to as well; None for none.
        products: How sums of products add up in convolutions, matrix products and recurrent layers.
        narrow_only: Whether only sums whose results are stored in a narrow type go through a narrow accumulator, as in
            engines that take a model's types as they are; others are then kept in float32.
        sums: How reductions, poolings and normalizations add up; float64 or float32.
        functions: How accurate functions are.
        fused: Whether a result that only one element-wise operator reads is passed on unrounded.
        flush: Whether subnormal results become zero.
        winograd: Size of the output tiles of 3x3 convolutions by Winograd's method; 0 for direct convolution.
        cut_convolutions: Whether results of convolutions that are stored in fp16 are cut off instead of rounded.
        amplify: Factor on the error that each operator makes in float32, before its result is rounded to its type.
        stored: Meaning of quantizers and stored numbers.
    """

    rounds: bool = False
    format: DType | None = None
    products: Accumulation = EXACT_SUMS
    narrow_only: bool = False
    sums: Accumulation = EXACT_SUMS
    functions: Functions = EXACT_FUNCTIONS
    fused: bool = False
    flush: bool = False
    winograd: int = 0
    cut_convolutions: bool = False
    amplify: int = 1
    stored: StoredNumbers = AS_STORED

    @property
    def is_exact(self) -> bool:
        """Whether nothing is rounded, apart from stored numbers."""
        return self == dataclasses.replace(EXACT, stored=self.stored)

    @property
    def precision(self) -> Precision:
        """The corresponding precision."""
        narrow = next((p for p in FORMATS if p.dtype is self.format), None)
        return narrow or (Precision.FP32 if self.rounds else Precision.FP64)

    def for_results(self, dtype: DType | None) -> "Arithmetic":
        """Return the policy of a step: double precision and integers stay exact.

        Args:
            dtype: Type of the step's first floating-point result; None when it has none.
        """
        if dtype not in (DType.FLOAT, DType.FLOAT16, DType.BFLOAT16):
            return dataclasses.replace(EXACT, stored=self.stored)
        stored = self.format if dtype is DType.FLOAT and self.format is not None else dtype
        functions = dataclasses.replace(self.functions, stored=stored)
        if not self.narrow_only or stored is not DType.FLOAT or self.products.accumulator is None:
            return dataclasses.replace(self, functions=functions)
        products = dataclasses.replace(self.products, accumulator=DType.FLOAT)
        return dataclasses.replace(self, functions=functions, products=products)

    def rounding(self, dtype: DType, *, to_format: bool = True, convolved: bool = False) -> Rounding | None:
        """Return the rounding of a value of a declared type; None for none.

        Args:
            dtype: The declared type.
            to_format: Whether the value is one that the format rounds.
            convolved: Whether a convolution made it.
        """
        types = (dtype,) if self.rounds else ()
        if to_format and self.format is not None and self.precision.narrows(dtype):
            types = (*types, self.format)
        return Rounding(types, self.flush, self.cut_convolutions and convolved) if types else None


EXACT = Arithmetic()
"""Everything in float64."""

RESULTS_ROUNDED = Arithmetic(rounds=True)
"""Everything in float64, results rounded to the types of the model."""


def read_arithmetic(options: Options) -> Arithmetic:
    """Return the policy that the engine's options describe.

    Raises:
        UsageError: For a value that is not understood.
    """
    narrow = options.precision("format", FORMATS, Precision.FP64)
    bits, cut = options.choice("operands", {**_OPERANDS, **dict.fromkeys(_BLOCKS, (None, False))}, (None, False))
    blocks = options.choice("operands", {**dict.fromkeys(_OPERANDS), **_BLOCKS}, None)
    accumulator = options.choice("accumulator", _ACCUMULATORS, None)
    block = options.integer("block", EXACT_SUMS.block, minimum=1)
    # Accumulators narrower than float32 belong to units that multiply matrices; other sums are float32 there.
    sums = EXACT_SUMS if accumulator is None else Accumulation(DType.FLOAT, block)
    hardware = options.choice("functions", {"exact": None, **{c.value: c for c in ACCURACIES}}, None)
    return Arithmetic(
        rounds=options.choice("rounding", _ROUNDING, narrow is not Precision.FP64) or narrow is not Precision.FP64,
        format=None if narrow is Precision.FP64 else narrow.dtype,
        products=Accumulation(
            accumulator,
            block,
            options.choice("accumulator_rounding", {"nearest": False, "truncate": True}, False),
            bits,
            cut,
            blocks,
        ),
        narrow_only=options.choice("accumulated", {"all": False, "narrow": True}, False),
        sums=sums,
        functions=Functions(
            hardware,
            options.integer("seed", 0),
            cut_reciprocals=options.choice("reciprocals", {"nearest": False, "truncate": True}, False),
        ),
        fused=options.boolean("fused", default=False),
        flush=options.choice("denormals", {"keep": False, "flush": True}, False),
        winograd=options.choice("winograd", _WINOGRAD, 0),
        cut_convolutions=options.choice("conv_results", {"nearest": False, "truncate": True}, False),
        amplify=options.integer("amplify", 1, minimum=1),
        stored=StoredNumbers(
            *options.choice("quantizers", _QUANTIZERS, _QUANTIZERS["rounded"]),
            options.integer("draw", 0),
            frozenset(options.words("but")),
            frozenset(options.words("at")),
        ),
    )
