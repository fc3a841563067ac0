"""The border between TensorTriage and an inference engine: two Protocols and the plain data they speak in.

An engine compiles an ONNX file into a session; a session turns a feed into outputs. Failures inside an engine surface
as one of the `EngineError` kinds, so that callers can treat a crash or a hang as an answer. Everything beyond that is
an optional capability (`tensortriage.engines.capabilities`), which an engine declares.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.spec import ValueSpec


@frozen_dataclass
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
"""Default limit of a run, in seconds, and as a multiple of the reference's time."""


@frozen_dataclass
class Limits:
    """Bounds on one build or run of an engine that works in its own process.

    Attributes:
        build_seconds: Longest build; the engine is killed and `EngineHung` raised beyond it.
        run_seconds: Longest single run, in the same way; None for 60 s, or 20 times the reference's time if longer.
        memory_bytes: Largest resident set of the engine's process, else `EngineOutOfMemory`; None for no limit.
    """

    build_seconds: float = 600.0
    run_seconds: float | None = None
    memory_bytes: int | None = None

    def longest_run(self, reference_seconds: float = 0.0) -> float:
        """Return the seconds that a run may take, from the time of the reference's run (0 when unknown)."""
        if self.run_seconds is not None:
            return self.run_seconds
        return max(RUN_SECONDS, RUN_FACTOR * reference_seconds)


LIMIT_REACHED = "memory-limit-reached"
"""Slug of the error of an engine that needed more than the user's own limit, which is no evidence against it."""


LARGEST_GROUP = 0.25
"""Share of all nodes above which a region is no group: a plan with one kernel for everything is uninformative."""


@frozen_dataclass
class Region:
    """One unit of execution of an engine's plan: a kernel, with the ONNX nodes fused into it.

    Attributes:
        name: The engine's own name of the region.
        nodes: Names of its ONNX nodes (or, where the engine knows only those, of their output values).
        kind: The engine's layer type, e.g. ``FullyConnected``.
        precision: Label of the element type it computes in, e.g. ``bfloat16``; empty when the engine does not report
            it.
        implementation: The kernel or tactic, e.g. ``brgemm_avx512_bf16``; empty when the engine does not report it.
        inputs: Names of the values it takes, as the engine calls them; empty when the engine does not report them.
        outputs: Names of the output values of the region, in the same way.
        device: Device or execution provider it runs on; empty when the engine does not report it.
    """

    name: str
    nodes: tuple[str, ...]
    kind: str = ""
    precision: str = ""
    implementation: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    device: str = ""


@frozen_dataclass
class Choice:
    """An engine's choice for one layer while it built: a tactic, out of several that compute the same in theory.

    Attributes:
        layer: The engine's own name of the layer.
        tactic: Opaque text by which the engine repeats the choice.
        implementation: The kernel or algorithm, for people.
        inputs: Type and memory format of every input, in the engine's words.
        outputs: Type and memory format of every output.
        nodes: Names of the ONNX nodes it executes, where known.
        milliseconds: Time that the engine measured; None when unknown.
        key: Name of the layer in the engine's timing cache; empty where it has none.
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


@frozen_dataclass
class Plan:
    """The regions that an engine really runs for a model.

    Attributes:
        regions: In execution order.
        device: Device requested for everything, in the words of `Region.device`; empty when the engine may choose.
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
        """Return the plan that the engine really runs, or None when it reports none."""

    def close(self) -> None:
        """Release everything the session holds; calling it twice is harmless."""


class Engine(Protocol):
    """An inference engine. Constructed with keyword argument ``limits: Limits``, cheap, importing nothing heavy."""

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]]
    """The option words this engine understands, each with one line of help."""

    def availability(self) -> Availability:
        """Return whether the engine can be used here; cheap, never raises."""

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build an ONNX file (external data next to it).

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When the engine is not usable here.
            BuildFailed: When the engine refuses the model; the message is the engine's own reason.
            EngineError: Another of its kinds when the engine works in its own process.
        """
