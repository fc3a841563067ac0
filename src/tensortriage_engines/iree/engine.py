"""IREE, an MLIR compiler, in a worker: importer and compiler are part of the build, for this CPU.

The module keeps no names; inner values are seen by marking them as outputs of the model.
"""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tensortriage.engines.sdk import WORKER_OPTION, Options, Precision
from tensortriage_engines.converted import ConvertedEngine

LEVELS = ("O0", "O1", "O2", "O3")
OPSET = "17"
"""The importer converts a model of an older opset to this one, from which it knows all operators."""


class IreeEngine(ConvertedEngine):
    """The engine ``iree``."""

    name: ClassVar[str] = "iree"
    title: ClassVar[str] = "IREE"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16)
    converter_words: ClassVar[tuple[str, ...]] = ("precision", "optimize", "flags", "opset")
    plan_at_once: ClassVar[bool] = False
    set_aside: ClassVar[frozenset[str]] = frozenset({"flag"})
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default); fp16 demotes every float32, inputs and outputs too",
        "optimize": "optimization level of the compiler: O0, O1, O2 or O3 (default: the compiler's own)",
        "flag.KEY": "any flag of iree-compile, e.g. flag.iree-llvmcpu-target-cpu=generic; empty where it has no value",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the compiler's options."""
        words = {"flags": json.dumps(dict(given.family("flag"))), "opset": OPSET}
        if "optimize" in given:
            words["optimize"] = given.word("optimize", LEVELS)
        return words

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return None: modules show no inner values."""
        return None

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return fp32 at the lowest level, then at one level more at a time."""
        most = options.get("optimize", "").upper()
        levels = LEVELS[: LEVELS.index(most) + 1] if most in LEVELS else LEVELS[:1]
        return [{"precision": Precision.FP32.value, "optimize": level} for level in levels]
