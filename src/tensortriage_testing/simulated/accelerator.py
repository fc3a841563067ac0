"""An engine that computes as accelerators do: healthy by construction, in every freedom that its options name.

A tool that separates faults from rounding must be tried on engines that round otherwise than the CPU and are known to
be right. Nothing here is shared with the arithmetic that TensorTriage judges by: operators that a freedom touches are
written in numpy, all others are ONNX Runtime's. With a fault among the options the accelerator is wrong there, in the
words of `tensortriage_testing.FaultyEngine`::

    # accelerator.py
    from tensortriage_testing import SimulatedAccelerator as Engine

    triage run model.onnx --target script:accelerator.py,precision=fp16,accumulator=fp16,block=32
    triage run model.onnx --target script:accelerator.py,precision=tf32,kind=scale,node=/fc/MatMul,amount=1.02
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from tensortriage.engines.sdk import DType, Model, Options, Plan, Precision, Region, Session, ValueSpec, checked_feed
from tensortriage.testing.sdk import Node, OnnxRuntimeEngine, closed, run_failed
from tensortriage_testing.fault import Fault
from tensortriage_testing.faulty_engine import FaultyEngine, misbehave_in_run, wrong_value
from tensortriage_testing.simulated.formats import SimulatedFormat, flushed, rounded
from tensortriage_testing.simulated.freedoms import RESULTS, Freedoms
from tensortriage_testing.simulated.steps import SimulatedStep, Stretch, Values, divided


class SimulatedAccelerator(FaultyEngine):
    """Numpy and ONNX Runtime with the freedoms of an accelerator, and a planted fault on request."""

    name: ClassVar[str] = "accelerator"
    options: ClassVar[Mapping[str, str]] = {**FaultyEngine.options, **Freedoms.OPTIONS}
    formats: ClassVar[tuple[Precision, ...]] = RESULTS

    def _open(self, original: Model, fault: Fault | None, specs: Mapping[str, ValueSpec], given: Options) -> Session:
        return AcceleratorSession(original, Freedoms.read(given), fault, specs)


class AcceleratorSession:
    """A model that the accelerator runs; made by `SimulatedAccelerator.compile`.

    Raises:
        BuildFailed: When ONNX Runtime refuses the model.
    """

    def __init__(self, model: Model, freedoms: Freedoms, fault: Fault | None, specs: Mapping[str, ValueSpec]) -> None:
        self.inputs: Sequence[ValueSpec] = model.inputs
        self.outputs: Sequence[ValueSpec] = model.outputs
        self._model, self._freedoms, self._fault, self._specs = model, freedoms, fault, specs
        _check(model)
        narrow = freedoms.result is not SimulatedFormat.FP32 or freedoms.flush
        self._stored: dict[str, np.ndarray] = {}
        self._steps = [
            (step, None if step.kernel else Stretch(model, step.nodes, self._weight))
            for step in divided(model, freedoms, specs, apart=fault.node if fault else "", narrow=narrow)
        ]
        self._previous: np.ndarray | None = None

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once.

        Raises:
            DataError: When the feed does not fit.
            RunFailed: When an operator cannot be computed.
            EngineError: When that is the fault.
        """
        if not self._steps:
            raise closed("accelerator")
        fault = self._fault if self._fault is not None and self._fault.shows_in_run() else None
        if fault is not None:
            misbehave_in_run(fault)
        values: Values = {name: self._store(array) for name, array in checked_feed(feed, self.inputs).items()}
        for step, stretch in self._steps:
            try:
                found = self._computed(step, values) if stretch is None else stretch.run(values)
            except Exception as error:  # numpy and ONNX Runtime raise many kinds
                raise run_failed("accelerator", error) from error
            values.update((name, array if step.wide else self._store(array)) for name, array in found.items())
            if fault is not None and step.nodes[0].name == fault.node:
                self._spoil(fault, step.nodes[0], values)
        return {spec.name: np.array(self._read(spec.name, values), order="C") for spec in self.outputs}

    def _computed(self, step: SimulatedStep, values: Values) -> Values:
        node = step.nodes[0]
        assert step.kernel is not None
        with np.errstate(all="ignore"):
            made = np.asarray(step.kernel([self._read(name, values) if name else None for name in node.inputs]))
            known = self._specs[node.outputs[0]].dtype
            return {node.outputs[0]: made if step.wide or known is None else made.astype(known.numpy)}

    def _spoil(self, fault: Fault, node: Node, values: Values) -> None:
        value = fault.value_of(node)
        right = values[value]
        if fault.shows_as(DType.from_numpy(right.dtype)):
            operands = [self._read(name, values) if name else None for name in node.inputs]
            values[value] = self._store(wrong_value(fault, node, operands, right, self._previous))
            self._previous = right.copy()

    def _read(self, name: str, values: Values) -> np.ndarray:
        return values[name] if name in values else self._weight(name)

    def _weight(self, name: str) -> np.ndarray:
        if name not in self._stored:
            self._stored[name] = self._store(np.asarray(self._model.graph.weight(name)))
        return self._stored[name]

    def _store(self, array: np.ndarray) -> np.ndarray:
        """Return a value as it lies in memory; only float32 ones change."""
        if not isinstance(array, np.ndarray) or array.dtype != np.float32:
            return array
        if self._freedoms.result is not SimulatedFormat.FP32:
            array = rounded(array, self._freedoms.result)
        return flushed(array, self._freedoms.result) if self._freedoms.flush else array

    def plan(self) -> Plan | None:
        """Return one region per node; element-wise nodes that are rounded once are one."""
        regions: list[Region] = []
        chain: list[str] = []
        for step, stretch in self._steps:
            names = [node.name for node in step.nodes]
            if stretch is not None:
                regions += [Region(name, (name,)) for name in names]
                continue
            chain += names
            if not step.wide:
                regions.append(Region("+".join(chain), tuple(chain), kind=step.nodes[-1].op_type))
                chain = []
        return Plan(tuple(regions))

    def close(self) -> None:
        """Release the weights."""
        self._steps = []
        self._stored = {}


def _check(model: Model) -> None:
    """Let ONNX Runtime build the whole model, so that an invalid one is refused here and not in a run."""
    with tempfile.TemporaryDirectory(prefix="triage-accelerator-") as folder:
        OnnxRuntimeEngine().compile(model.save(Path(folder) / "model.onnx"), {"optimization": "none"}).close()
