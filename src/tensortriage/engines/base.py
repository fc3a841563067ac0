"""The border between TensorTriage and an inference engine: two Protocols and the plain data they speak in.

An engine compiles an ONNX file into a session; a session turns a feed into outputs. What goes wrong inside an engine
surfaces as one of the `EngineError` kinds, so that callers can treat a crash or a hang as an answer. Everything beyond
that is an optional capability: a separate small Protocol that an engine may also satisfy.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from tensortriage.values.spec import ValueSpec

if TYPE_CHECKING:
    from tensortriage.model.model import Model
    from tensortriage.model.model_message import InPlace


@dataclasses.dataclass(frozen=True, slots=True)
class Availability:
    """Whether an engine can be used here.

    Attributes:
        usable: Installed, with a device it can run on.
        version: Version of the engine's own library; empty when unknown.
        device: Human-readable device, e.g. ``CPU`` or ``NVIDIA H200``; empty when unknown.
        reason: Why it is not usable, one sentence; empty when it is.
        cure: The exact command that makes it usable; empty when it is.
    """

    usable: bool
    version: str = ""
    device: str = ""
    reason: str = ""
    cure: str = ""


RUN_SECONDS = 60.0
RUN_FACTOR = 20.0
"""A run may take so long, or so many times as long as the reference's, unless the user says otherwise."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one build or run of an engine that works in its own process.

    Attributes:
        build_seconds: Longest build; the engine is killed and `EngineHung` raised beyond it.
        run_seconds: Longest single run, likewise; None for 60 s, or 20 times what the reference took if that is more.
        memory_bytes: Largest resident set of the engine's process, else `EngineOutOfMemory`; None for no limit.
    """

    build_seconds: float = 600.0
    run_seconds: float | None = None
    memory_bytes: int | None = None

    def longest_run(self, reference_seconds: float = 0.0) -> float:
        """Return the seconds that a run may take, given what the reference needed for a run (0 when unknown)."""
        if self.run_seconds is not None:
            return self.run_seconds
        return max(RUN_SECONDS, RUN_FACTOR * reference_seconds)


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """One unit of execution of an engine's plan: a kernel, with the ONNX nodes fused into it.

    Attributes:
        name: The engine's own name of the region.
        nodes: Names of the ONNX nodes (or, where the engine kept only those, of their output values) it executes.
        kind: The engine's layer type, e.g. ``FullyConnected``.
        precision: Label of the element type it computes in, e.g. ``bfloat16``; empty when the engine does not say.
        implementation: The kernel or tactic, e.g. ``brgemm_avx512_bf16``; empty when the engine does not say.
        inputs: Names of the values it takes, as the engine calls them; empty when the engine does not say.
        outputs: Names of the values it makes, likewise.
        device: Device or execution provider it runs on; empty when the engine does not say.
    """

    name: str
    nodes: tuple[str, ...]
    kind: str = ""
    precision: str = ""
    implementation: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    device: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """What an engine chose for one layer while it built: a tactic, out of several that compute the same in theory.

    Attributes:
        layer: The engine's own name of the layer.
        tactic: What the engine takes back to make the same choice again; opaque.
        implementation: The kernel or algorithm, for people.
        inputs: Type and memory format of every input, in the engine's words.
        outputs: The same of every output.
        nodes: Names of the ONNX nodes it executes, where known.
        milliseconds: How long the engine found it to take; None when not told.
        key: What the engine calls the layer in its timing cache; empty where it has none.
    """

    layer: str
    tactic: str
    implementation: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    milliseconds: float | None = None
    key: str = ""

    @property
    def label(self) -> str:
        """The choice in words: two choices of a layer with equal labels are the same."""
        formats = f" ({', '.join(self.inputs)} -> {', '.join(self.outputs)})" if self.inputs or self.outputs else ""
        name = self.implementation if self.tactic in self.implementation else f"{self.implementation} {self.tactic}"
        return name.strip() + formats


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What an engine really runs for a model.

    Attributes:
        regions: In execution order.
        device: Where everything was asked to run, in the words of `Region.device`; empty when that was left open.
    """

    regions: tuple[Region, ...]
    device: str = ""


