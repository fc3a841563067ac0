"""OpenVINO, in a worker process: options and names here, the engine itself in `worker.adapter`, its files in `files`.

OpenVINO chooses bfloat16 by itself on CPUs that have it, so the precision that options ask for and the one it computes
in are two things; the second is read back. With ``precision=fp32`` and ``dynamic`` it honours the Casts of a typed ONNX
model, so a mixed-precision model runs as typed.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tensortriage.engines.sdk import (
    FILE,
    HARDWARE,
    WORKER_OPTION,
    Availability,
    ChecksOptions,
    DType,
    IsolatedEngine,
    IsolatedSession,
    Limits,
    ModelTerms,
    OffersLadder,
    Options,
    Plan,
    Precision,
    QuantizesActivations,
    ReportsPrecision,
    RunsOnHardware,
    SessionByShape,
    TellsPlan,
    TranslatesFiles,
    TriageError,
    UsageError,
    ValueSpec,
    VariesBuilds,
    installed,
    read_options,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS
from tensortriage_engines.region_nodes import place

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Graph, Model
    from tensortriage_engines.openvino.files import FileSession

AUTO = "auto"
DYNAMIC = "dynamic"
_PRECISIONS = (Precision.FP32, Precision.BF16, Precision.FP16)
_WORDS = (AUTO, DYNAMIC)
_DYNAMIC_QUANTIZATION = "config.DYNAMIC_QUANTIZATION_GROUP_SIZE"
_EXECUTION, _ACCURACY = "hint.execution", "accuracy"
_HINTS = ("performance", "execution", "requests")


class OpenVinoEngine(
    ReportsPrecision,
    RunsOnHardware,
    VariesBuilds,
    ChecksOptions,
    TellsPlan,
    OffersLadder,
    QuantizesActivations,
    TranslatesFiles,
):
    """The engine ``openvino``."""

    name: ClassVar[str] = "openvino"
    options: ClassVar[Mapping[str, str]] = {
        "precision": "fp32, bf16, fp16, dynamic (as the model is typed) or auto (the device's default)",
        "device": "OpenVINO device (default CPU)",
        "threads": "threads for inference (default: all cores)",
        "hint.KEY": "OpenVINO hint: hint.performance, hint.execution or hint.requests",
        "config.KEY": "any OpenVINO property, e.g. config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0",
        FILE: ".xml that ovc, NNCF or an exporter wrote, its .bin next to it, to run instead; whole models only",
        **ARRANGEMENT_OPTIONS,
        "worker": WORKER_OPTION,
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.isolated = IsolatedEngine(f"{__package__}.worker.adapter", title="OpenVINO", limits=self.limits)

    def availability(self) -> Availability:
        """Return whether OpenVINO is installed for this interpreter; nothing is imported or started."""
        return installed("openvino", "OpenVINO", "pip install openvino")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision word in which the device computes; asks OpenVINO when the options leave it open.

        For ``dynamic`` that is fp32, the widest format that a typed model can ask for.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When OpenVINO must be queried and cannot be used here.
        """
        settings = self.words(options)
        word = settings.get("precision", AUTO)
        if word == AUTO:
            word = str(self.isolated.probe(settings)["precision"])
        return Precision.FP32.value if word == DYNAMIC else word

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return the class of the device; ``any`` for those that choose among several, as AUTO does."""
        device = options.get("device", "CPU").partition(".")[0].lower()
        return device if device in HARDWARE else "any"

    def check(self, options: Mapping[str, str]) -> None:
        """Ask OpenVINO whether the device has the requested features; see `ChecksOptions`."""
        self.isolated.probe(self.words(options))

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Return True: the plan is part of the compiled model."""
        return True

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return whether two builds may differ: the CPU's kernels are chosen by rule, other devices may time theirs."""
        return read_options(options, self.options).text("device", "CPU") != "CPU"

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the safest settings for accuracy first: fp32, no dynamic quantization, the accuracy hint."""
        wide = {**options, "precision": Precision.FP32.value}
        unquantized = {**wide, _DYNAMIC_QUANTIZATION: "0"}
        rungs = [
            (f"precision=fp32, no dynamic quantization, {_EXECUTION}=accuracy", {**unquantized, _EXECUTION: _ACCURACY}),
            ("precision=fp32, no dynamic quantization", unquantized),
            ("precision=fp32", wide),
        ]
        return [*(rung for rung in rungs if rung[1] != dict(options)), ("as given", dict(options))]

    def quantizes_activations(self, options: Mapping[str, str]) -> bool:
        """Return whether products by compressed weights may round activations to int8 (the CPU default, groups of 32).

        The accuracy hint switches it off as well (measured on 2026.4 with int4 weights).
        """
        return options.get(_DYNAMIC_QUANTIZATION) != "0" and options.get(_EXECUTION, "").lower() != _ACCURACY

    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options without the file, and without those about it; see `RunsFiles`."""
        about = (FILE, *ARRANGEMENT_OPTIONS)
        return {key: value for key, value in options.items() if key not in about} if FILE in options else None

    def arranges(self, options: Mapping[str, str]) -> bool:
        """Return whether a file is given; see `ArrangesFiles`."""
        return FILE in options

    def translated(self, options: Mapping[str, str], model: "Model", path: Path) -> str:
        """Write the computation of a file as an ONNX model; see `TranslatesFiles`."""
        from tensortriage_engines.openvino.files import translated

        return translated(options, model, path)

    def words(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return options in the words of the adapter.

        Raises:
            UsageError: For an unknown option or option value.
        """
        about_files = () if FILE in options else ARRANGEMENT_OPTIONS
        offered = {key: words for key, words in self.options.items() if key not in about_files}
        return _settings(read_options(options, offered))

    def compile(self, model: Path, options: Mapping[str, str]) -> "IsolatedSession | SessionByShape | FileSession":
        """Build an ONNX file in a worker, or load the given file in place of it.

        Raises:
            UsageError: For an unknown option or option value, a property the device does not have, or a file that is
                none of OpenVINO's.
            EngineMissing: When OpenVINO, the device or the precision is not available here.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        if (unfiled := self.building(options)) is not None:
            from tensortriage_engines.openvino.files import opened

            return opened(self.isolated, self.words(unfiled), read_options(options, self.options), model)
        return self.isolated.compile(
            model,
            self.words(options),
            terms=ModelTerms(declared_inputs=_declared_inputs, translate=_in_terms_of_onnx),
        )


def _settings(options: Options) -> dict[str, str]:
    """Return the options in the words of the adapter."""
    settings = {key: options.text(key) for key in ("device", "worker") if key in options}
    if "threads" in options:
        settings["threads"] = str(options.integer("threads", 1, minimum=1))
    if "precision" in options:
        word = options.text("precision").strip().lower()
        settings["precision"] = word if word in _WORDS else options.precision("precision", _PRECISIONS).value
    for key, value in options.family("hint").items():
        if key not in _HINTS:
            raise UsageError(
                f"OpenVINO has no hint '{key}'", slug="engine-option-unknown", cure="known hints: " + ", ".join(_HINTS)
            )
        settings[f"hint.{key}"] = value
    settings.update((f"config.{key}", value) for key, value in options.family("config").items())
    return settings


def _declared_inputs(model: Path) -> Sequence[ValueSpec]:
    from tensortriage.engines.sdk import input_specs

    return input_specs(model)


def _in_terms_of_onnx(plan: Plan, model: Path) -> Plan:
    """Return the plan with names of ONNX nodes instead of OpenVINO's, and labels of element types."""
    from tensortriage.engines.sdk import Model

    loaded = Model.of_file(model)
    graph = loaded.graph
    named = [[_onnx_name(name, graph) for name in region.nodes] for region in plan.regions]
    placed = place(named, graph, [spec.name for spec in loaded.inputs])
    return Plan(
        tuple(
            dataclasses.replace(region, nodes=nodes, precision=_label(region.precision))
            for region, nodes in zip(plan.regions, placed, strict=True)
        )
    )


def _without_numbers(name: str) -> str:
    """Return a name without the numbers behind dots at its end; they are looked for from there, which takes no time."""
    numbers = re.match(r"(?:\d+\.)+", name[::-1])
    return name[: -numbers.end()] if numbers else name


def _onnx_name(name: str, graph: "Graph") -> str:
    """Return the ONNX node that an OpenVINO operation comes from; empty when OpenVINO made it up.

    OpenVINO calls an operation after its ONNX node or, if its value is a model output, after that value. The parts of a
    split node get a number behind a dot or a word behind a slash; transposed weights (``/transpose_b``) belong to no
    node.
    """
    while True:
        for candidate in (name, _without_numbers(name)):
            if candidate in graph:
                return candidate
            producer = graph.producer(candidate)
            if producer is not None:
                return producer.name
        name, _, last = name.rpartition("/")
        if not name or last.startswith("transpose_"):
            return ""


def _label(word: str) -> str:
    try:
        return DType.parse(word).label
    except TriageError:
        return word
