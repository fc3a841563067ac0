"""Differences between two models: the nodes to look at, by name, each with the reason in words.

A model that was simplified, converted or exported again is the same model until proven otherwise; names prove nothing.
So nodes are paired first (`tensortriage.model.similarity.node_matching`), and then each pair is compared: operator,
attributes, weights by content, and whether its operands come from paired places.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import AddDefaultAttributesPass

from tensortriage.model.ir.specs import value_spec
from tensortriage.model.model import Model
from tensortriage.model.similarity.attribute_changes import attribute_change, training_words
from tensortriage.model.similarity.changes import ChangeKind, NodeChange, NodeDifference
from tensortriage.model.similarity.node_matching import (
    Pairs,
    Side,
    align_interface,
    constant_of,
    counterpart_of,
    is_beside_unpaired,
    match,
    values_at,
)
from tensortriage.model.similarity.structural_hash import tensor_key
from tensortriage.model.similarity.weight_changes import weight_change
from tensortriage.model.transforms.rewrite_helpers import is_standard, trains
from tensortriage.values.grouping import grouped
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import magnitude


@dataclasses.dataclass(frozen=True)
class ModelDiff:
    """The differences between two models.

    Attributes:
        changes: At nodes, in topological order of the target, removed nodes last.
        interface: At inputs, outputs and operator sets, one sentence each.
        pairs: Names of the nodes that correspond, reference to target.
        values: Names of the values at the same place, target to reference, graph inputs included.
    """

    changes: tuple[NodeChange, ...]
    interface: tuple[str, ...]
    pairs: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def is_equal(self) -> bool:
        """Whether the models compute the same, under any names."""
        return not self.changes and not self.interface

    @property
    def added(self) -> tuple[str, ...]:
        """Names of nodes that only the target has."""
        return tuple(change.node for change in self.changes if change.kind is ChangeKind.ADDED)

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of nodes that only the reference has."""
        return tuple(change.node for change in self.changes if change.kind is ChangeKind.REMOVED)

    @functools.cached_property
    def at(self) -> Mapping[str, tuple[NodeChange, ...]]:
        """Name of every changed, added or removed node to its difference, rounded constants included."""
        found = grouped((change.node, change) for change in self.changes)
        return {node: tuple(changes) for node, changes in found.items()}

    @property
    def nodes(self) -> Mapping[str, str]:
        """Name of every changed, added or removed node to all that is different about it, in words.

        Constants that are rounded in another way are no difference.
        """
        changes = (change for change in self.changes if change.kind is not ChangeKind.WEIGHT_ROUNDED)
        reasons = grouped((change.node, change.reason) for change in changes)
        return {node: ", ".join(found) for node, found in reasons.items()}


def diff(reference: Model, target: Model) -> ModelDiff:
    """Compare two models.

    Names of nodes and inner values do not count, nor whether a constant is an initializer or a Constant node, nor
    whether an attribute's default is written out. Inputs and outputs
    correspond by name, those of other names in order.

    Args:
        reference: The model assumed to be right.
        target: The model under suspicion.
    """
    if reference.fingerprint == target.fingerprint:
        names = [node.name for node in reference.graph.nodes if node.op_type != "Constant"]
        values = [*(spec.name for spec in reference.inputs), *reference.graph.values]
        return ModelDiff((), (), dict(zip(names, names, strict=True)), dict(zip(values, values, strict=True)))
    left, right = Side(_explicit(reference)), Side(_explicit(target))
    borders = align_interface(left, right)
    pairs = match(left, right)
    return ModelDiff(
        tuple(_changes(left, right, pairs)),
        (*_interface(left, right, borders, pairs), *_opset_differences(reference, target)),
        {node.name or "": other.name or "" for node, other in pairs.items()},
        {new.name or "": old.name or "" for new, old in values_at(left, right, pairs).items()},
    )


def _explicit(model: Model) -> ir.Model:
    """Return a copy of the model in which the defaults of attributes are written out."""
    clone = model.clone().ir
    AddDefaultAttributesPass()(clone)
    return clone


def _changes(left: Side, right: Side, pairs: Pairs) -> Iterator[NodeChange]:
    partner = {other: node for node, other in pairs.items()}
    owner = _Owners(left)
    for node in right.nodes:
        name = node.name or ""
        if node not in partner:
            alone = "is not in the reference's model"
            kind = ChangeKind.TRAINING_MODE if trains(node) else ChangeKind.ADDED
            reason = f"{training_words(node)}; it {alone}" if trains(node) else alone
            yield NodeChange(kind, name, "", node.op_type, reason)
            continue
        old = partner[node]
        for change in _differences(old, node, left, right, pairs, owner):
            yield NodeChange(change.kind, name, old.name or "", node.op_type, change.reason)
    for old in left.nodes:
        if old not in pairs:
            name = old.name or ""
            yield NodeChange(ChangeKind.REMOVED, name, name, old.op_type, "is missing from the target's model")


