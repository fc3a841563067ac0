"""TVM, a compiler of tensor programs, in a worker: the Relax importer and the compiler are part of the build.

The compiled module keeps no names; inner values are seen by marking them as outputs, of the model or of a given Relax
module, whose bindings are the importer's in their order. A given library shows its outputs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.options import Options
from tensortriage.engines.process.converted import ConvertedEngine
from tensortriage.engines.process.isolated import WORKER_OPTION
from tensortriage.errors import UsageError
from tensortriage.values.dtype import Precision

LEVELS = {"0": "0", "1": "1", "2": "2", "3": "3"}


class TvmEngine(ConvertedEngine):
    """The engine ``tvm``."""

    name: ClassVar[str] = "tvm"
    title: ClassVar[str] = "TVM"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32,)
    options: ClassVar[Mapping[str, str]] = {
        "optimize": "level of TVM's passes: 0 to 3 (default 2, TVM's own)",
        "left_out": "passes to leave out, joined with +, e.g. FuseOps+FoldConstant",
        "file": "module to run instead of importing the model: a script of Relax, NAME.py, with NAME.npz beside it, or "
        "a compiled library; whole models only",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return what the context of the passes is made of, and the arrays that belong to a given script.

        Raises:
            UsageError: For an unknown level, or a given script without its file of arrays.
        """
        words = {"optimize": given.choice("optimize", LEVELS, "2"), "left_out": "+".join(given.words("left_out"))}
        if "file" in given and _is_script(given.text("file")):
            arrays = Path(given.text("file")).with_suffix(".npz")
            if not arrays.is_file():
                raise UsageError(
                    f"{arrays} does not exist", slug="engine-option-file", cure="put the .npz beside the .py file"
                )
            words["weights"] = str(arrays)
        return words

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep nothing: what was compiled lives in the process that compiled it."""

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say that modules tell none."""
        return False

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Say that modules show nothing by themselves; a given script does."""
        return dict(options) if _is_script(options.get("file", "")) else None

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return no fusion and no folding first, then level 0, then the options as they are; a library has no other."""
        if options.get("file") and not _is_script(options["file"]):
            return [("as given", dict(options))]
        place = {key: value for key, value in options.items() if key in ("worker", "file")}
        rungs = [
            (
                "optimize=0,left_out=FuseOps+FoldConstant",
                {**place, "optimize": "0", "left_out": "FuseOps+FoldConstant"},
            ),
            ("optimize=0", {**place, "optimize": "0"}),
        ]
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]


def _is_script(file: str) -> bool:
    return Path(file).suffix == ".py"
