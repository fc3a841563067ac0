"""An engine that is right except for a planted fault: ONNX Runtime with one wrong operator.

A tool that claims to find the faulty operator of an engine must be tried on engines whose faulty operator is known. The
fault is keyed by node name, and names survive cuts and explosions, so a reduced model misbehaves exactly when it still
holds the node (and, for a fault of a fusion, its neighbour). Every run computes the right values first; the value at
the fault's place is changed in numpy and put back into a second run, so a kind of fault is a numpy function of a few
lines and all else stays bit for bit the result of ONNX Runtime without optimizations.

As a script engine, which keeps crashes and hangs in a process of their own:

    from tensortriage_testing import Fault, FaultyEngine

    class Engine(FaultyEngine):
        fault = Fault("scale", node="/layer.3/Softmax", amount=1.05)

or with the fault in the engine spec: ``script:faulty.py,kind=scale,node=/layer.3/Softmax,amount=1.05``.
"""

import dataclasses
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    Availability,
    BuildFailed,
    DType,
    Limits,
    Model,
    ModelError,
    OffersLadder,
    Options,
    Plan,
    Precision,
    Region,
    ReportsPrecision,
    Session,
    UsageError,
    ValueSpec,
    mark_outputs,
    read_options,
    value_specs,
)
from tensortriage.testing.sdk import (
    INJECT_PREFIX,
    USE_PREFIX,
    EngineOutOfMemory,
    Node,
    OnnxRuntimeEngine,
    holder_of,
    inject,
    round_results,
)
from tensortriage_testing import fault_numbers, fault_operators
from tensortriage_testing.branching_session import BranchingSession
from tensortriage_testing.fault import LEVELS, Fault, FaultKind
from tensortriage_testing.fault_numbers import Site

_BASE_OPTIONS = {"optimization": "none"}

_NUMBERS: Mapping[FaultKind, Callable[[Site], np.ndarray]] = {
    kind: getattr(module, kind.name.lower())
    for kind in FaultKind
    for module in (fault_numbers, fault_operators)
    if hasattr(module, kind.name.lower())
}
"""Kinds that leave an answer: each is a function of its name."""


