"""Matches the nodes of one model with those of another, under any names.

Every node gets two hashes: one over itself and everything before it, one over itself and everything after it, constants
by content and values by position, never by name. Equal prefixes pair by the first, equal suffixes by the second; what
is left between them pairs by name, and at last by its paired neighbours. So one change in the middle of a renamed graph
leaves exactly one node to explain.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.similarity.structural_hash import NodeKeys, digest, operands, tensor_key
from tensortriage.model.transforms.rewrite_helpers import is_standard
from tensortriage.values.grouping import grouped

Pairs = dict[ir.Node, ir.Node]


class Side:
    """One of the two models, its main graph indexed.

    Attributes:
        keys: Makes the keys of its nodes.
        nodes: The nodes but Constants, in topological order.
        inputs: The inputs to be fed.
        outputs: The graph outputs.
        input_keys, output_keys: A text for each of them, the same on both sides for those that correspond; see
            `align_interface`.
    """

    def __init__(self, model: ir.Model) -> None:
        graph = model.graph
        self.keys = NodeKeys(model.functions)
        self.nodes = tuple(node for node in graph if not is_standard(node, "Constant"))
        self.inputs = tuple(value for value in graph.inputs if not value.is_initializer())
        self.outputs = tuple(graph.outputs)
        self.input_keys: dict[ir.Value, str] = {}
        self.output_keys: dict[ir.Value, str] = {}
        self._contents: dict[ir.Value, str] = {}
        self._operands = {node: operands(node) for node in self.nodes}
        uses = ((value, (node, i)) for node, used in self._operands.items() for i, value in enumerate(used))
        self._users = grouped((value, use) for value, use in uses if value is not None)
        self._signatures = {node: self.keys.signature(node) for node in self.nodes}

    def operands(self, node: ir.Node) -> Sequence[ir.Value | None]:
        """Return the inputs of a node, None for omitted ones, and the captures of its bodies behind them."""
        return self._operands[node]

    def users(self, value: ir.Value) -> Sequence[tuple[ir.Node, int]]:
        """Return the nodes that use a value, each with the position among its operands."""
        return self._users.get(value, ())

    def content(self, value: ir.Value) -> str:
        """Return type, shape and hash of a constant; an empty string for other values."""
        if value not in self._contents:
            tensor = constant_of(value)
            self._contents[value] = "" if tensor is None else tensor_key(tensor)
        return self._contents[value]

    def prefix_hashes(self) -> dict[ir.Node, str]:
        """Return a hash per node over itself and all it depends on."""
        known = dict(self.input_keys)
        hashes: dict[ir.Node, str] = {}
        for node in self.nodes:
            parts = ["" if v is None else known.get(v) or self.content(v) for v in self._operands[node]]
            hashes[node] = digest(self._signatures[node], *parts)
            known.update((value, f"{hashes[node]}/{index}") for index, value in enumerate(node.outputs))
        return hashes

    def suffix_hashes(self) -> dict[ir.Node, str]:
        """Return a hash per node over itself, its constants and all that depends on it."""
        hashes: dict[ir.Node, str] = {}
        for node in reversed(self.nodes):
            parts = ["-" if v is None else self.content(v) for v in self._operands[node]]
            for value in node.outputs:
                parts.append(self.output_keys.get(value, ""))
                parts.extend(sorted(f"{hashes[user]}/{index}" for user, index in self.users(value)))
            hashes[node] = digest(self._signatures[node], *parts)
        return hashes


def constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the tensor of an initializer or of a Constant node's output, else None."""
    producer = value.producer()
    tensor: ir.TensorProtocol | None = value.const_value if producer is None else constant_tensor(producer)
    return tensor


def align_interface(reference: Side, target: Side) -> list[tuple[ir.Value, ir.Value]]:
    """Decide which inputs and outputs correspond: those of equal name, then the others in order.

    Returns:
        The pairs, inputs first. What is left over corresponds to nothing.
    """
    inputs = _correspondence(reference.inputs, target.inputs)
    outputs = _correspondence(reference.outputs, target.outputs)
    reference.input_keys, target.input_keys = _keys("input", reference.inputs, target.inputs, inputs)
    reference.output_keys, target.output_keys = _keys("output", reference.outputs, target.outputs, outputs)
    return [*inputs.items(), *outputs.items()]


