"""Engines that run a file in their own format, which a converter makes from the ONNX model: their common part.

The converter is part of the build, in the worker, and its refusal is a refusal to build. Where it keeps the names of
values, inner ones are seen in the very file that runs, and the operators of the file are reported as ONNX nodes.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    FILE,
    AnswersQuestions,
    Arrange,
    ArrangesFiles,
    Availability,
    Build,
    ChecksOptions,
    IsolatedEngine,
    IsolatedSession,
    KeepsEngines,
    Limits,
    ModelError,
    ModelTerms,
    Observes,
    OffersLadder,
    Options,
    Plan,
    Precision,
    ReportsPrecision,
    RunsFiles,
    RunsOnHardware,
    SessionByShape,
    ShowsValues,
    TellsPlan,
    ValueSpec,
    VariesBuilds,
    build_failed,
    checked_feed,
    checked_file,
    fits,
    read_options,
    without_file,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS, Arrangements, arrangements, ways_of
from tensortriage_engines.conversions import Conversions
from tensortriage_engines.region_nodes import place

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

SEEN = "converted file"
"""The source of inner values: the file that runs, under the names that the converter kept."""


class ConvertedEngine(
    ReportsPrecision, RunsOnHardware, VariesBuilds, ChecksOptions, TellsPlan, OffersLadder, Observes, RunsFiles,
    ArrangesFiles, KeepsEngines,
):  # fmt: skip
    """Base class of an engine with a converter.

    Attributes:
        name: Word in specs. The adapter is the module ``worker.adapter`` next to the engine's own.
        title: The engine's name in messages.
        precisions: Formats that can be requested; the first is the default.
        converter_words: Options that the converter reads; empty where its results cannot be cached.
        files: Words of the adapter that name files.
        fixed_shapes: Whether open dimensions must be closed before the model is converted.
        plan_at_once: Whether sessions report their plan without having run.
        set_aside: Options, or families of options, that settings safer than the given ones leave out.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: ClassVar[Mapping[str, str]]
    precisions: ClassVar[tuple[Precision, ...]]
    converter_words: ClassVar[tuple[str, ...]] = ("precision",)
    files: ClassVar[tuple[str, ...]] = (FILE, "weights")
    fixed_shapes: ClassVar[bool] = True
    plan_at_once: ClassVar[bool] = True
    set_aside: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        adapter = f"{type(self).__module__.rpartition('.')[0]}.worker.adapter"
        self._isolated = IsolatedEngine(adapter, title=self.title, limits=self.limits)
        self._conversions = Conversions(self._isolated, (*self.converter_words, "declared"), self.files)

    def availability(self) -> Availability:
        """Return that the engine needs an environment of its own."""
        reason = f"{self.title} runs in an environment of its own"
        return Availability(usable=False, reason=reason, cure=f"triage engines install {self.name}")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format that the options ask for.

        Raises:
            UsageError: For an unknown option or option value.
        """
        return self._precision(read_options(options, self.options)).value

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``light``: they run on CPUs, in kernels of their own."""
        return "light"

    def check(self, options: Mapping[str, str]) -> None:
        """Ask the worker whether it has runtime and converter; see `ChecksOptions`."""
        self._isolated.probe(self._all_words(read_options(options, self.options)))

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Return whether sessions report their plan at once, from the file."""
        return self.plan_at_once

    def safer(self, options: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return settings to try instead of the given options, the safest first."""
        raise NotImplementedError

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the options at safer settings first, then as they are."""
        kept = {key: value for key, value in options.items() if key.partition(".")[0] not in self.set_aside}
        rungs = [(",".join(f"{k}={v}" for k, v in given.items()), {**kept, **given}) for given in self.safer(options)]
        whole = {**options, "precision": self.precision(options)}
        rungs = [rung for rung in rungs if {**rung[1], "precision": self.precision(rung[1])} != whole]
        return [*rungs, ("as given", dict(options))]

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return False: two builds are the same, as converter and kernels choose nothing by timing."""
        return False

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the same options: every session shows the values whose names the converter kept."""
        return dict(options)

    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options without a given file that shows its outputs only; see `RunsFiles`."""
        return without_file(options) if self.observing(options) is None else None

    def arranges(self, options: Mapping[str, str]) -> bool:
        """Return whether a file is given; see `ArrangesFiles`."""
        return FILE in options

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep conversions in a folder; see `tensortriage.engines.capabilities.KeepsEngines`."""
        if engines and self.converter_words:
            self._conversions.keep_in(folder)

    def compile(self, model: Path, options: Mapping[str, str]) -> "ConvertedSession":
        """Convert and load an ONNX file in a worker.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When runtime or converter are not available there.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        words = self._all_words(read_options(options, self.options))
        return self.session(_opened(self.title, model), words)

    def session(self, model: "Model", words: Mapping[str, str]) -> "ConvertedSession":
        """Return the session of a model, given the options in the words of the adapter."""
        return NamedValuesSession(model, functools.partial(self.built, words), self)

    def built(self, words: Mapping[str, str], path: Path, model: "Model") -> IsolatedSession:
        """Return a file built in a worker; ``model`` has the same contents."""
        options = {**words, "declared": _declared(model)}
        return self._conversions.compile(path, model, options, ModelTerms(arrange=_arranging(model, words)))

    def words(self, given: Options) -> dict[str, str]:
        """Return the engine's own options in the words of its adapter."""
        raise NotImplementedError

    def _precision(self, given: Options) -> Precision:
        return given.precision("precision", self.precisions, self.precisions[0])

    def _all_words(self, given: Options) -> dict[str, str]:
        words = {"precision": self._precision(given).value}
        words |= {key: given.text(key) for key in ("worker", FILE, *ARRANGEMENT_OPTIONS) if key in given}
        if FILE in words:
            checked_file(words[FILE], self.title)
        if "threads" in given:
            words["threads"] = str(given.integer("threads", 1, minimum=1))
        return {**words, **self.words(given)}


