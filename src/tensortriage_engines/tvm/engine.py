"""TVM, a compiler of tensor programs, in a worker: the Relax importer and the compiler are part of the build.

The compiled module keeps no names; inner values are seen by marking them as outputs, of the model or of a given Relax
module, whose bindings are the importer's in their order. A given library shows its outputs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.sdk import FILE, WORKER_OPTION, Options, Precision, beside
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS
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
        "file": "module to run instead of importing the model: a script of Relax, NAME.py, with NAME.npz next to it, "
        "or "
        "a compiled library; whole models only",
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the configuration of the passes' context, and the arrays that belong to a given script.

        Raises:
            UsageError: For an unknown level, or a given script without its file of arrays.
        """
        words = {
            "optimize": given.word("optimize", ("0", "1", "2", "3"), "2"),
            "left_out": "+".join(given.words("left_out")),
        }
        if _is_script(given.text(FILE)):
            words["weights"] = beside(given.text(FILE), ".npz")
        return words

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options for a given script, which shows inner values; None for modules, which show none."""
        return dict(options) if _is_script(options.get(FILE, "")) else None

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return a level without fusion and folding, then level 0; a library has only its own."""
        if options.get(FILE) and not _is_script(options[FILE]):
            return ()
        return {"optimize": "0", "left_out": "FuseOps+FoldConstant"}, {"optimize": "0"}


def _is_script(file: str) -> bool:
    return Path(file).suffix == ".py"
