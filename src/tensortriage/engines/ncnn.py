"""ncnn, Tencent's engine for phones, in a worker: pnnx converts the model as part of the build.

The converter loses the names of values. So the model is converted once more with its values marked as outputs: a blob
of the network and a value of the marked one are the same where their numbers are, on the same feed. What a blob is
called does not depend on its numbers, so an edited file is read with the names of the unedited one.
"""

import dataclasses
import functools
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensortriage.engines.base import Plan
from tensortriage.engines.feed_checks import checked_feed
from tensortriage.engines.options import Options, read_options
from tensortriage.engines.process.by_shape import Build, SessionByShape
from tensortriage.engines.process.converted import ConvertedEngine, by_values, declared, opened
from tensortriage.engines.process.isolated import WORKER_OPTION, IsolatedSession
from tensortriage.errors import EngineError, UsageError
from tensortriage.values.dtype import Precision

if TYPE_CHECKING:
    from tensortriage.model.model import Model

MATCHED = "matched by value"
"""How inner values are seen."""
_ALIKE = 1e-5
"""Largest difference, against the largest number, of two arrays that are one value: the two networks differ in what is
fused, so in the last bits of float32 sums of a few thousand terms, below 1e-6; other values differ by far more."""
_KERNELS = {"fast": "fast", "plain": "plain"}
_GIVEN = ("file", "weights")
_FEWEST = 4
Holders = dict[str, tuple[str, tuple[int, ...]]]
"""By value: the blob that holds it, and the value's shape."""