class _Owners:
    """Finds which node of a model has an array as its constant operand."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._of: dict[str, ir.Node] | None = None

    def __call__(self, array: np.ndarray, *, besides: ir.Node) -> str:
        """Return operator and name of a node that has it; empty when there is none but ``besides``."""
        if self._of is None:
            self._of = {}
            for node in self._side.nodes:
                for value in self._side.operands(node):
                    if value is not None and (key := self._side.content(value)):
                        self._of.setdefault(key, node)
        found = self._of.get(tensor_key(ir.tensor(array)))
        return f"{found.op_type} {found.name!r}" if found is not None and found is not besides else ""


def _differences(
    old: ir.Node, new: ir.Node, left: Side, right: Side, pairs: Pairs, owner: _Owners
) -> Iterator[NodeDifference]:
    if (old.domain, old.op_type) != (new.domain, new.op_type):
        yield NodeDifference(ChangeKind.OP_TYPE, f"is {_operator(new)} instead of {_operator(old)}")
    elif left.keys.function(old) != right.keys.function(new):
        yield NodeDifference(ChangeKind.OP_TYPE, f"calls a different function named {_operator(new)}")
    for word in sorted({*old.attributes, *new.attributes}):
        if left.keys.attribute(old, word) != right.keys.attribute(new, word):
            yield attribute_change(new, word, old.attributes.get(word), new.attributes.get(word))
    if is_standard(new, "Dropout") and trains(new) and not trains(old):
        yield NodeDifference(ChangeKind.TRAINING_MODE, training_words(new))
        return
    before_operands, after_operands = left.operands(old), right.operands(new)
    crossed = _crossed(before_operands, after_operands, left, right, pairs)
    if crossed:
        yield NodeDifference(ChangeKind.WIRING, f"has its operands {crossed[0]} and {crossed[1]} exchanged")
    for index in range(max(len(before_operands), len(after_operands))):
        if index in crossed:
            continue
        was = before_operands[index] if index < len(before_operands) else None
        now = after_operands[index] if index < len(after_operands) else None
        old_tensor, new_tensor = (None if value is None else constant_of(value) for value in (was, now))
        if was is None or now is None or old_tensor is None or new_tensor is None:
            found = _rewired(index, was, now, left, right, pairs)
        elif left.content(was) == right.content(now):
            continue
        else:
            elsewhere = functools.partial(owner, besides=old)
            found = weight_change(now.name or "", old_tensor, new_tensor, owner=elsewhere)
            if found.kind is not ChangeKind.WEIGHT_ROUNDED and _is_epsilon(new, now):
                epsilons = [magnitude(float(tensor.numpy().ravel()[0])) for tensor in (new_tensor, old_tensor)]
                found = NodeDifference(
                    ChangeKind.EPSILON, f"has another epsilon: {epsilons[0]} instead of {epsilons[1]}"
                )
        if found is not None:
            yield found


def _crossed(
    before: Sequence[ir.Value | None], after: Sequence[ir.Value | None], left: Side, right: Side, pairs: Pairs
) -> tuple[int, ...]:
    """Return the two places at which operands are each other's; empty where no two are."""

    def is_at(one: int, other: int) -> bool:
        was, now = before[one], after[other]
        if was is None or now is None:
            return False
        content = left.content(was)
        return content == right.content(now) if content else counterpart_of(was, left, right, pairs) is now

    changed = [place for place in range(min(len(before), len(after))) if not is_at(place, place)]
    found = (two for two in itertools.combinations(changed, 2) if is_at(*two) and is_at(*two[::-1]))
    return next(found, ())


def _is_epsilon(node: ir.Node, value: ir.Value) -> bool:
    """Return whether a constant is added under a root: the epsilon of a normalization written out."""
    tensor = constant_of(value)
    return (
        is_standard(node, "Add")
        and tensor is not None
        and math.prod(tensor.shape.numpy()) == 1
        and any(is_standard(user, "Sqrt", "Rsqrt", "Pow") for user, _ in node.outputs[0].uses())
    )


def _rewired(
    index: int, was: ir.Value | None, now: ir.Value | None, left: Side, right: Side, pairs: Pairs
) -> NodeDifference | None:
    if was is None or now is None:
        if was is now:
            return None
        said = [f"{v.name!r}" if v is not None else "nothing" for v in (now, was)]
        return NodeDifference(ChangeKind.WIRING, f"reads {said[0]} instead of {said[1]} as operand {index}")
    if counterpart_of(was, left, right, pairs) is now or is_beside_unpaired(was, now, pairs):
        return None  # reported with the added or removed node
    maker = was.producer()
    before = maker.inputs[0] if maker is not None and maker.inputs else None
    if maker is not None and before is not None and counterpart_of(before, left, right, pairs) is now:
        skipped = f"{_operator(maker)} {maker.name!r} before it"
        return NodeDifference(ChangeKind.WIRING, f"reads {now.name!r} as operand {index} without {skipped}")
    sources = [_source(value, with_maker=now.name == was.name) for value in (now, was)]
    maker = next((old for old, new in pairs.items() if new is now.producer()), None)
    place = maker.outputs[now.index() or 0] if maker is not None else None
    there = f" (the reference's {place.name!r})" if place is not None and place.name != now.name else ""
    return NodeDifference(ChangeKind.WIRING, f"reads {sources[0]}{there} instead of {sources[1]} as operand {index}")


def _source(value: ir.Value, *, with_maker: bool) -> str:
    """Return a value's name, with the node that computes it where the name alone does not tell two values apart."""
    maker = value.producer()
    return f"{value.name!r}" + (f" of {_operator(maker)} {maker.name!r}" if with_maker and maker is not None else "")


def _operator(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


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
