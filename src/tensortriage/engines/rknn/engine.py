"""RKNN, Rockchip's NPUs, in a worker: its toolkit converts the model, and its simulator runs it as the NPU would.

There is no fp32: fp16, or int8 whose ranges are those of the first feed that is run, so that parts of a model can be
quantized too. A layer that kept its ONNX name shows its value; see `tensortriage_worker.rknn`.
"""

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensortriage.engines.base import Plan
from tensortriage.engines.feed_checks import checked_feed
from tensortriage.engines.options import Options, read_options
from tensortriage.engines.process.converted import ConvertedEngine, NamedValuesSession, declared, opened
from tensortriage.engines.process.given_files import FILE
from tensortriage.engines.process.isolated import WORKER_OPTION, IsolatedSession
from tensortriage.errors import UsageError
from tensortriage.values.dtype import Precision
from tensortriage_worker.shards import write_shard

if TYPE_CHECKING:
    from tensortriage.model.model import Model

BOARDS = ("rk3588", "rk3576", "rk3568", "rk3566", "rk3562", "rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b")
"""What the toolkit can convert for and its simulator runs."""
_NPU = "NPU"
_LEVELS = {str(level): str(level) for level in range(4)}
_ALGORITHMS = {word: word for word in ("normal", "mmse", "kl_divergence")}
_METHODS = {word: word for word in ("channel", "layer")}
_ENDINGS = {"file": ".model", "data": ".data", "config": ".quantization.cfg"}


class RknnEngine(ConvertedEngine):
    """The engine ``rknn``."""

    name: ClassVar[str] = "rknn"
    title: ClassVar[str] = "RKNN"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP16, Precision.INT8)
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp16 (default) or int8; models with quantizers keep their scales",
        "target": f"the board: {', '.join(BOARDS)} (default {BOARDS[0]})",
        "optimize": "level of the converter's optimizer, 0 to 3 (default 3)",
        "algorithm": "how ranges of int8 are chosen: normal (default), mmse or kl_divergence",
        "method": "scales of int8 weights: one per channel (default) or per layer",
        "file": ".model file of the toolkit's hybrid quantization, the .data and .quantization.cfg beside it; whole "
        "models only",
        "worker": WORKER_OPTION,
    }

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format that the options ask for: int8 where a file of quantization is given."""
        asked = super().precision(options)
        return Precision.INT8.value if "file" in options else asked

    def words(self, given: Options) -> dict[str, str]:
        """Return the converter's options, and the files that belong to a given one."""
        words = {
            "target": given.choice("target", {board: board for board in BOARDS}, BOARDS[0]),
            "optimize": given.choice("optimize", _LEVELS, "3"),
            "algorithm": given.choice("algorithm", _ALGORITHMS, "normal"),
            "method": given.choice("method", _METHODS, "channel"),
        }
        if "file" in given:
            words |= _saved(given.text("file"))
        return words

    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Say whether data set the ranges of int8: the first feed, or those of a given file; see `Calibrates`."""
        return self.precision(options) == Precision.INT8.value

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep nothing: the simulator runs what was built in its own process."""

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the options without the converter's optimizer first, then as they are; a given file has no other."""
        rungs = [("optimize=0", {**options, "optimize": "0"})] if "file" not in options else []
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]

    def compile(self, model: Path, options: Mapping[str, str]) -> "RknnSession":
        """Convert an ONNX file in a worker and start the simulator; see `ConvertedEngine.compile`."""
        words = self._all_words(read_options(options, self.options))
        by_feed = self.calibrates(options) and FILE not in options
        return RknnSession(opened(self.title, model), self, words, calibrated=by_feed)

    def built(self, path: Path, model: "Model", words: Mapping[str, str]) -> IsolatedSession:
        """Build a file in a worker, with the files that the words name."""
        files = tuple(key for key in (*_ENDINGS, "calibration") if key in words)
        return self._isolated.compile(path, {**words, "declared": declared(model)}, files=files)


class RknnSession(NamedValuesSession):
    """A model in the simulator; made by `RknnEngine.compile`.

    Args:
        model: The ONNX model.
        engine: What builds it.
        words: Options for the adapter.
        calibrated: Whether the first feed sets the ranges of int8; then nothing is built before it.
    """

    def __init__(self, model: "Model", engine: RknnEngine, words: Mapping[str, str], *, calibrated: bool) -> None:
        self._engine, self._words = engine, words
        self._calibrated = calibrated
        self._feed: dict[str, np.ndarray] = {}
        super().__init__(model, self._with_ranges, title=engine.title, fixed_shapes=True, at_once=not calibrated)

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; see `SessionByShape.run`."""
        self._noted(feed)
        return super().run(feed)

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the wanted values that a layer holds under its own name; see `NamedValuesSession.captured`."""
        self._noted(feed)
        yield from super().captured(feed, values)

    def plan(self) -> Plan | None:
        """Return the layers and their ONNX nodes; None before the first feed where that sets the ranges."""
        plan = None if self._calibrated and not self._feed else super().plan()
        return plan and Plan(
            tuple(dataclasses.replace(row, device=row.implementation, implementation="") for row in plan.regions),
            device=_NPU,
        )

    def _noted(self, feed: Mapping[str, np.ndarray]) -> None:
        self._feed = self._feed or dict(checked_feed(feed, self.inputs))

    def _with_ranges(self, path: Path, model: "Model") -> IsolatedSession:
        if not self._calibrated:
            return self._engine.built(path, model, self._words)
        with tempfile.TemporaryDirectory(prefix="triage-rknn-") as folder:
            ranges = Path(folder) / "calibration.safetensors"
            write_shard(ranges, self._feed)
            return self._engine.built(path, model, {**self._words, "calibration": str(ranges)})


def _saved(file: str) -> dict[str, str]:
    """Return the three files that the toolkit saves together.

    Raises:
        UsageError: When one of them is not there.
    """
    stem = file.removesuffix(_ENDINGS["file"])
    found = {key: stem + ending for key, ending in _ENDINGS.items()}
    for path in found.values():
        if not Path(path).is_file():
            raise UsageError(
                f"{path} does not exist",
                slug="engine-option-file",
                cure="name the .model file that hybrid_quantization_step1 wrote, with the other two beside it",
            )
    return found
