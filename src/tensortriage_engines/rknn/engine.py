"""RKNN, Rockchip's NPUs, in a worker: its toolkit converts the model, and its simulator runs it as the NPU would.

There is no fp32: fp16, or int8 with the ranges of the first feed that is run, so that parts of a model can be
quantized too. A layer that kept its ONNX name shows its value; see `tensortriage_worker.rknn`.
"""

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    FILE,
    WORKER_OPTION,
    Calibrates,
    IsolatedSession,
    Options,
    Plan,
    Precision,
    UnroundsFiles,
    checked_feed,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS
from tensortriage_engines.converted import ConvertedEngine, NamedValuesSession
from tensortriage_engines.file_pairs import beside
from tensortriage_worker.shards import write_shard

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

BOARDS = ("rk3588", "rk3576", "rk3568", "rk3566", "rk3562", "rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b")
"""Boards that the toolkit can convert for and its simulator runs."""
_NPU = "NPU"


class RknnEngine(ConvertedEngine, Calibrates, UnroundsFiles):
    """The engine ``rknn``."""

    name: ClassVar[str] = "rknn"
    title: ClassVar[str] = "RKNN"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP16, Precision.INT8)
    converter_words: ClassVar[tuple[str, ...]] = ()  # the simulator runs builds of its own process only
    files: ClassVar[tuple[str, ...]] = (FILE, "data", "config", "calibration")
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp16 (default) or int8 (default of a given file); models with quantizers keep their scales",
        "target": f"the board: {', '.join(BOARDS)} (default {BOARDS[0]})",
        "optimize": "level of the converter's optimizer, 0 to 3 (default 3)",
        "algorithm": "how ranges of int8 are chosen: normal (default), mmse or kl_divergence",
        "method": "scales of int8 weights: one per channel (default) or per layer",
        "file": ".model file of the toolkit's hybrid quantization, the .data and .quantization.cfg next to it; whole "
        "models only",
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the converter's options, and the files that belong to a given one."""
        words = {
            "target": given.word("target", BOARDS),
            "optimize": given.word("optimize", ("0", "1", "2", "3"), "3"),
            "algorithm": given.word("algorithm", ("normal", "mmse", "kl_divergence")),
            "method": given.word("method", ("channel", "layer")),
        }
        if FILE in given:
            saved = given.text(FILE)
            words |= {"data": beside(saved, ".data"), "config": beside(saved, ".quantization.cfg")}
        return words

    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Return whether data set the ranges of int8: the first feed, or those of a given file; see `Calibrates`."""
        return self.precision(options) == Precision.INT8.value

    def unrounded(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options with a given file in fp16: the weights in it are those before quantization."""
        narrow = FILE in options and self.precision(options) == Precision.INT8.value
        return {**options, "precision": Precision.FP16.value} if narrow else None

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``npu``: the chip, which the simulator emulates."""
        return "npu"

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return the converter's optimizer switched off; a given file has no other settings."""
        return () if FILE in options else ({"optimize": "0"},)

    def _precision(self, given: Options) -> Precision:
        usual = Precision.INT8 if FILE in given else Precision.FP16
        return given.precision("precision", self.precisions, usual)

    def session(self, model: "Model", words: Mapping[str, str]) -> "RknnSession":
        """Return the session of a model, whose first feed may set the ranges of int8."""
        return RknnSession(model, words, self)


class RknnSession(NamedValuesSession):
    """A model in the simulator; made by `RknnEngine.compile`.

    Args:
        model: The ONNX model.
        words: Options for the adapter.
        engine: The engine that builds it. Where the first feed sets the ranges of int8, it builds on the first run.
    """

    def __init__(self, model: "Model", words: Mapping[str, str], engine: RknnEngine) -> None:
        self._engine, self._words = engine, words
        self._calibrated = words["precision"] == Precision.INT8.value and FILE not in words
        self._feed: dict[str, np.ndarray] = {}
        super().__init__(model, self._with_ranges, engine, at_once=not self._calibrated)

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
            return self._engine.built(self._words, path, model)
        with tempfile.TemporaryDirectory(prefix="triage-rknn-") as folder:
            ranges = Path(folder) / "calibration.safetensors"
            write_shard(ranges, self._feed)
            return self._engine.built({**self._words, "calibration": str(ranges)}, path, model)
