"""What differs between two models: the nodes to look at, by name, each with the reason in words.

A model that was simplified, converted or exported again is the same model until proven otherwise; names prove nothing.
So nodes are paired first (`tensortriage.model.matching`), and then each pair is compared: operator, attributes, weights
by content, and whether its operands come from paired places.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import AddDefaultAttributesPass

from tensortriage.model.matching import Pairs, Side, align_interface, constant_of, counterpart_of, match
from tensortriage.model.model import Model
from tensortriage.model.specs import value_spec
from tensortriage.values.spec import ValueSpec

_TEXT_LIMIT = 60


class ChangeKind(enum.Enum):
    """What is different about a node."""

    ADDED = "added"
    REMOVED = "removed"
    OP_TYPE = "op-type"
    ATTRIBUTE = "attribute"
    WEIGHT = "weight"
    WIRING = "wiring"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeChange:
    """One difference at one node.

    Attributes:
        kind: What is different.
        node: Name in the target; of a removed node, in the reference.
        reference_node: Name in the reference; empty for an added node.
        op_type: Operator in the target; of a removed node, in the reference.
        reason: The difference as the rest of a sentence that starts with the node.
    """

    kind: ChangeKind
    node: str
    reference_node: str
    op_type: str
    reason: str


@dataclasses.dataclass(frozen=True)
class ModelDiff:
    """The differences between two models.

    Attributes:
        changes: At nodes, in topological order of the target, removed nodes last.
        interface: At inputs, outputs and operator sets, one sentence each.
        pairs: Names of the nodes that correspond, reference to target.
    """

    changes: tuple[NodeChange, ...]
    interface: tuple[str, ...]
    pairs: Mapping[str, str]

    @property
    def is_equal(self) -> bool:
        """Whether the models compute the same, whatever the names inside."""
        return not self.changes and not self.interface

    @property
    def added(self) -> tuple[str, ...]:
        """Names of nodes that only the target has."""
        return tuple(change.node for change in self.changes if change.kind is ChangeKind.ADDED)

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of nodes that only the reference has."""
        return tuple(change.node for change in self.changes if change.kind is ChangeKind.REMOVED)

    @cached_property
    def nodes(self) -> Mapping[str, str]:
        """Name of every changed, added or removed node to all that is different about it."""
        reasons: dict[str, list[str]] = {}
        for change in self.changes:
            reasons.setdefault(change.node, []).append(change.reason)
        return {node: ", ".join(found) for node, found in reasons.items()}


def diff(reference: Model, target: Model) -> ModelDiff:
    """Compare two models.

    Names of nodes and inner values do not count, nor whether a constant is an initializer or a Constant node, nor
    whether an attribute's default is written out. Inputs and outputs
    correspond by name, those of other names in order.

    Args:
        reference: The model taken as right.
        target: The model under suspicion.
    """
    if reference.fingerprint == target.fingerprint:
        names = [node.name for node in reference.graph.nodes if node.op_type != "Constant"]
        return ModelDiff((), (), dict(zip(names, names, strict=True)))
    left, right = Side(_explicit(reference)), Side(_explicit(target))
    borders = align_interface(left, right)
    pairs = match(left, right)
    return ModelDiff(
        tuple(_changes(left, right, pairs)),
        (*_interface(left, right, borders, pairs), *_opset_differences(reference, target)),
        {node.name or "": other.name or "" for node, other in pairs.items()},
    )


def _explicit(model: Model) -> ir.Model:
    """Return a copy of the model in which the defaults of attributes are written out."""
    clone = model.clone().ir
    AddDefaultAttributesPass()(clone)
    return clone


def _changes(left: Side, right: Side, pairs: Pairs) -> Iterator[NodeChange]:
    partner = {other: node for node, other in pairs.items()}
    for node in right.nodes:
        name = node.name or ""
        if node not in partner:
            yield NodeChange(ChangeKind.ADDED, name, "", node.op_type, "is not in the reference's model")
            continue
        old = partner[node]
        for kind, reason in _differences(old, node, left, right, pairs):
            yield NodeChange(kind, name, old.name or "", node.op_type, reason)
    for node in left.nodes:
        if node not in pairs:
            yield NodeChange(
                ChangeKind.REMOVED, node.name or "", node.name or "", node.op_type, "is missing from the target's model"
            )


