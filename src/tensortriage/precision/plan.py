"""The result of a precision search; the content of ``precision.json``."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tensortriage.compare.task_metric import TaskAccuracy
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin
from tensortriage.values.result import Result, record
from tensortriage.values.text import count

PRECISION_FORMAT = "tensortriage.precision/1"


@frozen_dataclass
class Keeping:
    """A node that computes in the higher precision.

    Attributes:
        reason: The reason, from its values; how it was found where no value shows one.
        alone: Ratio of the output error to its limit when only this node computes in the lower format; None where that
            was not measured, or there is no limit (a task metric).
        error_alone: Largest relative RMS error of an output then.
        without: Whether the outputs failed without it: ``fails`` on the engine, ``fails in emulation`` with a clear
            margin, or empty when that was not tested.
        origin: Module, class and line of the source network from which it was made, as far as the file holds them.
    """

    node: str
    op_type: str
    reason: str
    alone: float | None = None
    error_alone: float | None = None
    without: str = ""
    origin: NodeOrigin = UNKNOWN


@frozen_dataclass
class Point:
    """A choice of nodes, and its cost.

    Attributes:
        kept: Number of nodes in the higher precision.
        error: Largest relative RMS error of an output.
        sqnr_db: The signal to noise ratio, in dB.
        within: Whether the outputs are good enough.
        measured: Whether the error was measured on the engine, else in emulation.
        latency_ms: Median time of a run; None when not measured.
        metric: Mean of the task metric; None without one.
    """

    kept: int
    error: float
    sqnr_db: float
    within: bool
    measured: bool
    latency_ms: float | None = None
    metric: float | None = None


@frozen_dataclass
class ErrorFacts:
    """Errors of the outputs.

    Attributes:
        goal: The requirement on them, in words.
        as_asked: Largest relative RMS error of the target as the user named it, in 8 bits of the model with every node
            quantized; None when it was not measured.
        measured: The error of the written model on the engine.
        predicted: That in emulation.
        gap_db: Measured over predicted.
        ratio: Measured error over its limit; with a task metric, which sets no limit, None.
        metric: Mean of the task metric of the written model; None without one.
        metric_reference: The reference's mean.
        explained: Whether rounding to the format explains the target's error before any change (at most 3 dB more than
            in emulation); False means that something else is wrong as well.
    """

    goal: str
    as_asked: float | None
    measured: float | None
    predicted: float | None
    gap_db: float | None
    ratio: float | None
    metric: float | None = None
    metric_reference: float | None = None
    explained: bool = True


@frozen_dataclass
class Honoured:
    """The precision that an engine runs, compared with the types of the model.

    Attributes:
        told: Whether the engine reports the types that it computes in.
        regions: Regions it has for nodes that compute.
        narrower: Kept nodes that it computes in a narrower type all the same.
        wider: Lowered nodes that it computes in a wider one.
    """

    told: bool
    regions: int = 0
    narrower: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()


@frozen_dataclass
class PrecisionAlternative:
    """Another remedy, seen to work.

    Attributes:
        name: ``bf16``, ``layer-normalization``, ``scale-query`` or ``clamp-constants``.
        what: Its effect, one line.
        kept: Number of nodes that still have to be kept then.
        error: Largest relative RMS error of an output then, on the engine.
        file: The model; empty when it is the original.
    """

    name: str
    what: str
    kept: int
    error: float
    file: str = ""


@frozen_dataclass(kw_only=True, repr=False)
class PrecisionPlan(Result):
    """A finished search.

    Attributes:
        kept: Names of the nodes that compute in the higher precision, in topological order, with those between them
            that only pass values on. Casts are not counted.
        builds: Models built on the target.
        checks: Runs on the target, or runs of the check command.
        known: Choices answered from the case, at no cost.
        confirmed: Whether the judge has seen that these nodes are enough; only an interrupted search ends without.
        error: Errors of the outputs.
        precision: The lower format.
        higher: The format of the kept nodes.
        asked: The judge: ``engine`` or ``check``.
        mode: How the nodes were chosen.
        minimality: ``one-minimal``: without any one of the kept nodes that round it is not good enough (seen on the
            engine, or in emulation with a clear margin); ``prefix``: one of Polygraphy's modes; else ``budget``.
        nodes: The kept nodes that round, with reasons.
        candidates: Nodes that could have been kept.
        fixed: Nodes that the format has no way to write, which stay in the higher precision.
        low_share: Share of the multiplications of MatMul, Gemm and Conv that are left in the lower format; None when
            their sizes are not known.
        casts: Cast nodes that the written model has more than the original; None when none was written.
        pareto: Choices that were looked at, by number of nodes.
        honoured: The precision that the engine runs, compared with the types; None when its plan was not read.
        settings: The same choice in the words of other tools, by tool.
        remedies: Other remedies.
        next: Commands to run next.
        files: Written files by their role.
        emulated: Runs of the emulation.
        seconds: Wall-clock time.
        interrupted: Whether it was ended early.
        model: Path of the model.
        sha256: Its fingerprint.
        target: The engine, as named.
        deployed: The engine as the written model wants it.
        inputs: ``real`` or ``random``.
        command: The command line.
        accuracy: The task metric of the written file on ``deployed``, over all inputs; None without one.
    """

    kept: tuple[str, ...]
    builds: int
    checks: int
    error: ErrorFacts
    precision: str
    higher: str
    asked: str
    mode: str
    minimality: str
    nodes: tuple[Keeping, ...]
    candidates: int
    fixed: tuple[str, ...]
    low_share: float | None
    casts: int | None
    pareto: tuple[Point, ...] = ()
    honoured: Honoured | None = None
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remedies: tuple[PrecisionAlternative, ...] = ()
    next: tuple[str, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    known: int = 0
    confirmed: bool = True
    emulated: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    model: str = ""
    sha256: str = ""
    target: str = ""
    deployed: str = ""
    inputs: str = ""
    command: str = ""
    accuracy: TaskAccuracy | None = None
    format: str = PRECISION_FORMAT

    @property
    def exit_code(self) -> int:
        """130 where it was interrupted, 4 where the written file misses the goal on all inputs, else 0."""
        missed = self.accuracy is not None and not self.accuracy.enough
        return 130 if self.interrupted else 4 if missed else 0

    @property
    def in_short(self) -> str:
        """The number of kept nodes and their format."""
        kept = count(len(self.kept), "node")
        return f"{kept} in {self.higher}, the rest in {self.precision}: {count(self.builds, 'build')}"

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """A row for each kept node that rounds."""
        return [record(node) for node in self.nodes]