class NcnnEngine(ConvertedEngine):
    """The engine ``ncnn``."""

    name: ClassVar[str] = "ncnn"
    title: ClassVar[str] = "ncnn"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16, Precision.BF16)
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default), fp16 or bf16: how weights and results are kept",
        "kernels": "fast (default) or plain: convolutions without Winograd's method and matrix products",
        "threads": "threads for inference (default 1)",
        "file": "converted .param file to run instead of converting the model, its .bin beside it; whole models only",
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the options of the runtime, and the weights that belong to a given file.

        Raises:
            UsageError: For unknown kernels, or a given file without its file of weights.
        """
        words = {"kernels": given.choice("kernels", _KERNELS, _KERNELS["fast"])}
        if "file" in given:
            weights = Path(given.text("file")).with_suffix(".bin")
            if not weights.is_file():
                raise UsageError(
                    f"{weights} does not exist", slug="engine-option-file", cure="put the .bin beside the .param file"
                )
            words["weights"] = str(weights)
        return words

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say that sessions tell no plan at once: layers are known to be nodes once there were numbers to match."""
        return False

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return fp32 on plain kernels first, then fp32, then the options as they are."""
        wide = {**options, "precision": Precision.FP32.value}
        rungs = [("precision=fp32,kernels=plain", {**wide, "kernels": "plain"}), ("precision=fp32", wide)]
        if self.precision(options) == Precision.FP32.value:
            rungs.pop()
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]

    def compile(self, model: Path, options: Mapping[str, str]) -> "NcnnSession":  # type: ignore[override] # one that builds for shapes
        """Convert and load an ONNX file in a worker; see `ConvertedEngine.compile`."""
        words = self._all_words(read_options(options, self.options))

        own = {key: value for key, value in words.items() if key not in _GIVEN}
        built, unedited = (functools.partial(self._built, given) for given in (words, own))
        return NcnnSession(opened(self.title, model), built, unedited, title=self.title)

    def _built(self, words: Mapping[str, str], path: Path, model: "Model") -> IsolatedSession:
        from tensortriage.model.transforms.mark_outputs import fix_weights

        words = {**words, "declared": declared(model)}
        replaceable = len(model.ir.graph.inputs) > len(model.inputs)
        if model.files <= {path} and not replaceable:
            return self._conversions.compile(path, model, words)
        # pnnx reads zeros from files of weights, and takes weights that are inputs as well for what is fed
        with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
            whole = fix_weights(model).save(Path(folder) / "model.onnx")
            return self._conversions.compile(whole, model, words)


class NcnnSession(SessionByShape):
    """A converted network; made by `NcnnEngine.compile`.

    Args:
        model: The ONNX model.
        build: Converts and loads a file, or loads the given network.
        unedited: Converts and loads a file, whatever network is given.
        title: What messages call the engine.
    """

    observation = MATCHED

    def __init__(self, model: "Model", build: Build, unedited: Build, *, title: str) -> None:
        self._unedited = unedited
        self._holders: dict[str, Holders] = {}
        super().__init__(model, build, title=title, fixed_shapes=True)

    def plan(self) -> Plan | None:
        """Return the layers and the ONNX nodes that each executes; None before any value was seen."""
        holders = self._holders.get(_key(self._shapes), {})
        plan = self.built_for_any().plan()
        if plan is None or not holders:
            return None
        values: dict[str, list[str]] = {}
        for value, (blob, _) in holders.items():
            values.setdefault(blob, []).append(value)
        regions = [
            dataclasses.replace(region, nodes=tuple(value for blob in region.nodes for value in values.get(blob, ())))
            for region in plan.regions
        ]
        return by_values(Plan(tuple(regions)), self._model, [spec.name for spec in self.inputs])

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that are a blob of the network.

        Raises:
            TriageError: As for `run`.
        """
        arrays = checked_feed(feed, self.inputs)
        session = self.built_for(arrays)
        key = _key(self._shapes)
        if key not in self._holders:
            self._holders[key] = self._matched(arrays)
        wanted = {value: self._holders[key][value] for value in values if value in self._holders[key]}
        if not wanted:
            return
        _, found = session.answer("blobs", arrays, wanted=sorted({blob for blob, _ in wanted.values()}))
        for value, (blob, shape) in wanted.items():
            if blob in found and found[blob].size == math.prod(shape):
                yield value, found[blob].reshape(shape)

    def _matched(self, arrays: Mapping[str, np.ndarray]) -> Holders:
        """Return the blob that holds each value, found on a feed; empty where pnnx takes no marked model."""
        from tensortriage.model.shape_inference.annotate import with_input_shapes
        from tensortriage.model.shape_inference.value_specs import value_specs
        from tensortriage.model.transforms.mark_outputs import mark_outputs

        model = with_input_shapes(self._model, self._shapes) if self._shapes else self._model
        specs = value_specs(model)
        inner = [
            name
            for node in model.graph.nodes
            for name in node.outputs
            if name and (spec := specs.get(name)) is not None and spec.dtype is not None and spec.dtype.is_float
        ]
        with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
            marked = mark_outputs(model, inner)
            try:
                right = self._asked(marked, Path(folder) / "marked.onnx", arrays, blobs=False)
                held = self._asked(model, Path(folder) / "model.onnx", arrays, blobs=True)
            except EngineError:
                return {}
        return same_values(held, {name: right[name] for name in inner if name in right})

    def _asked(
        self, model: "Model", path: Path, arrays: Mapping[str, np.ndarray], *, blobs: bool
    ) -> Mapping[str, np.ndarray]:
        session = self._unedited(model.save(path), model)
        try:
            return session.answer("blobs", arrays, wanted=[])[1] if blobs else session.run(arrays)
        finally:
            session.close()


def same_values(blobs: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> Holders:
    """Return for each value the first blob with its numbers, in memory order, and the value's shape.

    Values of less than four numbers, or of one number throughout, say too little.

    Args:
        blobs: What the network shows, by blob.
        values: What the model computes, by value name.
    """
    found: Holders = {}
    for value, array in values.items():
        numbers = array.ravel()
        if numbers.size < _FEWEST or not np.isfinite(numbers).all() or numbers.min() == numbers.max():
            continue
        allowed = _ALIKE * float(np.abs(numbers).max())
        for blob, held in blobs.items():
            if held.size == numbers.size and np.abs(held.ravel() - numbers).max() <= allowed:
                found[value] = (blob, array.shape)
                break
    return found


def _key(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return str(sorted(shapes.items()))
