"""Capabilities of an engine beyond the Protocol of `tensortriage.engines.base`; sessions have `session_capabilities`.

A capability is declared: a class has it by inheriting from it. A method that happens to bear its name is not called.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortriage.engines.base import Session

if TYPE_CHECKING:
    from tensortriage.model.model import Model
    from tensortriage.model.model_message import InPlace


class DeclaredCapability(ABC):  # noqa: B024 - its subclasses have them
    """Anything that may be offered."""


class RunsOnHardware(DeclaredCapability):
    """Capability of an engine: it knows the class of hardware that computes under a set of options."""

    @abstractmethod
    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``cpu``, ``gpu``, ``npu`` or, where that is not known for certain, ``any``."""


class RunsNetworks(DeclaredCapability):
    """Capability of an engine: it runs networks that models are exported from, and exports them."""

    @abstractmethod
    def as_written(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options without those that affect the computation: as its author runs it."""

    @abstractmethod
    def export(self, options: Mapping[str, str], folder: Path, *, exporter: str) -> tuple[Path, Path]:
        """Write the model of the network that options name, and the inputs it was exported with; return both paths.

        Raises:
            TriageError: When there are no such inputs, or the exporter refuses the network.
        """

    @abstractmethod
    def small_network(self, folder: Path) -> tuple[Mapping[str, str], Mapping[str, np.ndarray], np.ndarray]:
        """Write a network of few whole numbers into a folder; return options that name it, a feed, its one output."""


class ReportsPrecision(DeclaredCapability):
    """Capability of an engine: it reports the number format in which it computes under a set of options."""

    @abstractmethod
    def precision(self, options: Mapping[str, str]) -> str:
        """Return a precision word (``fp32``, ``fp16``, ``bf16`` ...) for these options on this machine."""


class StreamsResults(DeclaredCapability):
    """Capability of an engine: it hands over each output as soon as it is computed, in an order of its own."""

    @abstractmethod
    def stream_session(self, session: Session, feed: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Run one of its sessions once, yielding ``(output name, array)``; errors as with `Session.run`."""


class VariesBuilds(DeclaredCapability):
    """Capability of an engine: it reports whether two builds of one model may differ."""

    @abstractmethod
    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return whether two builds with these options may differ."""

    def runs_vary(self, options: Mapping[str, str]) -> bool:
        """Return whether two runs of one build may differ; True unless our own code computes everything by rule."""
        return True


class ComputesByRule(RunsOnHardware, VariesBuilds):
    """Capability of an engine of our own on the CPU: two builds are the same, and two runs."""

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``cpu``."""
        return "cpu"

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return False."""
        return False

    runs_vary = builds_vary


class TellsPlan(DeclaredCapability):
    """Capability of an engine: sessions may report their plan at once, without a further build."""

    @abstractmethod
    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Return whether sessions with these options report their plan at once."""


class Calibrates(DeclaredCapability):
    """Capability of an engine: it calibrates the ranges of integers from a feed or a file."""

    @abstractmethod
    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Return whether a build with these options calibrates."""


class QuantizesActivations(DeclaredCapability):
    """Capability of an engine: it may round activations to few bits unasked where weights have few bits."""

    @abstractmethod
    def quantizes_activations(self, options: Mapping[str, str]) -> bool:
        """Return whether a build with these options may round activations that the model leaves in floating point."""


class PinsTactics(DeclaredCapability):
    """Capability of an engine: its choices can be recorded, and forced upon another build."""

    @abstractmethod
    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options with which sessions report their tactics."""

    @abstractmethod
    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Return options with which a build makes, and reports, the choices of a ``tensortriage.tactics/1`` file."""


class SavesEngines(DeclaredCapability):
    """Capability of an engine: its builds can be written to a file."""

    @abstractmethod
    def saving(self, options: Mapping[str, str], path: Path) -> Mapping[str, str]:
        """Return options with which a build also writes its engine to a file."""


class BuildsFiles(SavesEngines):
    """Capability of an engine: it can build a file and not run it, also where there is no device."""

    @abstractmethod
    def build_only(self, model: Path, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Build without running, and write the files that the options name; return the adapter's report.

        Raises:
            TriageError: As for `Engine.compile`.
        """


class TakesFeeds(DeclaredCapability):
    """Capability of an engine: builds may need the user's feeds, in a file that an option names."""

    @abstractmethod
    def wants_feeds(self, options: Mapping[str, str], model: Path) -> str:
        """Return the option for the file that this build needs and does not have; empty where it needs none."""


class ChecksOptions(DeclaredCapability):
    """Capability of an engine: it can find out, without a model, whether a set of options works on this machine."""

    @abstractmethod
    def check(self, options: Mapping[str, str]) -> None:
        """Return without an error when the options work.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When the engine, its device or the precision is not available here.
        """


class CompilesInPlace(DeclaredCapability):
    """Capability of an engine: it builds a model from memory, with weights mapped from their own files."""

    @abstractmethod
    def compile_in_place(self, model: "InPlace", options: Mapping[str, str]) -> Session:
        """Build a message whose external data lie in a directory; errors as with `Engine.compile`.

        Raises:
            UsageError: Also for options under which the model would be rewritten (``engine-option-value``).
        """


class CompilesModels(DeclaredCapability):
    """Capability of an engine of this process: it builds a loaded model, which then need not be written to a file."""

    @abstractmethod
    def compile_model(self, model: "Model", options: Mapping[str, str]) -> Session:
        """Build a model, which is not changed; errors as with `Engine.compile`."""


class Observes(DeclaredCapability):
    """Capability of an engine: its sessions can show inner values while they run, without marking them as outputs.

    Marking a value stops the fusion across it; a value that the engine shows by itself is closer to the deployed run.
    """

    @abstractmethod
    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which sessions satisfy `ShowsValues`; None when these options exclude that."""


class RunsFiles(DeclaredCapability):
    """Capability of an engine: it runs a file converted earlier from the model."""

    @abstractmethod
    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options for building the model itself; None without a file, and for a file that shows its values."""


class UnroundsFiles(DeclaredCapability):
    """Capability of an engine: of a given file with integers it can run the network before quantization."""

    @abstractmethod
    def unrounded(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which the file runs before quantization; None without such a file."""


class ArrangesFiles(DeclaredCapability):
    """Capability of an engine: it runs files of other tools, which may rename and rearrange the model's tensors.

    Its sessions answer two questions of `AnswersQuestions` on a feed:

    - ``ways``: possible mappings of the file's tensors to the model's (``ways``), the most usual first, each with
      ``options`` that select it, ``words`` for its differences, and ``evident`` if nothing else fits; and ``weights``,
      the number format of the file's weights, empty for the model's.
    - ``weights``: the number of integer weights that are ``readable`` and ``unreadable``; which of the readable ones
      are multiplied with integers (``narrow``), None where all results may be integers; and for weight N the arrays
      ``N/numbers``, its real numbers, and ``N/step``, the distance between neighbouring ones.
    """

    @abstractmethod
    def arranges(self, options: Mapping[str, str]) -> bool:
        """Return whether these options name such a file."""


class TranslatesFiles(ArrangesFiles, RunsFiles):
    """Capability of an engine: it reads what a given file computes, without running it."""

    @abstractmethod
    def translated(self, options: Mapping[str, str], model: "Model", path: Path) -> str:
        """Write a given file as an ONNX model with the inputs and outputs of its source model.

        Returns:
            The available account of how it was made, as a clause; empty for nothing.

        Raises:
            ModelError: When the file holds something that has no form in ONNX.
            UsageError: When the options name no file of the engine, or several ways to hold it (``layout-unknown``).
        """


class RunsGivenEngines(DeclaredCapability):
    """Capability of an engine: it runs a prebuilt file, regardless of the model that it gets with it."""

    @abstractmethod
    def without_file(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options without the file, which represents one whole model; None where they name none."""


class KeepsEngines(DeclaredCapability):
    """Capability of an engine: its builds can be cached, so that the same build is not made twice."""

    @abstractmethod
    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Cache the by-products that speed up later builds in a folder, and with ``engines`` the builds, by content."""


class OffersLadder(DeclaredCapability):
    """Capability of an engine: its options go from safe to aggressive, and the first wrong level locates the cause."""

    @abstractmethod
    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return levels of configuration: the settings of each, in words, and all of its options.

        The first is the safest, the last is ``options`` themselves; their other settings (threads, device) stay.
        """


class NamesPasses(DeclaredCapability):
    """Capability of an engine: it reports the optimizer passes that changed a model, and can leave passes out."""

    @abstractmethod
    def passes(self, model: Path, options: Mapping[str, str]) -> Sequence[str]:
        """Return the passes that change a model with these options, in order of application; empty when not known."""

    @abstractmethod
    def without(self, options: Mapping[str, str], passes: Collection[str]) -> Mapping[str, str]:
        """Return the options with more passes left out than they leave out already."""

    def leaving_out(self, passes: Sequence[str]) -> str:
        """Return how a user of the engine leaves passes out, in its own words; empty where that is not known."""
        return ""
