"""Results of several implementations of one op, all fed with the reference's operands, and their agreement.

Two engines are two witnesses only if they share no kernels: ONNX Runtime at two levels is one witness, and so are
engines that run in it. Independent are our own float64 kernels, those of the onnx package, OpenVINO, ONNX Runtime, and
whatever else is the target. A reference of unknown kernels, a program, may run those of any of them: the only family
that gives its numbers is no second witness.
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import within_limit
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, ROUNDED, evaluation
from tensortriage.envelope.floors import floors_of
from tensortriage.errors import EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed

REFERENCE = "reference"
"""Name of the reference's own result among the opinions."""

FLOAT64 = "float64"
"""Name of our own kernels: computed in float64, rounded as the model's types prescribe."""

ONNX = "the onnx package"
"""Name of the reference implementations of the onnx package."""

ONNX_KERNELS = evaluation({"kernels": "onnx"})
OPENVINO = EngineSpec("openvino", {"precision": "fp32"})

_FAMILIES = {"onnxruntime": "onnxruntime", "emulate": "onnxruntime", "openvino": "openvino", "float64": FLOAT64}


@frozen_dataclass
class Opinion:
    """Results of several implementations for one op.

    Attributes:
        value: The op's result.
        bound: Relative error that healthy engines may make there.
        results: Name of an implementation to its result; `REFERENCE` is the reference's.
        families: The family of kernels that each of them runs; one that is not listed is a family of its own.
        floor: Noise floor of healthy engines there.
    """

    value: str
    bound: float
    results: Mapping[str, np.ndarray]
    families: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: float = 0.0

    def error(self, one: str, other: str) -> float:
        """Return the relative error of one result against another; inf when one is missing."""
        if one not in self.results or other not in self.results:
            return math.inf
        reference, target = self.results[other], self.results[one]
        return error_of(measure(reference, target)) if reference.shape == target.shape else math.inf

    def agree(self, one: str, other: str) -> bool:
        """Return whether two results agree within the difference of healthy engines."""
        return within_limit(self.error(one, other), self.bound)

    def family(self, name: str) -> str:
        """Return the family of kernels that an implementation runs."""
        return self.families.get(name, name)

    @property
    def witnesses(self) -> tuple[str, ...]:
        """Implementations that share no kernels with the reference."""
        own = self.family(REFERENCE)
        return tuple(name for name in self.results if name != REFERENCE and self.family(name) != own)

    @property
    def against(self) -> tuple[str, ...]:
        """Witnesses that contradict the reference and are confirmed by another, independent one."""
        dissent = [name for name in self.witnesses if not self.agree(name, REFERENCE)]
        pairs = [pair for pair in combinations(dissent, 2) if self.family(pair[0]) != self.family(pair[1])]
        return tuple(dict.fromkeys(name for pair in pairs if self.agree(*pair) for name in pair))

    @property
    def reference_is_alone(self) -> bool:
        """Whether two independent witnesses agree with each other, and none with the reference but its own code."""
        return bool(self.against) and not set(self.agreeing).difference(self.same_code)

    @property
    def agreeing(self) -> tuple[str, ...]:
        """Witnesses that agree with the reference."""
        return tuple(name for name in self.witnesses if self.agree(name, REFERENCE))

    @property
    def same_code(self) -> tuple[str, ...]:
        """Witnesses whose kernels a reference of unknown ones may run: those of the only family that agrees with it."""
        one = len({self.family(name) for name in self.agreeing}) == 1
        return self.agreeing if one and self.family(REFERENCE) not in _FAMILIES.values() else ()

    @property
    def float64_is_alone(self) -> bool:
        """Whether an independent witness sides with the reference against float64, and none with float64."""
        others = [name for name in self.witnesses if self.family(name) != self.family(FLOAT64)]
        return (
            self.disputed
            and any(self.agree(name, REFERENCE) for name in others)
            and not any(self.agree(name, FLOAT64) for name in others)
        )

    @property
    def disputed(self) -> bool:
        """Whether the reference and float64 disagree."""
        return FLOAT64 in self.results and not self.agree(REFERENCE, FLOAT64)


def opinions(inv: Investigation, feed: Feed, values: Sequence[str]) -> list[Opinion]:
    """Run the ops that make given values on every implementation, in one small model."""
    nodes = [inv.model.graph.producer(value) for value in values]
    names = list(dict.fromkeys(node.name for node in nodes if node is not None))
    if not names:
        return []
    operands = golden_operands(inv, feed)
    golden, ops = operands.golden, operands.apart([[name] for name in names])
    what = f"{len(names)} disputed ops"
    floors = floors_of(inv.setting(ops.feed, ops.model), ops.values, specs=operands.specs, what=what)
    inv.lab.progress(f"running {len(names)} ops on other engines")
    families = {REFERENCE: family_of(inv.question.reference), FLOAT64: FLOAT64}
    answers: dict[str, Mapping[str, np.ndarray]] = {}
    for word, spec in independent_engines(inv).items():
        families[word] = ONNX if word == ONNX else family_of(spec)
        with contextlib.suppress(EngineError, UsageError):
            answers[word] = inv.lab.outputs(spec, ops.model, ops.feed)
    return [
        Opinion(
            value,
            floors.in_fp32(value).error,
            {
                REFERENCE: np.asarray(golden[value]),
                **{word: found[value] for word, found in answers.items() if value in found},
            },
            families,
            floors.fp32.get(value, 0.0),
        )
        for value in values
        if value in golden
    ]


def independent_engines(inv: Investigation) -> dict[str, EngineSpec]:
    """Return the witnesses besides the reference: every independent implementation available here."""
    reference, target = inv.question.reference, inv.question.target
    found = {FLOAT64: CORRECTLY_ROUNDED, ONNX: ONNX_KERNELS}
    if family_of(reference) != "onnxruntime":
        found[str(PLAIN)] = PLAIN
    if inv.precision not in ROUNDED and family_of(target) != family_of(reference):
        found[str(target)] = target
    if "openvino" not in {family_of(reference), family_of(target)} and resolve(OPENVINO).engine.availability().usable:
        found["OpenVINO"] = OPENVINO
    return found


def family_of(spec: EngineSpec) -> str:
    """Return the family of kernels that an engine runs; every unknown engine has its own."""
    return _FAMILIES.get(spec.name, str(spec))