def _differences(old: ir.Node, new: ir.Node, left: Side, right: Side, pairs: Pairs) -> Iterator[tuple[ChangeKind, str]]:
    if (old.domain, old.op_type) != (new.domain, new.op_type):
        yield ChangeKind.OP_TYPE, f"is {_operator(new)} instead of {_operator(old)}"
    elif left.keys.function(old) != right.keys.function(new):
        yield ChangeKind.OP_TYPE, f"calls another function of the name {_operator(new)}"
    for word in sorted({*old.attributes, *new.attributes}):
        if left.keys.attribute(old, word) != right.keys.attribute(new, word):
            before, after = _attribute(old.attributes.get(word)), _attribute(new.attributes.get(word))
            yield ChangeKind.ATTRIBUTE, f"has {word} {after} instead of {before}"
    before_operands, after_operands = left.operands(old), right.operands(new)
    for index in range(max(len(before_operands), len(after_operands))):
        was = before_operands[index] if index < len(before_operands) else None
        now = after_operands[index] if index < len(after_operands) else None
        found = _operand_difference(index, was, now, left, right, pairs)
        if found is not None:
            yield found


def _operand_difference(
    index: int, was: ir.Value | None, now: ir.Value | None, left: Side, right: Side, pairs: Pairs
) -> tuple[ChangeKind, str] | None:
    if was is None or now is None:
        if was is now:
            return None
        said = [f"{v.name!r}" if v is not None else "nothing" for v in (now, was)]
        return ChangeKind.WIRING, f"reads {said[0]} instead of {said[1]} as operand {index}"
    old_tensor, new_tensor = constant_of(was), constant_of(now)
    if old_tensor is not None and new_tensor is not None:
        if left.content(was) == right.content(now):
            return None
        return ChangeKind.WEIGHT, f"has another constant {now.name!r}: {_compare(old_tensor, new_tensor)}"
    if counterpart_of(was, left, right, pairs) is now:
        return None
    made, partners = now.producer(), set(pairs.values())
    beside_added = made is not None and new_tensor is None and made not in partners
    beside_removed = old_tensor is None and (maker := was.producer()) is not None and maker not in pairs
    if beside_added or beside_removed:
        return None  # the added or removed node tells
    return ChangeKind.WIRING, f"reads {now.name!r} instead of {was.name!r} as operand {index}"


def _operator(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _attribute(attr: ir.Attr | None) -> str:
    if attr is None:
        return "absent"
    if attr.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return "of another body"
    if attr.type == ir.AttributeType.TENSOR:
        return f"of {attr.as_tensor().dtype.name} {attr.as_tensor().shape}"
    text = str(np.float32(attr.as_float())) if attr.type == ir.AttributeType.FLOAT else repr(attr.value)
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "..."


def _compare(old: Any, new: Any) -> str:
    """Say how far two tensors are apart."""
    if old.dtype != new.dtype or tuple(old.shape) != tuple(new.shape):
        return f"{new.dtype.name} {new.shape} instead of {old.dtype.name} {old.shape}"
    before, after = old.numpy(), new.numpy()
    unequal = int(np.count_nonzero(before != after))
    told = f"{unequal} of {before.size} elements differ"
    if before.dtype.kind in "OSUb" or not unequal:
        return told if unequal else "equal but for signs of zeros"
    with np.errstate(all="ignore"):
        largest = float(np.nanmax(np.abs(after.astype(np.float64) - before.astype(np.float64))))
    return f"{told}, by at most {largest:.3g}"


def _interface(left: Side, right: Side, borders: Sequence[tuple[ir.Value, ir.Value]], pairs: Pairs) -> Iterator[str]:
    for what, before, after in (("input", left.inputs, right.inputs), ("output", left.outputs, right.outputs)):
        if len(before) != len(after):
            yield f"there are {len(after)} {what}s instead of {len(before)}"
    partners = set(pairs.values())
    for old, new in borders:
        what = "input" if old in left.inputs else "output"
        said, was = _say(value_spec(new)), _say(value_spec(old))
        if said != was:
            yield f"{what} {said} was {was}"
        maker, made = old.producer(), new.producer()
        if left.content(old) != right.content(new):
            yield f"output {new.name!r} is another constant"
        elif maker in pairs and made in partners and counterpart_of(old, left, right, pairs) is not new:
            yield f"output {new.name!r} is not made by the counterpart of the node that makes {old.name!r}"


def _opset_differences(reference: Model, target: Model) -> Iterator[str]:
    if _opsets(target) != _opsets(reference):
        yield f"operator sets are {_opsets(target)} instead of {_opsets(reference)}"


def _opsets(model: Model) -> dict[str, int]:
    return {domain or "ai.onnx": version for domain, version in sorted(model.ir.opset_imports.items())}


def _say(spec: ValueSpec) -> str:
    dtype = "unknown type" if spec.dtype is None else spec.dtype.label
    shape = "unknown shape" if spec.shape is None else str(list(spec.shape))
    return f"{spec.name!r} ({dtype} {shape})"