class Session(Protocol):
    """A compiled model, ready to run any number of times."""

    inputs: Sequence[ValueSpec]
    outputs: Sequence[ValueSpec]

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once.

        Args:
            feed: One array per input, with the dtypes of `inputs` (bf16, fp8, int4 as ml_dtypes arrays).

        Returns:
            One array per output, by ONNX value name, in the dtypes the model declares.

        Raises:
            EngineError: One of its kinds.
        """

    def plan(self) -> Plan | None:
        """Return what the engine really runs, or None when it cannot tell."""

    def close(self) -> None:
        """Release everything the session holds; calling it twice is harmless."""


class Engine(Protocol):
    """An inference engine. Constructed with keyword argument ``limits: Limits``, cheap, importing nothing heavy."""

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]]
    """The option words this engine understands, each with one line of help."""

    def availability(self) -> Availability:
        """Say whether the engine can be used here; cheap, never raises."""

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build an ONNX file (external data beside it).

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When the engine is not usable here.
            BuildFailed: When the engine refuses the model; the message is the engine's own reason.
            EngineError: Another of its kinds when the engine works in its own process.
        """


@runtime_checkable
class ReportsPrecision(Protocol):
    """Capability of an engine: it can say which number format a set of options makes it compute in."""

    def precision(self, options: Mapping[str, str]) -> str:
        """Return a precision word (``fp32``, ``fp16``, ``bf16`` ...) for these options on this machine."""


@runtime_checkable
class BoundsRuns(Protocol):
    """Capability of a session: the time that a run may take can be set once it is known what the reference needs."""

    def allow(self, run_seconds: float) -> None:
        """Let every later run take so many seconds."""


