"""LiteRT, once TensorFlow Lite, in a worker: conversion by onnx2tf is part of the build, as it is for its users.

The converter's report names the value of the ONNX model that each tensor of the file holds, so inner values are seen in
the file that runs, without marking them as outputs. In a file that another converter made (of the PyTorch network, say)
they are found by their numbers. Files have fixed shapes: one build per fed shape.
"""

import functools
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    FILE,
    WORKER_OPTION,
    Build,
    IsolatedSession,
    Options,
    Plan,
    Precision,
    checked_feed,
    fits,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS, ways_of
from tensortriage_engines.converted import ConvertedEngine, ConvertedSession
from tensortriage_engines.values_by_number import first_wrong, same_values

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Graph, Model

PRESERVED = "preserved"
"""Source of inner values: the interpreter preserves the memory of every tensor."""

_SLASHED = "wa"
"""Prefix that the converter puts in front of a name that begins with a slash."""


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
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the options of the runtime."""
        words = {"delegate": given.word("delegate", ("xnnpack", "none"))}
        if "observe" in given:
            words["observe"] = given.word("observe", (PRESERVED,))
        return words

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return fp32 on the built-in kernels, then with the requested delegate."""
        return {"precision": Precision.FP32.value, "delegate": "none"}, {"precision": Precision.FP32.value}

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which the interpreter keeps every tensor."""
        return {**options, "observe": PRESERVED}

    def session(self, model: "Model", words: Mapping[str, str]) -> "LiteRtSession":
        """Return the session of a model, which may keep every tensor."""
        own = {key: value for key, value in words.items() if key != FILE and key not in ARRANGEMENT_OPTIONS}
        built, unedited = (functools.partial(self.built, given) for given in (words, own))
        return LiteRtSession(model, built, self, words.get("observe", ""), unedited if FILE in words else None)

    def built(self, words: Mapping[str, str], path: Path, model: "Model") -> IsolatedSession:
        """Build a copy of the file: onnx2tf changes its input."""
        with tempfile.TemporaryDirectory(prefix="triage-litert-") as folder:
            return super().built(words, model.save(Path(folder) / "model.onnx"), model)


class LiteRtSession(ConvertedSession):
    """A converted model; made by `LiteRtEngine.compile`.

    Args:
        model: See `ConvertedSession`.
        build: Likewise.
        engine: Likewise.
        observation: How inner values are seen; empty when they are not.
        unedited: Converts and loads a file, for any given file; None where none is.
    """

    observation = ""

    def __init__(
        self, model: "Model", build: Build, engine: LiteRtEngine, observation: str, unedited: Build | None = None
    ) -> None:
        self.observation = observation
        self._engine, self._unedited = engine, unedited
        self._found: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None = None
        super().__init__(model, build, engine)

    def plan(self) -> Plan | None:
        """Return the operators of the file and the ONNX nodes that each executes; None for a file without a report."""
        graph = self._model.graph
        return self.in_terms_of_onnx(self.built_for_any().plan(), lambda value: (_in_model(value, graph),))

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that a tensor of the file holds.

        Raises:
            TriageError: As for `run`.
        """
        arrays = checked_feed(feed, self.inputs)
        session = self.built_for(arrays)
        answer, _ = session.answer("records")
        moved = {placed.held.name for way in ways_of(session)[:1] for placed in way.inputs if placed.moved}
        held = holders(answer["records"], self._model.graph, moved)
        if not held and self._unedited is not None:
            yield from self._by_number(arrays, values)
            return
        wanted = {value: held[value] for value in values if value in held}
        if not wanted:
            return
        _, found = session.answer("captured", arrays, wanted=sorted({name for name, _ in wanted.values()}))
        from tensortriage.engines.sdk import value_specs

        specs = value_specs(self._model)
        for value, (name, channels_last) in wanted.items():
            if name in found:
                shape = specs[value].shape if value in specs else None
                array = laid_out(found[name], shape, channels_last=channels_last)
                if array is not None:
                    yield value, array

    def _by_number(self, arrays: Mapping[str, np.ndarray], wanted: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the wanted values that a file of another converter holds, by their numbers in one of this converter."""
        if self._found is None or not all(np.array_equal(each, arrays[name]) for name, each in self._found[0].items()):
            fed = {name: np.array(array) for name, array in arrays.items()}
            self._found = fed, self._matched(self.built_for(arrays), arrays)
        found = self._found[1]
        yield from ((value, found[value]) for value in wanted if value in found)

    def _matched(self, session: IsolatedSession, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs, and the inner values that are found."""
        assert self._unedited is not None
        graph = self._model.graph
        converted = LiteRtSession(self._model, self._unedited, self._engine, self.observation)
        try:
            names = [name for node in graph.nodes for name in node.outputs if name]
            right = dict(converted.captured(arrays, names))
        finally:
            converted.close()
        outputs = session.run(arrays)
        answer, tensors = session.answer("tensors", arrays)
        inner = {name: array for name, array in right.items() if name not in outputs}
        held = same_values(tensors, {**arrays, **inner})
        holders = {value: each[0] for value, each in held.items()}
        holders |= first_wrong(graph, held, inner, tensors, answer["made_of"])
        read = ((value, holder.read(tensors[holder.tensor])) for value, holder in holders.items())
        return {**outputs, **{value: array for value, array in read if array is not None}}


def holders(
    records: Sequence[Mapping[str, Any]], graph: "Graph", moved: Collection[str] = ()
) -> dict[str, tuple[str, bool]]:
    """Return the tensor of the file that holds each value, and whether its channels are last there.

    Of several values in one tensor by the report, it holds the last: the others were fused into it.

    Args:
        records: Report of the adapter.
        graph: The model's.
        moved: Inputs of the file whose channels are last.
    """
    last: dict[str, tuple[int, str, bool]] = {}
    for record in records:
        value = _in_model(record["onnx_output_name"], graph)
        made = graph.producer(value)
        if made is None or record["status"] not in ("direct", "rewritten"):
            continue
        tensor = record["resolved_tflite_tensor_name"]
        if tensor not in last or last[tensor][0] < made.index:
            last[tensor] = (made.index, value, record["channels_last"] or record["input"] in moved)
    return {value: (tensor, channels_last) for tensor, (_, value, channels_last) in last.items()}


def laid_out(array: np.ndarray, shape: Sequence[int | str | None] | None, *, channels_last: bool) -> np.ndarray | None:
    """Return an array in the layout of the model: the one that fits the declared shape, else that of the report.

    None when it fits in neither layout: the tensor holds something else.

    Args:
        array: A tensor of the file, its channels first or last.
        shape: Declared shape of the value; None when it is undeclared.
        channels_last: Whether channels are last by the converter's report.
    """
    ways = [array] if array.ndim < 3 else [array, np.moveaxis(array, -1, 1)]
    return next((way for way in (ways[::-1] if channels_last else ways) if fits(way.shape, shape)), None)


def _in_model(value: str, graph: "Graph") -> str:
    plain = value.removeprefix(_SLASHED)
    return plain if value not in graph.values and plain in graph.values else value