class FaultyEngine(ReportsPrecision, OffersLadder):
    """ONNX Runtime, right but for `fault`; subclass it and set `fault`, or give the fault as options.

    Attributes:
        fault: The fault of every compile that names none in its options; None for a healthy engine.
        formats: Accepted values of the option ``precision``.
    """

    name: ClassVar[str] = "faulty"
    options: ClassVar[Mapping[str, str]] = {
        "kind": "kind of fault: " + ", ".join(kind.value for kind in FaultKind),
        "node": "name of the ONNX node whose result is wrong, perhaps in a branch of an If",
        "amount": "how much, in the unit of the kind",
        "output": "which of the node's outputs (default 0)",
        "fused_with": "nodes joined with + without which, or with a marked value between, the fault does not show",
        "from_level": "level of optimization from which the fault shows (default: every one)",
        "optimization": "level: " + ", ".join(LEVELS) + " (default all); changes nothing but whether the fault shows",
        "plan": "false for an engine that does not report its plan (default true)",
        "dtype": "element type of the value that the fault needs to show",
        "build_chance": "share of builds that have the fault (default 1)",
        "run_chance": "share of runs that have it (default 1)",
        "length": "size of an axis of the result, or integer operand, without which the fault does not show in a run",
        "seed": "for kinds that draw numbers",
        "precision": "round every result to fp16, bf16, fp8e4m3 or fp8e5m2 as well (default fp32: no rounding)",
    }
    fault: ClassVar[Fault | None] = None
    formats: ClassVar[tuple[Precision, ...]] = (
        Precision.FP32,
        Precision.FP16,
        Precision.BF16,
        Precision.FP8E4M3,
        Precision.FP8E5M2,
    )

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._base = OnnxRuntimeEngine(limits=self.limits)

    def availability(self) -> Availability:
        """Return whether ONNX Runtime is usable."""
        return self._base.availability()

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision that results are rounded to."""
        return self._precision(read_options(options, self.options)).value

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build a model, with the fault if it shows there.

        Raises:
            UsageError: For an unknown option, or a fault that cannot be planted at that node.
            BuildFailed: When ONNX Runtime refuses the model, or that is the fault.
        """
        given = read_options(options, self.options)
        fault = self._fault(given)
        self._precision(given)
        try:
            original = Model.load(model)
        except ModelError as error:
            raise BuildFailed(f"the model cannot be read: {error.message}", slug="build-failed") from error
        return self._build(original, fault, given)

    def _build(self, original: Model, fault: Fault | None, given: Options) -> Session:
        if fault is not None and (holder := holder_of(original, fault.node)):
            return BranchingSession(self._base, original, holder, lambda taken: self._build(taken, fault, given))
        specs = value_specs(original)
        if fault is not None and not (
            fault.shows_in(original, specs)
            and random.random() < fault.build_chance
            and LEVELS.index(fault.from_level or LEVELS[0]) <= LEVELS.index(_level(given))
        ):
            fault = None
        if fault is not None:
            _misbehave_in_build(fault)
        return self._open(original, fault, specs, given)

    def _open(self, original: Model, fault: Fault | None, specs: Mapping[str, ValueSpec], given: Options) -> Session:
        tells = given.boolean("plan", default=True)
        return FaultySession(self._base, original, fault, self._precision(given), specs, tells=tells)

    def _precision(self, given: Options) -> Precision:
        return given.precision("precision", self.formats, Precision.FP32)

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the levels of optimization up to the requested one, from safe to aggressive."""
        requested = LEVELS.index(_level(read_options(options, self.options)))
        return [(f"optimization={level}", {**options, "optimization": level}) for level in LEVELS[: requested + 1]]

    def _fault(self, given: Options) -> Fault | None:
        fields = {key: given.text(key) for key in ("kind", "node", "fused_with", "from_level", "dtype") if key in given}
        numbers = {
            key: _number(key, given.text(key)) for key in ("amount", "build_chance", "run_chance") if key in given
        }
        wholes = {key: given.integer(key, 0) for key in ("output", "seed", "length") if key in given}
        changes = {**fields, **numbers, **wholes}
        if self.fault is not None:
            return dataclasses.replace(self.fault, **changes)  # type: ignore[arg-type]  # keys are Fault's fields
        if not changes:
            return None
        if "kind" not in changes or "node" not in changes:
            raise UsageError("a fault needs kind and node", slug="fault-unknown", cure="add kind=scale,node=NAME")
        return Fault(**changes)  # type: ignore[arg-type]  # as above


class FaultySession:
    """A model that ONNX Runtime runs right, with one value made wrong on the way; made by `FaultyEngine.compile`."""

    def __init__(
        self,
        base: OnnxRuntimeEngine,
        original: Model,
        fault: Fault | None,
        precision: Precision,
        specs: Mapping[str, ValueSpec],
        *,
        tells: bool = True,
    ) -> None:
        self.inputs: Sequence[ValueSpec] = original.inputs
        self.outputs: Sequence[ValueSpec] = original.outputs
        self._base = base
        self._original = original
        self._fault = fault
        self._precision = precision
        self._tells = tells
        self._previous: np.ndarray | None = None
        self._node = original.graph.node(fault.node) if fault else None
        self._value = fault.value_of(self._node) if fault and self._node else ""
        self._model = self._rounded(specs)
        self._folder = tempfile.TemporaryDirectory(prefix="triage-faulty-")
        try:
            self._right = self._compile(mark_outputs(self._model, self._watched()), "right.onnx")
        except BaseException:
            self._folder.cleanup()
            raise
        self._injecting: Session | None = None
        self._injected_shape: tuple[int, ...] = ()

    def _rounded(self, specs: Mapping[str, ValueSpec]) -> Model:
        if self._precision is Precision.FP32:
            return self._original
        return round_results(self._original, self._precision, specs=specs)

    def _watched(self) -> list[str]:
        """Return the values to read to make the value wrong: itself and the operands that other nodes compute."""
        if self._node is None:
            return []
        graph = self._original.graph
        computed = [name for name in self._node.inputs if graph.producer(name) and name not in graph.constants]
        return [self._value, *computed]

    def _compile(self, model: Model, name: str) -> Session:
        return self._base.compile(model.save(Path(self._folder.name) / name), _BASE_OPTIONS)

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once: right, or wrong in the planted way.

        Raises:
            DataError: When the feed does not fit.
            EngineError: When ONNX Runtime fails, or that is the fault.
        """
        if self._fault is None or not self._fault.shows_in_run():
            found = self._right.run(feed)
            return {spec.name: found[spec.name] for spec in self.outputs}
        if self._fault.kind not in _NUMBERS:
            misbehave_in_run(self._fault)
        found = dict(self._right.run(feed))
        right, operands = found[self._value], self._operands({**feed, **found})
        if self._fault.shows_as(DType.from_numpy(right.dtype)) and self._fault.shows_among(right, operands):
            wrong = self._wrong(self._fault, found, feed)
            found[self._value] = wrong
            if self._original.graph.consumers(self._value):
                found.update(self._rerun(feed, wrong))
        return {spec.name: found[spec.name] for spec in self.outputs}

    def _rerun(self, feed: Mapping[str, np.ndarray], wrong: np.ndarray) -> Mapping[str, np.ndarray]:
        """Run with the wrong value in place of the node's result."""
        if self._injecting is not None and self._injected_shape != wrong.shape:
            self._injecting.close()
            self._injecting = None
        if self._injecting is None:
            self._injected_shape = wrong.shape
            specs = value_specs(self._original, {self._value: ValueSpec.of(self._value, wrong)})
            self._injecting = self._compile(inject(self._model, [self._value], specs=specs), "injecting.onnx")
        switched = {INJECT_PREFIX + self._value: wrong, USE_PREFIX + self._value: np.array(True)}
        return self._injecting.run({**feed, **switched})

    def _wrong(self, fault: Fault, found: Mapping[str, np.ndarray], feed: Mapping[str, np.ndarray]) -> np.ndarray:
        node, right = self._original.graph.node(fault.node), found[self._value]
        wrong = wrong_value(fault, node, self._operands({**feed, **found}), right, self._previous)
        self._previous = right.copy()
        if self._precision is not Precision.FP32 and right.dtype == np.float32:
            wrong = wrong.astype(self._precision.dtype.numpy).astype(np.float32)
        return wrong

    def _operands(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray | None]:
        """Return the inputs of the faulty node; None for omitted ones."""
        graph, node = self._original.graph, self._node
        names = node.inputs if node else ()
        return [graph.weight(name) if name in graph.constants else arrays.get(name) for name in names]

    def plan(self) -> Plan | None:
        """Return one region per node; the nodes of a fusion fault that shows are one; None with ``plan=false``."""
        if not self._tells:
            return None
        nodes = self._original.graph.nodes
        together = {*self._fault.fused} if self._fault and self._fault.fused_with else set()
        names = tuple(node.name for node in nodes if node.name in together)
        regions = [Region(node.name, (node.name,), kind=node.op_type) for node in nodes if node.name not in names[:-1]]
        fused = Region("+".join(names), names, kind="Fused")
        return Plan(tuple(fused if names and region.name == names[-1] else region for region in regions))

    def close(self) -> None:
        """Release the session and its temporary files."""
        self._right.close()
        if self._injecting is not None:
            self._injecting.close()
        self._folder.cleanup()


