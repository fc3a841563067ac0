"""LiteRT, once TensorFlow Lite, in a worker: conversion by onnx2tf is part of the build, as it is for its users.

The converter's report says which tensor of the file holds which value of the ONNX model, so inner values are seen in
the file that runs, without marking them as outputs. Files have fixed shapes: one build per shape that is fed.
"""

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortriage.engines.base import Plan
from tensortriage.engines.feed_checks import checked_feed
from tensortriage.engines.options import Options, read_options
from tensortriage.engines.process.by_shape import Build, SessionByShape
from tensortriage.engines.process.converted import ConvertedEngine, by_values, declared, opened
from tensortriage.engines.process.isolated import WORKER_OPTION, IsolatedSession
from tensortriage.values.dtype import Precision

if TYPE_CHECKING:
    from tensortriage.model.ir.graph import Graph
    from tensortriage.model.model import Model

DELEGATES = {"xnnpack": "xnnpack", "none": "none"}
PRESERVED = "preserved"
"""How inner values are seen: the interpreter keeps the memory of every tensor."""

_SLASHED = "wa"
"""What the converter puts in front of a name that begins with a slash."""


class LiteRtEngine(ConvertedEngine):
    """The engine ``litert``."""

    name: ClassVar[str] = "litert"
    title: ClassVar[str] = "LiteRT"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16, Precision.INT8)
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default); fp16 and int8 (weights) are the converter's files of these formats",
        "delegate": "xnnpack (default) or none: the built-in kernels",
        "threads": "threads for inference (default: the runtime's choice)",
        "file": "converted .tflite file to run instead of converting the model; whole models only",
        "observe": "preserved: keep every tensor, so that inner values can be seen",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the options of the runtime."""
        words = {"delegate": given.choice("delegate", DELEGATES, DELEGATES["xnnpack"])}
        if "observe" in given:
            words["observe"] = given.choice("observe", {PRESERVED: PRESERVED}, PRESERVED)
        return words

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return fp32 on the built-in kernels first, then the delegate, then the options as they are."""
        wide = {**options, "precision": Precision.FP32.value}
        rungs = [("precision=fp32,delegate=none", {**wide, "delegate": "none"}), ("precision=fp32", wide)]
        if self.precision(options) == Precision.FP32.value:
            rungs.pop()
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which the interpreter keeps every tensor."""
        return {**options, "observe": PRESERVED}

    def compile(self, model: Path, options: Mapping[str, str]) -> "LiteRtSession":  # type: ignore[override] # one that builds for shapes
        """Convert and load an ONNX file in a worker; see `ConvertedEngine.compile`."""
        words = self._all_words(read_options(options, self.options))

        def built(_: Path, shaped: "Model") -> IsolatedSession:
            with tempfile.TemporaryDirectory(prefix="triage-litert-") as folder:  # onnx2tf writes to what it is given
                copy = shaped.save(Path(folder) / "model.onnx")
                return self._conversions.compile(copy, shaped, {**words, "declared": declared(shaped)})

        return LiteRtSession(opened(self.title, model), built, words.get("observe", ""))


class LiteRtSession(SessionByShape):
    """A converted model; made by `LiteRtEngine.compile`.

    Args:
        model: The ONNX model.
        build: Converts and loads a file.
        observation: How inner values are seen; empty when they are not.
    """

    def __init__(self, model: "Model", build: Build, observation: str) -> None:
        self.observation = observation
        super().__init__(model, build, title=LiteRtEngine.title, fixed_shapes=True)

    def plan(self) -> Plan | None:
        """Return the operators of the file and the ONNX nodes that each executes; None for a file without a report."""
        plan = self.built_for_any().plan()
        if plan is None or not any(region.nodes for region in plan.regions):
            return None
        graph = self._model.graph
        plain = [
            dataclasses.replace(region, nodes=tuple(_in_model(value, graph) for value in region.nodes))
            for region in plan.regions
        ]
        return by_values(Plan(tuple(plain)), self._model, [spec.name for spec in self.inputs])

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that a tensor of the file holds.

        Raises:
            TriageError: As for `run`.
        """
        arrays = checked_feed(feed, self.inputs)
        session = self.built_for(arrays)
        told, _ = session.answer("captured", arrays, wanted=[])
        held = holders(told["records"], self._model.graph)
        wanted = {value: held[value] for value in values if value in held}
        if not wanted:
            return
        _, found = session.answer("captured", arrays, wanted=sorted({name for name, _ in wanted.values()}))
        from tensortriage.model.shape_inference.value_specs import value_specs

        specs = value_specs(self._model)
        for value, (name, channels_last) in wanted.items():
            if name not in found:
                continue
            array = laid_out(found[name], specs[value].shape if value in specs else None, channels_last=channels_last)
            if array is not None:
                yield value, array


def holders(records: Sequence[Mapping[str, Any]], graph: "Graph") -> dict[str, tuple[str, bool]]:
    """Return the tensor of the file that holds each value, and whether its channels are last there.

    Of several values that one tensor is said to hold, it holds the last: the others were fused into it.
    """
    last: dict[str, tuple[int, str, bool]] = {}
    for record in records:
        value = _in_model(record["onnx_output_name"], graph)
        made = graph.producer(value)
        if made is None or record["status"] not in ("direct", "rewritten"):
            continue
        tensor = record["resolved_tflite_tensor_name"]
        if tensor not in last or last[tensor][0] < made.index:
            last[tensor] = (made.index, value, bool(record["assume_channel_last_layout"]))
    return {value: (tensor, channels_last) for tensor, (_, value, channels_last) in last.items()}


def laid_out(array: np.ndarray, shape: Sequence[int | str | None] | None, *, channels_last: bool) -> np.ndarray | None:
    """Return an array in the layout of the model: that which fits the declared shape, else that of the report.

    None when it fits in neither layout: the tensor holds something else.

    Args:
        array: A tensor of the file, its channels first or last.
        shape: The value's declared shape; words and None fit any size; None if nothing is declared.
        channels_last: Whether the converter's report says that channels are last.
    """
    ways = [array] if array.ndim < 3 else [np.moveaxis(array, -1, 1), array] if channels_last else [
        array, np.moveaxis(array, -1, 1)
    ]  # fmt: skip
    return next((way for way in ways if shape is None or _fits(way.shape, shape)), None)


def _fits(found: tuple[int, ...], declared: Sequence[int | str | None]) -> bool:
    return len(found) == len(declared) and all(
        not isinstance(size, int) or size == own for size, own in zip(declared, found, strict=True)
    )


def _in_model(value: str, graph: "Graph") -> str:
    plain = value.removeprefix(_SLASHED)
    return plain if value not in graph.values and plain in graph.values else value