@runtime_checkable
class StreamsResults(Protocol):
    """Capability of a session: it hands over each output as soon as it is computed, in an order of its own."""

    def stream(self, feed: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once, yielding ``(output name, array)``; errors as with `Session.run`."""


@runtime_checkable
class TellsTactics(Protocol):
    """Capability of a session: it knows what the engine chose while building."""

    def tactics(self) -> Sequence[Choice]:
        """Return the choices in the order they were made; empty when the engine did not tell."""


@runtime_checkable
class VariesBuilds(Protocol):
    """Capability of an engine: it says whether two builds of one model may differ."""

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Say whether they may, with these options."""


@runtime_checkable
class TellsPlan(Protocol):
    """Capability of an engine: it says whether sessions tell their plan at once, without a further build."""

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say whether they do, with these options."""


@runtime_checkable
class Calibrates(Protocol):
    """Capability of an engine: data set the ranges of integers that the model does not hold: a feed, or a file's."""

    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Say whether they are, with these options."""


@runtime_checkable
class QuantizesActivations(Protocol):
    """Capability of an engine: it may meet weights of few bits with activations that it rounds to few bits itself."""

    def quantizes_activations(self, options: Mapping[str, str]) -> bool:
        """Say whether it may do so, unasked by the model, with these options."""


@runtime_checkable
class PinsTactics(Protocol):
    """Capability of an engine: what it chose can be recorded, and forced upon another build."""

    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options with which sessions tell their tactics."""

    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Return options with which a build makes the choices of a ``tensortriage.tactics/1`` file, and tells them."""


@runtime_checkable
class SavesEngines(Protocol):
    """Capability of an engine: what it built can be written to a file."""

    def saving(self, options: Mapping[str, str], path: Path) -> Mapping[str, str]:
        """Return options with which a build also writes its engine to a file."""


@runtime_checkable
class ChecksOptions(Protocol):
    """Capability of an engine: it can find out, without a model, whether a set of options works on this machine."""

    def check(self, options: Mapping[str, str]) -> None:
        """Return when they do.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When the engine, its device or the precision is not to be had here.
        """


@runtime_checkable
class CompilesInPlace(Protocol):
    """Capability of an engine: it builds a model that is in no file, its weights mapped from where they are."""

    def compile_in_place(self, model: "InPlace", options: Mapping[str, str]) -> Session:
        """Build a message whose external data lie in a directory; errors as with `Engine.compile`.

        Raises:
            UsageError: Also for options under which the model would be rewritten (``engine-option-value``).
        """


@runtime_checkable
class CompilesModels(Protocol):
    """Capability of an engine of this process: it builds a loaded model, which then need not be written to a file."""

    def compile_model(self, model: "Model", options: Mapping[str, str]) -> Session:
        """Build a model, which is not changed; errors as with `Engine.compile`."""


@runtime_checkable
class Observes(Protocol):
    """Capability of an engine: its sessions can show inner values while they run, without marking them as outputs.

    Marking a value stops the fusion across it; what an engine shows on its own is nearer to what is deployed.
    """

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which sessions satisfy `ShowsValues`; None when that cannot be had with these."""


@runtime_checkable
class RunsGivenEngines(Protocol):
    """Capability of an engine: it runs what was built elsewhere, from a file, whatever model it is handed with it."""

    def without_file(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options without such a file, which stands for one model as a whole; None where they name none."""


@runtime_checkable
class KeepsEngines(Protocol):
    """Capability of an engine: what it builds can be kept, so that the same build is not made twice."""

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep what makes later builds quicker in a folder, and with ``engines`` every build itself, by content."""


@runtime_checkable
class AsksParser(Protocol):
    """Capability of an engine: its parser says which nodes of a model it supports, without a build."""

    def capability(self, model: Path, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the parser's answer.

        ``supported``: whether it takes the whole model. ``groups``: dicts of ``nodes`` (places in the file) and
        ``supported``. ``problems``: dicts of ``node`` (name, may be empty), ``index`` (place), ``code``, ``reason``.
        """


@runtime_checkable
class BuildsWhenFed(Protocol):
    """Capability of a session: it builds for the shapes that it is fed, and again for others."""

    def builds_made(self) -> Sequence[float]:
        """Return the wall seconds of every build so far but one that opening the session waited for."""


@runtime_checkable
class RepeatsBuild(Protocol):
    """Capability of a session: its build can be repeated with the vendor's own tool."""

    def command(self) -> str:
        """Return the command line; empty as long as nothing is built."""


@runtime_checkable
class ShowsValues(Protocol):
    """Capability of a session: it shows inner values of the model as it was built."""

    @property
    def observation(self) -> str:
        """One word for how values are seen; empty when they are not."""

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once and yield ``(value name, array)`` for those of the wanted values that can be seen."""


@runtime_checkable
class KnowsSomeValues(Protocol):
    """Capability of a session: it may not know every value that the model was marked with, as a network behind it."""

    def run_known(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once, as `Session.run`, and return those of the outputs that are known; the network's own always are."""


@runtime_checkable
class OffersLadder(Protocol):
    """Capability of an engine: its options go from safe to aggressive, and the first rung that is wrong tells much."""

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return rungs of configuration: what each sets, in words, and all of its options.

        The first is the safest, the last is ``options`` themselves; what they set otherwise (threads, device) stays.
        """


@runtime_checkable
class NamesPasses(Protocol):
    """Capability of an engine: it tells which optimizer passes changed a model, and can leave passes out."""

    def passes(self, model: Path, options: Mapping[str, str]) -> Sequence[str]:
        """Return the passes that change a model with these options, in order of application; empty when not known."""

    def without(self, options: Mapping[str, str], passes: Collection[str]) -> Mapping[str, str]:
        """Return the options with some passes left out, besides those that they leave out already."""