def _level(given: Options) -> str:
    return given.choice("optimization", {level: level for level in LEVELS}, LEVELS[-1])


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"option {key}={text} is not a number", slug="engine-option-value") from None


def _misbehave_in_build(fault: Fault) -> None:
    if fault.kind is FaultKind.BUILD_FAILURE:
        raise BuildFailed(f"no implementation for node '{fault.node}'", slug="build-failed")
    if fault.kind is FaultKind.BUILD_CRASH:
        os.abort()
    if fault.kind is FaultKind.BUILD_HANG:
        time.sleep(3600)


def wrong_value(
    fault: Fault,
    node: Node,
    operands: Sequence[np.ndarray | None],
    right: np.ndarray,
    previous: np.ndarray | None,
) -> np.ndarray:
    """Return a fault of numbers applied to a node's right value.

    Args:
        fault: The fault; of a kind that leaves an answer.
        node: The node.
        operands: Values of its inputs; None for omitted ones.
        right: Its right result.
        previous: Its result in the run before; None in the first.
    """
    site = Site(right, previous, operands, node.op_type, node.attributes, fault.amount, fault.seed)
    return fault_numbers.apply(_NUMBERS[FaultKind(fault.kind)], site)


def misbehave_in_run(fault: Fault) -> None:
    """Crash, hang or run out of memory, if that is the fault.

    Raises:
        EngineOutOfMemory: For the fault ``out-of-memory``.
    """
    if fault.kind is FaultKind.CRASH:
        os.abort()
    if fault.kind is FaultKind.HANG:
        time.sleep(3600)
    if fault.kind is FaultKind.OUT_OF_MEMORY:
        raise EngineOutOfMemory(f"node '{fault.node}' ran out of memory", slug="engine-out-of-memory")
