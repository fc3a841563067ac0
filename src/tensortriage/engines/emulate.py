"""What a number format alone costs: every floating-point result rounded to the format, everything else exact.

The model is rewritten so that after every float result a pair of Casts goes to the format and back, and runs in ONNX
Runtime with all optimizations off, where such pairs survive. No fusion, no other kernels, no accumulation in the
format: an engine that works right in this format cannot do much worse, and one that does has another fault.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.base import Availability, Limits
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine, OnnxRuntimeSession, open_rewritten
from tensortriage.engines.onnxruntime.settings import UNOPTIMIZED
from tensortriage.engines.options import read_options
from tensortriage.values.dtype import Precision

FORMATS = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats that results can be rounded to."""


class EmulateEngine:
    """The engine ``emulate``: the model with every result rounded, on the CPU, in this process."""

    name: ClassVar[str] = "emulate"
    options: ClassVar[Mapping[str, str]] = {
        "precision": "format of every result: fp16, bf16, fp8e4m3, fp8e5m2 or int8 (required)",
        "kept": "nodes whose results stay float32, joined with +",
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def availability(self) -> Availability:
        """Say whether ONNX Runtime, which does the arithmetic, can be imported."""
        return OnnxRuntimeEngine(limits=self.limits).availability()

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format of the results."""
        return read_options(options, self.options).precision("precision", FORMATS).value

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Say that two builds are the same: everything is computed by rule."""
        return False

    def compile(self, model: Path, options: Mapping[str, str]) -> OnnxRuntimeSession:
        """Build the rounding model.

        Raises:
            UsageError: For an unknown option, a missing or unknown precision, or a kept node that does not exist.
            EngineMissing: When ONNX Runtime is not usable here.
            BuildFailed: When the file is no model, or ONNX Runtime refuses the rounding model.
        """
        from tensortriage.model.mixed_precision.emulate_rounding import round_results

        given = read_options(options, self.options)
        precision = given.precision("precision", FORMATS)
        return open_rewritten(
            model,
            UNOPTIMIZED,
            lambda original, specs: round_results(original, precision, specs=specs, kept=given.words("kept")),
            engine=self.name,
        )