class ArrangedSession(SessionByShape, AnswersQuestions):
    """A session whose file may have been given."""

    def query(
        self, question: str, feed: Mapping[str, np.ndarray] | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Answer with the ``ways`` in which a given file may hold a model, and its ``weights``; see `ArrangesFiles`."""
        assert feed is not None, "it is asked on a feed"
        built = self.built_for(checked_feed(feed, self.inputs))
        if question == "weights":
            return built.answer(question)
        assert question == "ways", "there is no other question"
        ways = [{"options": way.options, "words": way.words, "evident": way.evident} for way in ways_of(built)]
        return {"ways": ways, "weights": built.info.get("weights", "")}, {}


class ConvertedSession(ArrangedSession, ShowsValues):
    """A converted model; made by `ConvertedEngine.compile`.

    Args:
        model: The ONNX model.
        build: Converts and loads a file.
        engine: The engine that made it.
        at_once: See `SessionByShape`.
    """

    def __init__(self, model: "Model", build: Build, engine: ConvertedEngine, *, at_once: bool = True) -> None:
        super().__init__(model, build, title=engine.title, fixed_shapes=engine.fixed_shapes, at_once=at_once)

    def in_terms_of_onnx(self, plan: Plan | None, values: Callable[[str], Iterable[str]]) -> Plan | None:
        """Return a plan with the ONNX nodes that its regions execute; None when no name is the model's.

        Args:
            plan: Regions with the file's names of values.
            values: The model's values that something so called holds.
        """
        graph = self._model.graph
        held = [[value for name in region.nodes for value in values(name)] for region in (plan or Plan(())).regions]
        named = [[node.name for value in each if (node := graph.producer(value)) is not None] for each in held]
        if plan is None or not any(named):
            return None
        regions = zip(plan.regions, place(named, graph, [spec.name for spec in self.inputs]), strict=True)
        return Plan(tuple(dataclasses.replace(region, nodes=nodes) for region, nodes in regions))


class NamedValuesSession(ConvertedSession):
    """One whose tensors have the names of ONNX values."""

    observation = SEEN

    def plan(self) -> Plan | None:
        """Return the operators of the file, and the ONNX nodes that each executes; None where no name was kept."""
        return self.in_terms_of_onnx(self.built_for_any().plan(), lambda name: (name,))

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value, array)`` for those of the wanted values that the file still has, in their declared shapes.

        Raises:
            TriageError: As for `run`.
        """
        from tensortriage.engines.sdk import value_specs

        arrays = checked_feed(feed, self.inputs)
        _, found = self.built_for(arrays).answer("captured", arrays, wanted=list(values))
        specs = value_specs(self._model)
        for value in values:
            if value in found and fits(found[value].shape, specs[value].shape if value in specs else None):
                yield value, found[value]


def _opened(title: str, path: Path) -> "Model":
    """Return the model of a file.

    Raises:
        BuildFailed: When it is none.
    """
    from tensortriage.engines.sdk import Model

    try:
        return Model.of_file(path.absolute())
    except ModelError as error:
        raise build_failed(title, error.message, cure=error.cure) from error


def _declared(model: "Model") -> str:
    """Return names, types and shapes of inputs and outputs as JSON, as far as they are known."""
    return json.dumps(dict(zip(("inputs", "outputs"), map(_rows, declared_of(model)), strict=True)))


def _arranging(model: "Model", words: Mapping[str, str]) -> Arrange | None:
    """Return a reader for the form of a given file; None where none is given."""
    if FILE not in words:
        return None
    declared = declared_of(model)
    return lambda inputs, outputs: Arrangements(arrangements(declared, (inputs, outputs), words))


def declared_of(model: "Model") -> tuple[Sequence[ValueSpec], Sequence[ValueSpec]]:
    """Return inputs and outputs of a model, with their types and shapes as far as they are known."""
    from tensortriage.engines.sdk import value_specs

    known = value_specs(model)
    return model.inputs, [known.get(spec.name, spec) for spec in model.outputs]


def _rows(specs: Sequence[ValueSpec]) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "dtype": spec.dtype.label if spec.dtype else None,
            "shape": list(spec.shape) if spec.shape is not None else None,
        }
        for spec in specs
    ]
