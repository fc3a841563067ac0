"""ncnn, Tencent's engine for phones, in a worker: pnnx converts the model as part of the build.

The converter loses the names of values. So the model is converted once more with its values marked as outputs: a blob
of the network and a value of the marked one are the same where their numbers are, on the same feed. A blob's name does
not depend on its numbers, so an edited file is read with the names of the unedited one.
"""

import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    FILE,
    WORKER_OPTION,
    Build,
    EngineError,
    IsolatedSession,
    Options,
    Plan,
    Precision,
    checked_feed,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS
from tensortriage_engines.converted import ConvertedEngine, ConvertedSession
from tensortriage_engines.file_pairs import beside
from tensortriage_engines.values_by_number import Holder, same_values

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

MATCHED = "matched by value"
"""Source of inner values."""
_MOST_MARKED = 24
"""Conversions of marked models that are tried: halves of the values where one with all of them is refused."""


class NcnnEngine(ConvertedEngine):
    """The engine ``ncnn``."""

    name: ClassVar[str] = "ncnn"
    title: ClassVar[str] = "ncnn"
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32, Precision.FP16, Precision.BF16)
    plan_at_once: ClassVar[bool] = False  # layers are known to be nodes once there were numbers to match
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32 (default), fp16 or bf16: how weights and results are stored",
        "kernels": "fast (default) or plain: convolutions without Winograd's method and matrix products",
        "threads": "threads for inference (default 1)",
        "file": "converted .param file to run instead of converting the model, its .bin next to it; whole models only",
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def words(self, given: Options) -> dict[str, str]:
        """Return the options of the runtime, and the weights that belong to a given file.

        Raises:
            UsageError: For unknown kernels, or a given file without its file of weights.
        """
        words = {"kernels": given.word("kernels", ("fast", "plain"))}
        return {**words, "weights": beside(given.text(FILE), ".bin")} if FILE in given else words

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return fp32 on plain kernels, then on the requested ones."""
        return {"precision": Precision.FP32.value, "kernels": "plain"}, {"precision": Precision.FP32.value}

    def session(self, model: "Model", words: Mapping[str, str]) -> "NcnnSession":
        """Return the session of a model, which finds values by those of the unedited network."""
        own = {key: value for key, value in words.items() if key not in self.files}
        built, unedited = (functools.partial(self.built, given) for given in (words, own))
        return NcnnSession(model, built, self, unedited)

    def built(self, words: Mapping[str, str], path: Path, model: "Model") -> IsolatedSession:
        """Build a file that contains its weights, none of which is an input."""
        replaceable = len(model.ir.graph.inputs) > len(model.inputs)
        if model.files <= {path} and not replaceable:
            return super().built(words, path, model)
        # pnnx reads zeros from files of weights, and treats weights that are inputs as well as fed values
        with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
            return super().built(words, fix_weights(model).save(Path(folder) / "model.onnx"), model)


def fix_weights(model: "Model") -> "Model":
    """Return the model whose initializers are not inputs as well: a caller may replace none of them.

    Models of IR version 3 and older declare every weight as an input (onnx/docs/IR.md); the result is of version 4 at
    least.
    """
    from tensortriage.engines.sdk import Model

    clone = model.clone()
    graph = clone.ir.graph
    for value in [each for each in graph.inputs if each.is_initializer()]:
        graph.inputs.remove(value)
    clone.ir.ir_version = max(clone.ir.ir_version, 4)
    return Model.from_ir(clone.ir)


class NcnnSession(ConvertedSession):
    """A converted network; made by `NcnnEngine.compile`.

    Args:
        model: See `ConvertedSession`.
        build: Likewise; it loads the given network where there is one.
        engine: Likewise.
        unedited: Converts and loads a file, for any given network.
    """

    observation = MATCHED

    def __init__(self, model: "Model", build: Build, engine: NcnnEngine, unedited: Build) -> None:
        self._unedited = unedited
        self._holders: dict[str, dict[str, Holder]] = {}
        super().__init__(model, build, engine)

    def plan(self) -> Plan | None:
        """Return the layers and the ONNX nodes that each executes; None before any value was seen."""
        values: dict[str, list[str]] = {}
        for value, holder in self._holders.get(_key(self._shapes), {}).items():
            values.setdefault(holder.tensor, []).append(value)
        return self.in_terms_of_onnx(self.built_for_any().plan(), lambda blob: values.get(blob, ()))

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
        _, found = session.answer("captured", arrays, wanted=sorted({each.tensor for each in wanted.values()}))
        for value, holder in wanted.items():
            if holder.tensor in found and (array := holder.read(found[holder.tensor])) is not None:
                yield value, array

    def _matched(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Holder]:
        """Return the blob that holds each value, found on a feed; of those that pnnx takes as outputs."""
        from tensortriage.engines.sdk import mark_outputs, value_specs, with_input_shapes

        model = with_input_shapes(self._model, self._shapes) if self._shapes else self._model
        specs = value_specs(model)
        inner = [
            name
            for node in model.graph.nodes
            for name in node.outputs
            if name and (spec := specs.get(name)) is not None and spec.dtype is not None and spec.dtype.is_float
        ]
        with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
            try:
                held = self._asked(model, Path(folder) / "model.onnx", arrays, blobs=True)
            except EngineError:
                return {}
            right: dict[str, np.ndarray] = {}
            groups = [inner]
            for attempt in range(_MOST_MARKED):
                if not groups:
                    break
                group = groups.pop(0)
                try:
                    path = Path(folder) / f"marked{attempt}.onnx"
                    right |= self._asked(mark_outputs(model, group), path, arrays, blobs=False)
                except EngineError:  # pnnx ends in a segmentation fault where certain values are outputs
                    half = len(group) // 2
                    groups += [part for part in (group[:half], group[half:]) if half]
        alike = same_values(held, {name: right[name] for name in inner if name in right})
        plain = ((value, each) for value, holders in alike.items() for each in reversed(holders) if each.axes is None)
        return dict(plain)  # the first of each; ncnn keeps the order of axes

    def _asked(
        self, model: "Model", path: Path, arrays: Mapping[str, np.ndarray], *, blobs: bool
    ) -> Mapping[str, np.ndarray]:
        session = self._unedited(model.save(path), model)
        try:
            return session.answer("captured", arrays, wanted=[])[1] if blobs else session.run(arrays)
        finally:
            session.close()


def _key(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return str(sorted(shapes.items()))