def _correspondence(left: Sequence[ir.Value], right: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    by_name = {value.name: value for value in right}
    found = {value: by_name.pop(value.name) for value in left if value.name in by_name}
    others = iter([value for value in right if value.name in by_name])
    found.update(zip((value for value in left if value not in found), others, strict=False))
    return found


def _keys(
    what: str, left: Sequence[ir.Value], right: Sequence[ir.Value], found: Mapping[ir.Value, ir.Value]
) -> tuple[dict[ir.Value, str], dict[ir.Value, str]]:
    left_keys = {value: f"{what} {index}" for index, value in enumerate(left)}
    right_keys = {value: f"{what} {index} of the target" for index, value in enumerate(right)}
    right_keys.update((other, left_keys[value]) for value, other in found.items())
    return left_keys, right_keys


def match(reference: Side, target: Side) -> Pairs:
    """Return the pairs of nodes, reference to target; nodes without counterpart are left out.

    `align_interface` must have been called before.
    """
    pairs: Pairs = {}
    taken: set[ir.Node] = set()

    def pair_by(left: Mapping[ir.Node, str], right: Mapping[ir.Node, str]) -> None:
        _pair_groups(pairs, taken, left, right)

    pair_by(reference.prefix_hashes(), target.prefix_hashes())
    pair_by(reference.suffix_hashes(), target.suffix_hashes())
    pair_by(_named(reference.nodes, _name_and_op), _named(target.nodes, _name_and_op))
    pair_by(_named(reference.nodes, _name_and_outputs), _named(target.nodes, _name_and_outputs))
    _pair_neighbours(reference, target, pairs, taken)
    return pairs


def _name_and_op(node: ir.Node) -> str:
    return f"{node.name} {node.domain} {node.op_type}"


def _name_and_outputs(node: ir.Node) -> str:
    return " ".join((node.name or "", *(value.name or "" for value in node.outputs)))


def _named(nodes: Iterable[ir.Node], key: Callable[[ir.Node], str]) -> dict[ir.Node, str]:
    return {node: key(node) for node in nodes}


def _pair_groups(pairs: Pairs, taken: set[ir.Node], left: Mapping[ir.Node, str], right: Mapping[ir.Node, str]) -> None:
    """Pair unpaired nodes of equal key: those of equal name first, the others in order."""
    groups = grouped((key, node) for node, key in right.items() if node not in taken)
    left_over: list[tuple[ir.Node, list[ir.Node]]] = []
    for node, key in left.items():
        if node not in pairs and key in groups:
            same = next((other for other in groups[key] if other.name == node.name), None)
            if same is None:
                left_over.append((node, groups[key]))
            else:
                groups[key].remove(same)
                pairs[node] = same
                taken.add(same)
    for node, group in left_over:
        if group:
            pairs[node] = group.pop(0)
            taken.add(pairs[node])


def _pair_neighbours(reference: Side, target: Side, pairs: Pairs, taken: set[ir.Node]) -> None:
    """Pair remaining nodes at the same place among paired neighbours, until nothing changes."""
    left = [node for node in reference.nodes if node not in pairs]
    while True:
        before = len(pairs)
        for node in left:
            best = _best_neighbour(node, reference, target, pairs, taken) if node not in pairs else None
            if best is not None:
                pairs[node] = best
                taken.add(best)
        if len(pairs) == before:
            return


def _best_neighbour(
    node: ir.Node, reference: Side, target: Side, pairs: Pairs, taken: Collection[ir.Node]
) -> ir.Node | None:
    """Return the unpaired target node that shares most edges with a node; of another operator only if it shares all."""
    shared: dict[ir.Node, int] = {}
    edges = 0
    for index, value in enumerate(reference.operands(node)):
        counterpart = None if value is None else counterpart_of(value, reference, target, pairs)
        edges += value is not None and constant_of(value) is None
        for user, position in target.users(counterpart) if counterpart is not None else ():
            if position == index and user not in taken:
                shared[user] = shared.get(user, 0) + 1
    for number, value in enumerate(node.outputs):
        for user, index in reference.users(value):
            edges += 1
            used = target.operands(pairs[user]) if user in pairs else ()
            made = used[index] if index < len(used) else None
            producer = None if made is None else made.producer()
            if made is not None and producer is not None and made.index() == number and producer not in taken:
                shared[producer] = shared.get(producer, 0) + 1
    same_op = [other for other in shared if other.op_type == node.op_type]
    whole = [other for other in shared if shared[other] >= edges]
    candidates = [other for other in (same_op or whole) if not is_standard(other, "Constant")]
    return max(candidates, key=shared.__getitem__, default=None)


def counterpart_of(value: ir.Value, reference: Side, target: Side, pairs: Pairs) -> ir.Value | None:
    """Return the value of the target at the place of a value of the reference; None for constants and unpaired ones."""
    producer = value.producer()
    if producer is not None:
        other = pairs.get(producer)
        index = value.index() or 0
        return other.outputs[index] if other is not None and index < len(other.outputs) else None
    key = reference.input_keys.get(value)
    return next((other for other, its in target.input_keys.items() if its == key), None)


def is_beside_unpaired(was: ir.Value, now: ir.Value, pairs: Pairs) -> bool:
    """Return whether one of two values that are used at the same place comes from a node without counterpart."""
    made, maker = now.producer(), was.producer()
    if made is not None and constant_of(now) is None and made not in set(pairs.values()):
        return True
    return constant_of(was) is None and maker is not None and maker not in pairs


def values_at(reference: Side, target: Side, pairs: Pairs) -> dict[ir.Value, ir.Value]:
    """Return the value of the reference at the place of each value of the target, each at most once.

    What paired nodes read at the same place corresponds where one of both comes from a node without counterpart (what
    a BatchNormalization made is what the Conv makes that it was folded into); else what paired nodes make does, and
    what has the same name.
    """
    found: dict[ir.Value, ir.Value] = {}
    taken: set[ir.Value] = set()

    def join(old: ir.Value | None, new: ir.Value | None) -> None:
        if old is not None and new is not None and new not in found and old not in taken:
            found[new] = old
            taken.add(old)

    def is_computed(value: ir.Value | None) -> bool:
        return value is not None and constant_of(value) is None

    inputs = {key: value for value, key in reference.input_keys.items()}
    for fed, key in target.input_keys.items():
        join(inputs.get(key), fed)
    partners = set(pairs.values())
    for node, other in pairs.items():
        for old, new in zip(reference.operands(node), target.operands(other), strict=False):
            if old is None or new is None or not (is_computed(old) and is_computed(new)):
                continue
            maker, made = old.producer(), new.producer()
            if (maker is not None and maker not in pairs) or (made is not None and made not in partners):
                join(old, new)
    for node, other in pairs.items():
        for made_before, made_now in zip(node.outputs, other.outputs, strict=False):
            join(made_before, made_now)
    named = {value.name: value for node in reference.nodes for value in node.outputs}
    for other in target.nodes:
        for value in other.outputs:
            join(named.get(value.name), value)
    return found
