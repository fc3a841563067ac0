"""TVM, a compiler of tensor programs, in a worker: the Relax importer and the compiler are part of the build.

The compiled module keeps no names; inner values are seen by marking them as outputs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.options import Options
from tensortriage.engines.process.converted import ConvertedEngine
from tensortriage.engines.process.isolated import WORKER_OPTION
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
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return what the context of the passes is made of."""
        return {"optimize": given.choice("optimize", LEVELS, "2"), "left_out": "+".join(given.words("left_out"))}

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep nothing: what was compiled lives in the process that compiled it."""

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say that modules tell none."""
        return False

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Say that modules show nothing by themselves."""
        return None

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return no fusion and no folding first, then level 0, then the options as they are."""
        place = {key: value for key, value in options.items() if key == "worker"}
        rungs = [
            (
                "optimize=0,left_out=FuseOps+FoldConstant",
                {**place, "optimize": "0", "left_out": "FuseOps+FoldConstant"},
            ),
            ("optimize=0", {**place, "optimize": "0"}),
        ]
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]
