"""How a NaN or Inf came to be: the rule of arithmetic, element by element, and other engines with the same result.

The operands are those that the target itself had: an op may make a NaN of wrong operands and be right. So the op is run
once more, alone, on exactly these operands, by the reference and in float64. If they make it too, the rule holds for
everybody and the operands are to blame; if they do not, the op is.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.nonfinite.arithmetic_rules import Rule, rule_of
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import Excess, largest_number
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.runs.lab import FLOAT64
from tensortriage.values.dtype import DType
from tensortriage.values.store import TensorStore
from tensortriage.values.text import enumeration, magnitude

MOST_NODES = 4
"""Origins whose operands are examined."""


@frozen_dataclass
class Provenance:
    """The origin of a value's non-finite elements.

    Attributes:
        rule: The rule by which the first of them came to be.
        elements: How many there are that the reference does not have.
        size: Elements of the value.
        reference_too: Whether the reference makes that element so of the same operands; None when not known.
        float64_too: Whether float64 does.
        infinite: Whether the reference's element is Inf or -Inf.
    """

    value: str
    rule: Rule
    elements: int
    size: int
    reference_too: bool | None = None
    float64_too: bool | None = None
    infinite: bool = False

    @property
    def sentence(self) -> str:
        """All of it in words, without full stop."""
        more = f" ({self.elements} of {self.size} elements are not finite)" if self.elements > 1 else ""
        return f"{self.rule.sentence}{more}{self._others}"

    @property
    def _others(self) -> str:
        known = {"the reference": self.reference_too, "float64": self.float64_too}
        makes = [who for who, too in known.items() if too]
        stays = [who for who, too in known.items() if too is False]
        parts = [f"{enumeration(makes)} make{'s' * (len(makes) == 1)} it too of the same operands"] if makes else []
        ending = "s" * (len(stays) == 1)
        right = f"make{ending} Inf or -Inf of" if self.infinite else f"stay{ending} finite on"
        parts += [f"{enumeration(stays)} {right} the same operands"] if stays else []
        return "; " + ", ".join(parts) if parts else ""

    @property
    def facts(self) -> Mapping[str, object]:
        """The same as figures."""
        return {
            "rule": self.rule.rule,
            "index": list(self.rule.index),
            "operands": dict(self.rule.operands),
            "elements": self.elements,
            "reference_too": self.reference_too,
            "float64_too": self.float64_too,
        }


def provenance(
    inv: Investigation, evidence: Evidence, nodes: Sequence[Node], *, spec: EngineSpec, model: Model
) -> Mapping[str, Provenance]:
    """Return the cause of non-finite results by node name; unexplained nodes are absent.

    Args:
        inv: The investigation.
        evidence: The evidence so far; results of ops alone serve where the run of the whole model stays finite.
        nodes: Origins, at most `MOST_NODES` are looked at.
        spec: The engine of that run.
        model: The model that it runs; the names are those of ``inv.model``.
    """
    nodes = nodes[:MOST_NODES]
    feed = evidence.feed
    seen = arrays_in_context(inv, feed, nodes, spec=spec, model=model)
    golden = inv.golden.of(feed)
    found: dict[str, Provenance] = {}
    for node in nodes:
        value = next((name for name in node.outputs if name in golden), None)
        if value is None:
            continue
        operands, result = {name: seen.get(name) for name in node.inputs}, seen.get(value)
        reference = np.asarray(golden[value])
        if result is None or not mismatches(reference, result).any():
            if evidence.local is None or value not in evidence.local.arrays:
                continue
            operands = {name: np.asarray(golden[name]) if name in golden else None for name in node.inputs}
            result = np.asarray(evidence.local.arrays[value])
        where = mismatches(reference, result)
        if not where.any():
            continue
        for name in node.inputs:
            operands[name] = known_operand(inv, feed, name) if operands.get(name) is None else operands[name]
        index = tuple(int(i) for i in np.argwhere(where)[0])
        limit = largest_number(inv.precision)
        rule = rule_of(node, [operands.get(name) for name in node.inputs], result, index, largest=limit)
        others = {
            word: None
            if (made := made_alone(inv, feed, node, who, operands, index)) is None
            else alike(made, result[index])
            for word, who in (("reference_too", inv.question.reference), ("float64_too", FLOAT64))
        }
        infinite = bool(np.isinf(reference[index]))
        found[node.name] = Provenance(value, rule, int(where.sum()), where.size, **others, infinite=infinite)
    return found


def mismatches(reference: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return where the target is not finite though the reference is, or NaN where that is infinite."""
    if reference.shape != target.shape or not DType.from_numpy(target.dtype).is_float:
        return np.zeros(target.shape, np.bool_)
    with np.errstate(all="ignore"):
        ours, theirs = (array.astype(np.float64) for array in (reference, target))
    return np.asarray((np.isfinite(ours) & ~np.isfinite(theirs)) | (np.isnan(theirs) & np.isinf(ours)))


def alike(one: float, other: float) -> bool:
    """Return whether two numbers are NaN both, or infinite both."""
    return bool(np.isnan(one) == np.isnan(other) and np.isinf(one) == np.isinf(other))


