"""TVM, a compiler of tensor programs, in a worker: the Relax importer and the compiler are part of the build.

The compiled module keeps no names; inner values are seen by marking them as outputs of the model.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tensortriage.engines.sdk import WORKER_OPTION, Options, Precision
from tensortriage_engines.converted import ConvertedEngine


class TvmEngine(ConvertedEngine):
    """The engine ``tvm``."""

    name: ClassVar[str] = "tvm"
    title: ClassVar[str] = "TVM"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32,)
    converter_words: ClassVar[tuple[str, ...]] = ()  # a compiled module lives in the process that compiled it
    plan_at_once: ClassVar[bool] = False
    set_aside: ClassVar[frozenset[str]] = frozenset({"optimize", "left_out"})
    options: ClassVar[Mapping[str, str]] = {
        "optimize": "level of TVM's passes: 0 to 3 (default 2, TVM's own)",
        "left_out": "passes to leave out, joined with +, e.g. FuseOps+FoldConstant",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the configuration of the passes' context.

        Raises:
            UsageError: For an unknown level.
        """
        return {
            "optimize": given.word("optimize", ("0", "1", "2", "3"), "2"),
            "left_out": "+".join(given.words("left_out")),
        }

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return None: modules show no inner values."""
        return None

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return a level without fusion and folding, then level 0."""
        return {"optimize": "0", "left_out": "FuseOps+FoldConstant"}, {"optimize": "0"}
