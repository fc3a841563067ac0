"""Engines that run a file of their own, which a converter makes of the ONNX model: what they have in common.

The converter is part of the build, in the worker, and its refusal is a refusal to build. Where it keeps the names of
values, inner ones are seen in the very file that runs, and the operators of the file are told as ONNX nodes.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortriage.engines.base import Availability, Limits, Plan
from tensortriage.engines.feed_checks import build_failed, checked_feed
from tensortriage.engines.options import Options, read_options
from tensortriage.engines.process.by_shape import Build, SessionByShape
from tensortriage.engines.process.conversions import Conversions
from tensortriage.engines.process.given_files import FILE, checked_file, without_file
from tensortriage.engines.process.isolated import IsolatedEngine, IsolatedSession
from tensortriage.errors import ModelError
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

if TYPE_CHECKING:
    from tensortriage.model.model import Model

SEEN = "converted file"
"""How inner values are seen: in the file that runs, under the names that the converter kept."""


class ConvertedEngine:
    """What an engine with a converter inherits.

    Attributes:
        name: Its word in specs, and the name of its adapter.
        title: What messages call it.
        precisions: The formats it can be asked for; the first is the default.
        converter_words: The options that the converter reads.
        fixed_shapes: Whether open dimensions must be closed before the model is converted.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: ClassVar[Mapping[str, str]]
    precisions: ClassVar[tuple[Precision, ...]]
    converter_words: ClassVar[tuple[str, ...]] = ("precision",)
    fixed_shapes: ClassVar[bool] = True

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._isolated = IsolatedEngine(self.name, title=self.title, limits=self.limits)
        self._conversions = Conversions(self._isolated, (*self.converter_words, "declared"))

    def availability(self) -> Availability:
        """Say that it needs an environment of its own."""
        reason = f"{self.title} runs in an environment of its own"
        return Availability(usable=False, reason=reason, cure=f"triage engines install {self.name}")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format that the options ask for.

        Raises:
            UsageError: For an unknown option or option value.
        """
        return self._precision(read_options(options, self.options)).value

    def check(self, options: Mapping[str, str]) -> None:
        """Ask the worker whether it has runtime and converter; see `ChecksOptions`."""
        self._isolated.probe(self._all_words(read_options(options, self.options)))

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say that sessions tell their plan at once: it is in the file."""
        return True

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Say that two builds are the same: converter and kernels choose nothing by timing."""
        return False

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the same options: every session shows the values whose names the converter kept."""
        return dict(options)

    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options without a given file that shows its outputs only; see `RunsFiles`."""
        return without_file(options) if self.observing(options) is None else None

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep conversions in a folder; see `tensortriage.engines.base.KeepsEngines`."""
        if engines:
            self._conversions.keep_in(folder)

    def compile(self, model: Path, options: Mapping[str, str]) -> "NamedValuesSession":
        """Convert and load an ONNX file in a worker.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When runtime or converter are not to be had there.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        words = self._all_words(read_options(options, self.options))
        loaded = opened(self.title, model)

        def built(path: Path, shaped: "Model") -> IsolatedSession:
            return self._conversions.compile(path, shaped, {**words, **self.told_of(shaped, words)})

        return NamedValuesSession(loaded, built, title=self.title, fixed_shapes=self.fixed_shapes)

    def told_of(self, model: "Model", words: Mapping[str, str]) -> dict[str, str]:
        """Return what the adapter is told of a model beside the words of the options."""
        del words
        return {"declared": declared(model)}

    def words(self, given: Options) -> dict[str, str]:
        """Return the engine's own options in the words of its adapter."""
        raise NotImplementedError

    def _precision(self, given: Options) -> Precision:
        return given.precision("precision", self.precisions, self.precisions[0])

    def _all_words(self, given: Options) -> dict[str, str]:
        words = {"precision": self._precision(given).value, **self.words(given)}
        words |= {key: given.text(key) for key in ("worker", FILE) if key in given}
        if "threads" in given:
            words["threads"] = str(given.integer("threads", 1, minimum=1))
        if FILE in words:
            checked_file(words[FILE], self.title)
        return words


class NamedValuesSession(SessionByShape):
    """A converted model whose tensors have the names of ONNX values; made by `ConvertedEngine.compile`."""

    observation = SEEN

    def __init__(self, model: "Model", build: Build, *, title: str, fixed_shapes: bool, at_once: bool = True) -> None:
        super().__init__(model, build, title=title, fixed_shapes=fixed_shapes, at_once=at_once)

    def plan(self) -> Plan | None:
        """Return the operators of the file, and the ONNX nodes that each executes; None where no name was kept."""
        plan = self.built_for_any().plan()
        return None if plan is None else by_values(plan, self._model, [spec.name for spec in self.inputs])

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that the file still has, in their declared shapes.

        Raises:
            TriageError: As for `run`.
        """
        from tensortriage.model.shape_inference.value_specs import value_specs

        arrays = checked_feed(feed, self.inputs)
        _, found = self.built_for(arrays).answer("captured", arrays, wanted=list(values))
        specs = value_specs(self._model)
        for value in values:
            if value in found and _may_be(found[value], specs.get(value)):
                yield value, found[value]


def by_values(plan: Plan, model: "Model", inputs: Sequence[str]) -> Plan | None:
    """Return a plan whose regions name values with the ONNX nodes instead; None when no name is the model's."""
    from tensortriage.engines.region_nodes import place

    graph = model.graph
    named = [
        [node.name for value in region.nodes if (node := graph.producer(value)) is not None] for region in plan.regions
    ]
    if not any(named):
        return None
    regions = zip(plan.regions, place(named, graph, inputs), strict=True)
    return Plan(tuple(dataclasses.replace(region, nodes=nodes) for region, nodes in regions))


def opened(title: str, path: Path) -> "Model":
    """Return the model of a file.

    Raises:
        BuildFailed: When it is none.
    """
    from tensortriage.model.model import Model

    try:
        return Model.load(path.absolute())
    except ModelError as error:
        raise build_failed(title, error.message, cure=error.cure) from error


def declared(model: "Model") -> str:
    """Return names, types and shapes of inputs and outputs as JSON, as far as they are known."""
    from tensortriage.model.shape_inference.value_specs import value_specs

    known = value_specs(model)
    outputs = [known.get(spec.name, spec) for spec in model.outputs]
    return json.dumps({"inputs": _rows(model.inputs), "outputs": _rows(outputs)})


def _rows(specs: Sequence[ValueSpec]) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "dtype": spec.dtype.label if spec.dtype else None,
            "shape": list(spec.shape) if spec.shape is not None else None,
        }
        for spec in specs
    ]


def _may_be(array: np.ndarray, spec: ValueSpec | None) -> bool:
    if spec is None or spec.shape is None:
        return True
    return array.ndim == len(spec.shape) and all(
        not isinstance(size, int) or size == own for size, own in zip(spec.shape, array.shape, strict=True)
    )
