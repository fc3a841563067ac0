"""MNN, Alibaba's engine for phones, in a worker: its own converter is part of the build.

MNN keeps the names of ONNX values that it does not fuse away, so inner values are seen in the file that runs.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tensortriage.engines.options import Options
from tensortriage.engines.process.converted import ConvertedEngine
from tensortriage.engines.process.isolated import WORKER_OPTION
from tensortriage.values.dtype import Precision

GELUS = {"approximated": "1", "exact": "0"}
_LEVELS = {"1": "1", "2": "2"}


class MnnEngine(ConvertedEngine):
    """The engine ``mnn``."""

    name: ClassVar[str] = "mnn"
    title: ClassVar[str] = "MNN"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16, Precision.INT8)
    converter_words: ClassVar[tuple[str, ...]] = ("precision", "optimize", "gelu")
    fixed_shapes: ClassVar[bool] = False
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default), fp16 (weights; arithmetic where the CPU has it) or int8 (weights)",
        "optimize": "level of the converter's optimizer: 1 (default, right for every input) or 2",
        "gelu": "approximated (default of the converter) or exact: how a GELU written with Erf is computed",
        "threads": "threads for inference (default 1)",
        "file": "converted .mnn file to run instead of converting the model; whole models only",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the converter's options."""
        return {
            "optimize": given.choice("optimize", _LEVELS, "1"),
            "gelu": given.choice("gelu", GELUS, GELUS["approximated"]),
        }

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return fp32 with an exact GELU first, then the converter's GELU, then the options as they are."""
        wide = {key: value for key, value in options.items() if key != "optimize"} | {"precision": Precision.FP32.value}
        rungs = [("precision=fp32,gelu=exact", {**wide, "gelu": "exact"}), ("precision=fp32", wide)]
        if self.precision(options) == Precision.FP32.value and "optimize" not in options:
            rungs.pop()
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]
