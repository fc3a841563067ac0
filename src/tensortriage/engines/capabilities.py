"""What an engine or a session may offer beyond the two Protocols of `tensortriage.engines.base`.

A capability is declared: a class has it by inheriting from it. A method that happens to bear its name is not called.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortriage.engines.base import Choice, Session

if TYPE_CHECKING:
    from tensortriage.model.model import Model
    from tensortriage.model.model_message import InPlace


class DeclaredCapability(ABC):  # noqa: B024 - its subclasses have them
    """Anything that may be offered."""


class RunsOnHardware(DeclaredCapability):
    """Capability of an engine: it knows the class of hardware that a set of options makes it compute on."""

    @abstractmethod
    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``cpu``, ``gpu``, ``npu`` or, where that is not known for certain, ``any``."""


class RunsNetworks(DeclaredCapability):
    """Capability of an engine: it runs networks that models are exported from, and exports them."""

    @abstractmethod
    def as_written(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options without those that say how the network is computed: as its author runs it."""

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
    """Capability of an engine: it can say which number format a set of options makes it compute in."""

    @abstractmethod
    def precision(self, options: Mapping[str, str]) -> str:
        """Return a precision word (``fp32``, ``fp16``, ``bf16`` ...) for these options on this machine."""


class BoundsRuns(DeclaredCapability):
    """Capability of a session: the time that a run may take can be set once it is known what the reference needs."""

    @abstractmethod
    def allow(self, run_seconds: float) -> None:
        """Let every later run take so many seconds."""


class FedOtherwise(DeclaredCapability):
    """Capability of a session of another process: inputs lie there as asked for, and two feeds run there at once."""

    @property
    @abstractmethod
    def layouts(self) -> Sequence[str]:
        """Those of `tensortriage_worker.feeding.LAYOUTS` that reach the engine."""

    @property
    @abstractmethod
    def own_options(self) -> Sequence[str]:
        """Words of options that a script's engine declares itself."""

    @abstractmethod
    def run_laid_out(self, feed: Mapping[str, np.ndarray], layout: str) -> Mapping[str, np.ndarray]:
        """Run once from memory that lies as one of `layouts`, as `Session.run`."""

    @abstractmethod
    def streams(
        self, feeds: Sequence[Mapping[str, np.ndarray]], runs: int
    ) -> Sequence[Sequence[Mapping[str, np.ndarray]]]:
        """Run two feeds at once, each so often, the second in another session of the same model.

        Returns what `tensortriage_worker.feeding.side_by_side` does, before the second one's a result of its session
        alone; errors as with `Session.run`.
        """


class StreamsResults(DeclaredCapability):
    """Capability of a session: it hands over each output as soon as it is computed, in an order of its own."""

    @abstractmethod
    def stream(self, feed: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once, yielding ``(output name, array)``; errors as with `Session.run`."""


class TellsTactics(DeclaredCapability):
    """Capability of a session: it knows what the engine chose while building."""

    @abstractmethod
    def tactics(self) -> Sequence[Choice]:
        """Return the choices in the order they were made; empty when the engine did not tell."""


class VariesBuilds(DeclaredCapability):
    """Capability of an engine: it says whether two builds of one model may differ."""

    @abstractmethod
    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Say whether they may, with these options."""

    def runs_vary(self, options: Mapping[str, str]) -> bool:
        """Say whether two runs of one build may differ; True unless everything is computed by rule, in our own code."""
        return True


class TellsPlan(DeclaredCapability):
    """Capability of an engine: it says whether sessions tell their plan at once, without a further build."""

    @abstractmethod
    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Say whether they do, with these options."""


class Calibrates(DeclaredCapability):
    """Capability of an engine: it calibrates the ranges of integers from a feed or a file."""

    @abstractmethod
    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Say whether they are, with these options."""


class QuantizesActivations(DeclaredCapability):
    """Capability of an engine: it may meet weights of few bits with activations that it rounds to few bits itself."""

    @abstractmethod
    def quantizes_activations(self, options: Mapping[str, str]) -> bool:
        """Say whether it may do so, unasked by the model, with these options."""


class PinsTactics(DeclaredCapability):
    """Capability of an engine: what it chose can be recorded, and forced upon another build."""

    @abstractmethod
    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options with which sessions tell their tactics."""

    @abstractmethod
    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Return options with which a build makes the choices of a ``tensortriage.tactics/1`` file, and tells them."""


class SavesEngines(DeclaredCapability):
    """Capability of an engine: what it built can be written to a file."""

    @abstractmethod
    def saving(self, options: Mapping[str, str], path: Path) -> Mapping[str, str]:
        """Return options with which a build also writes its engine to a file."""


class ChecksOptions(DeclaredCapability):
    """Capability of an engine: it can find out, without a model, whether a set of options works on this machine."""

    @abstractmethod
    def check(self, options: Mapping[str, str]) -> None:
        """Return when they do.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When the engine, its device or the precision is not to be had here.
        """


class CompilesInPlace(DeclaredCapability):
    """Capability of an engine: it builds a model that is in no file, its weights mapped from where they are."""

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

    Marking a value stops the fusion across it; what an engine shows on its own is nearer to what is deployed.
    """

    @abstractmethod
    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which sessions satisfy `ShowsValues`; None when that cannot be had with these."""


class RunsFiles(DeclaredCapability):
    """Capability of an engine: it runs a file that was made of the model before."""

    @abstractmethod
    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which it builds the model itself; None without a file, and for one that shows values."""


class UnroundsFiles(DeclaredCapability):
    """Capability of an engine: of a given file that holds integers it can run the network that they stand for."""

    @abstractmethod
    def unrounded(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which the file runs before its integers; None without such a file."""


class ArrangesFiles(DeclaredCapability):
    """Capability of an engine: it runs files of other tools, whose inputs and outputs may be the model's in many ways.

    Its sessions answer the question ``ways`` of `AnswersQuestions` on a feed: ``ways``, a list of ``options`` that say
    one, the most usual first, with ``words`` for what is not as the model has it, and whether it is ``evident``; and
    ``weights``, the number format that the file keeps its weights in, empty for that of the model. They answer the
    question ``weights`` on a feed: how many that are integers are ``readable``, and how many ``unreadable``; which of
    the former are met by integers (``narrow``), None where all results may be integers; and of each, by ``N/numbers``
    and ``N/step``, what the integers stand for and how far apart they lie.
    """

    @abstractmethod
    def arranges(self, options: Mapping[str, str]) -> bool:
        """Say whether these options name such a file."""


class RunsGivenEngines(DeclaredCapability):
    """Capability of an engine: it runs what was built elsewhere, from a file, whatever model it is handed with it."""

    @abstractmethod
    def without_file(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options without such a file, which stands for one model as a whole; None where they name none."""


class KeepsEngines(DeclaredCapability):
    """Capability of an engine: what it builds can be kept, so that the same build is not made twice."""

    @abstractmethod
    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep what makes later builds quicker in a folder, and with ``engines`` every build itself, by content."""


class BuildsWhenFed(DeclaredCapability):
    """Capability of a session: it builds for the shapes that it is fed, and again for others."""

    @abstractmethod
    def builds_made(self) -> Sequence[float]:
        """Return the wall seconds of every build so far but one that opening the session waited for."""


class RepeatsBuild(DeclaredCapability):
    """Capability of a session: its build can be repeated with the vendor's own tool."""

    @abstractmethod
    def command(self) -> str:
        """Return the command line; empty as long as nothing is built."""


class ShowsValues(DeclaredCapability):
    """Capability of a session: it shows inner values of the model as it was built."""

    @property
    @abstractmethod
    def observation(self) -> str:
        """One word for how values are seen; empty when they are not."""

    @abstractmethod
    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once and yield ``(value name, array)`` for those of the wanted values that can be seen."""


class AnswersQuestions(DeclaredCapability):
    """Capability of a session: it answers questions in a language of its own, about a feed or without one."""

    @abstractmethod
    def query(
        self, question: str, feed: Mapping[str, np.ndarray] | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Return what it tells, in types of JSON, and arrays by name; errors as with `Session.run`."""


class KnowsSomeValues(DeclaredCapability):
    """Capability of a session: it may not know every value that the model was marked with, as a network behind it."""

    @abstractmethod
    def run_known(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once, as `Session.run`, and return those of the outputs that are known; the network's own always are."""


class OffersLadder(DeclaredCapability):
    """Capability of an engine: its options go from safe to aggressive, and the first rung that is wrong tells much."""

    @abstractmethod
    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return rungs of configuration: what each sets, in words, and all of its options.

        The first is the safest, the last is ``options`` themselves; what they set otherwise (threads, device) stays.
        """


class NamesPasses(DeclaredCapability):
    """Capability of an engine: it tells which optimizer passes changed a model, and can leave passes out."""

    @abstractmethod
    def passes(self, model: Path, options: Mapping[str, str]) -> Sequence[str]:
        """Return the passes that change a model with these options, in order of application; empty when not known."""

    @abstractmethod
    def without(self, options: Mapping[str, str], passes: Collection[str]) -> Mapping[str, str]:
        """Return the options with some passes left out, besides those that they leave out already."""