def arrays_in_context(
    inv: Investigation, feed: Feed, nodes: Sequence[Node], *, spec: EngineSpec, model: Model
) -> dict[str, np.ndarray]:
    """Return operands and results of given nodes from one run of the whole model; empty when the engine fails."""
    wanted = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    values = [value for value in inv.question.values if value in wanted]
    try:
        shown = inv.lab.values(spec, model, feed, values, specs=inv.golden.specs(feed))
        return {name: np.asarray(shown[name]) for name in shown.names()}
    except EngineError:
        return {}


def known_operand(inv: Investigation, feed: Feed, name: str) -> np.ndarray | None:
    """Return an operand that no op computes: a graph input, or a constant as the target's format holds it."""
    if name in feed.tensors:
        array = feed.tensors[name]
    elif name in inv.model.graph.constants:
        array = inv.model.graph.weight(name)
    else:
        return None
    kind = inv.precision.dtype
    if kind.is_float and kind.bits < 32 and DType.from_numpy(array.dtype) in (DType.FLOAT, DType.DOUBLE):
        with np.errstate(over="ignore"):
            return np.asarray(array.astype(kind.numpy).astype(array.dtype))
    return array


def made_alone(
    inv: Investigation,
    feed: Feed,
    node: Node,
    spec: EngineSpec,
    operands: Mapping[str, np.ndarray | None],
    index: tuple[int, ...],
) -> float | None:
    """Return an element that an engine makes of the same operands; None when it cannot be asked."""
    try:
        alone = golden_operands(inv, feed).apart([[node.name]])
        tensors = {}
        for name, golden in alone.feed.tensors.items():
            given = operands.get(alone.reads[name])
            tensors[name] = np.asarray(golden if given is None else given).astype(golden.dtype)
        outputs = inv.lab.outputs(spec, alone.model, dataclasses.replace(alone.feed, tensors=tensors))
    except (TriageError, KeyError):
        return None
    result = next((outputs[name] for name in node.outputs if name in outputs), None)
    if result is None or len(index) != result.ndim:
        return None
    return float(result[index])


def explain(
    inv: Investigation, node: Node, feed: Feed, excess: Sequence[Excess], how: Provenance | None = None
) -> Culprit:
    """Return a node as culprit with the magnitude that does not fit, or the rule and operands that made the NaN."""
    golden = inv.golden.of(feed)
    limit = largest_number(inv.precision)
    value = next((name for name in node.outputs if name in golden), node.outputs[0])
    mine = [item for item in excess if item.node == node.name]
    word = inv.precision.value
    if mine and all(item.vanishes for item in mine):
        item = next((item for item in mine if item.constant), mine[0])
        what = f"constant '{item.value}'" if item.constant else "its result"
        reason = f"{what}, of {magnitude(item.magnitude)} at most, {item.vanishes} in {word}"
        return Culprit(node.name, node.op_type, value, reason=reason)
    mine = [item for item in mine if not item.vanishes]
    if any(item.constant for item in mine):
        item = next(item for item in mine if item.constant)
        reason = (
            f"constant '{item.value}' has magnitude {magnitude(item.magnitude)}, beyond {word}'s largest number "
            f"{magnitude(limit, 6)}"
        )
    elif mine:
        reason = (
            f"{mine[0].what} reaches {magnitude(mine[0].magnitude)}, beyond {word}'s largest number "
            f"{magnitude(limit, 6)}"
        )
        reason += f", e.g. {how.rule.sentence}" if how is not None and how.rule.rule == "overflow" else ""
    elif how is not None:
        lost = (
            f"constant '{item.value}' of {item.op_type} '{item.node}', of {magnitude(item.magnitude)} at most, "
            f"{item.vanishes} in {word}"
            for item in excess
            if item.vanishes and item.constant
        )
        reason = "; ".join([f"makes NaN or Inf: {how.sentence}", *lost])
    elif value in golden and has_nonfinite(golden[value]):
        reason = (
            "has NaN or Inf in different places than the reference, which makes some of the same operands: "
            + operands(node, golden, feed, inv.model.graph)
        )
    else:
        reason = f"turns finite inputs into NaN or Inf: {operands(node, golden, feed, inv.model.graph)}"
    return Culprit(node.name, node.op_type, value, local_error=math.inf, reason=reason)


def has_nonfinite(array: np.ndarray) -> bool:
    """Return whether a floating-point array holds NaN or Inf."""
    floats = DType.from_numpy(array.dtype).is_float
    return floats and not bool(np.isfinite(np.asarray(array, np.float64)).all())


def operands(node: Node, golden: TensorStore, feed: Feed, graph: Graph) -> str:
    """Return the ranges of a node's operands in the reference run, for a sentence."""
    words = []
    for name in node.inputs:
        array = golden[name] if name in golden else feed.tensors.get(name)
        if array is None and name in graph.constants:
            array = graph.weight(name)
        if array is not None and array.size and DType.from_numpy(array.dtype).is_float:
            words.append(f"'{name}' in [{magnitude(float(np.min(array)))}, {magnitude(float(np.max(array)))}]")
    return ", ".join(words) or "no floating-point operand"
