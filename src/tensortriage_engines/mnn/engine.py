"""MNN, Alibaba's engine for phones, in a worker: its own converter is part of the build.

MNN keeps the names of ONNX values that it does not fuse away, so inner values are seen in the file that runs.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tensortriage.engines.sdk import FILE, WORKER_OPTION, Options, Precision
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS
from tensortriage_engines.converted import ConvertedEngine

GELUS = {"approximated": "1", "exact": "0"}


class MnnEngine(ConvertedEngine):
    """The engine ``mnn``."""

    name: ClassVar[str] = "mnn"
    title: ClassVar[str] = "MNN"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16, Precision.INT8)
    converter_words: ClassVar[tuple[str, ...]] = ("precision", "optimize", "gelu")
    fixed_shapes: ClassVar[bool] = False
    set_aside: ClassVar[frozenset[str]] = frozenset({"optimize"})
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default), fp16 (weights; arithmetic where the CPU has it) or int8 (weights)",
        "optimize": "level of the converter's optimizer: 1 (default, right for every input) or 2",
        "gelu": "approximated (default of the converter) or exact: how a GELU written with Erf is computed",
        "api": "module (default) or session: which of MNN's APIs runs the file; choose the one that the application "
        "uses",
        "threads": "threads for inference (default 1)",
        "file": "converted .mnn file to run instead of converting the model; whole models only",
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the converter's options."""
        return {
            "api": given.word("api", ("module", "session")),
            "optimize": given.word("optimize", ("1", "2")),
            "gelu": given.choice("gelu", GELUS, GELUS["approximated"]),
        }

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return fp32 with an exact GELU, and with the converter's; of a given file, the other API."""
        if FILE in options:
            return ({"api": "module" if options.get("api") == "session" else "session"},)
        return {"precision": Precision.FP32.value, "gelu": "exact"}, {"precision": Precision.FP32.value}
