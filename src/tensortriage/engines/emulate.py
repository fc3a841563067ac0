"""The cost of a number format alone: every floating-point result rounded to the format, everything else exact.

Formats of blocks (MXFP8, MXFP6, MXFP4, NVFP4) are formats of operands: the operands of a MatMul, Gemm or Conv, weights
and activations alike, are rounded in blocks along the axis of the sum, sums are exact and results float32. That is
computed by the arithmetic of the engine ``float64``; for all others:

The model is rewritten so that after every float result a pair of Casts goes to the format and back, and runs in ONNX
Runtime with all optimizations off, where such pairs survive. No fusion, no other kernels, no accumulation in the
format: an engine that works right in this format cannot do much worse, and one that does has another fault.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.base import Availability, Limits, Session
from tensortriage.engines.capabilities import ComputesByRule, ReportsPrecision
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine, open_rewritten
from tensortriage.engines.onnxruntime.settings import UNOPTIMIZED
from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

FORMATS = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats that results can be rounded to."""
EVERY_FORMAT = (*FORMATS, *BLOCK_FORMATS)


class EmulateEngine(ReportsPrecision, ComputesByRule):
    """The engine ``emulate``: the model with every result rounded, on the CPU, in this process."""

    name: ClassVar[str] = "emulate"
    options: ClassVar[Mapping[str, str]] = {
        "precision": "format of every result: fp16, bf16, fp8e4m3, fp8e5m2 or int8; of operands of products: "
        "mxfp8e4m3, mxfp8e5m2, mxfp6e2m3, mxfp6e3m2, mxfp4 or nvfp4 (required)",
        "kept": "nodes whose results stay float32, joined with +",
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def availability(self) -> Availability:
        """Return whether ONNX Runtime, which does the arithmetic, can be imported."""
        return OnnxRuntimeEngine(limits=self.limits).availability()

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format of the results."""
        return read_options(options, self.options).precision("precision", EVERY_FORMAT).value

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build the rounding model.

        Raises:
            UsageError: For an unknown option, a missing or unknown precision, or a kept node that does not exist.
            EngineMissing: When ONNX Runtime is not usable here.
            BuildFailed: When the file is no model, or ONNX Runtime refuses the rounding model.
        """
        from tensortriage.model.mixed_precision.emulate_rounding import round_results

        given = read_options(options, self.options)
        precision = given.precision("precision", EVERY_FORMAT)
        if precision in BLOCK_FORMATS:
            if given.words("kept"):
                raise UsageError(
                    f"kept= does not apply to {precision.value}: it rounds operands of products, not results",
                    slug="engine-option-value",
                    cure="leave out kept=",
                )
            return Float64Engine().compile(model, {"rounding": "results", "operands": precision.value})
        return open_rewritten(
            model,
            UNOPTIMIZED,
            lambda original, specs: round_results(original, precision, specs=specs, kept=given.words("kept")),
            engine=self.name,
        )
