"""The change to the op at which a file departs from its network: the changed attribute or weight, in words."""

import numpy as np

from tensortriage.compare.patterns.anatomy import MINORITY
from tensortriage.diagnose.rungs.other_model.baked import baked
from tensortriage.diagnose.rungs.other_model.departure import Departure
from tensortriage.diagnose.rungs.quantization.clipped_biases import at_the_ends
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.envelope.unrounded_match import is_rounded
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.similarity.changes import ChangeKind
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.values.text import magnitude

_ONLY_ROUNDED = 0.02
"""Mean relative difference of a slice of a weight up to which it counts as rounded: int8 moves normally distributed
ones by 1 %."""

_SCALARS = ("epsilon", "alpha", "axis", "num_heads", "scale")
"""Attributes that fused operators take over from the ops they stand for."""


def departed_culprit(matched: Correspondence, departure: Departure) -> Culprit:
    """Return a departure as a culprit, with the visible difference of the op."""
    if departure.missing:
        partner = matched.diff.pairs.get(departure.node.name, "")
        retyped = next((c for c in matched.diff.at.get(partner, ()) if c.kind is ChangeKind.OP_TYPE), None)
        node = matched.in_file(partner) if retyped else departure.node  # another op at its place, or none
        words, kind = (retyped.reason, retyped.kind) if retyped else (departure.words, ChangeKind.REMOVED)
        return Culprit(node.name, node.op_type, departure.value, reason=words, change=kind.value)
    node = matched.in_file(departure.node.name)
    rounded = is_rounded(matched.changed)
    found = [] if rounded else [c for c in matched.diff.at.get(node.name, ()) if c.kind is ChangeKind.WEIGHT_ROUNDED]
    usual = {ChangeKind.WEIGHT_COARSENED} if rounded else set()
    at = matched.diff.at.get(departure.node.name, ())
    known = [c for c in at if c.kind.is_named_cause and c.kind not in usual] or found
    reasons = [change.reason for change in known]
    if extra := extra_op(matched, departure.node.name):
        return Culprit(node.name, node.op_type, departure.value, departure.error, reason=extra, change="added")
    if not known:
        is_itself = node.op_type == departure.node.op_type  # one that stands for several is another on purpose
        other = [c.reason for c in at if c.kind is ChangeKind.OP_TYPE and is_itself]
        constant = "" if at else baked(matched, departure.node.name)
        differs = [*_other_attributes(matched, node), *_other_weights(matched, departure.node)]
        reasons = [constant] if constant else [*(other or [departure.words]), *differs]
    change = known[0].kind.value if known else ChangeKind.WEIGHT.value if len(reasons) > 1 else ""
    return Culprit(
        node.name,
        node.op_type,
        departure.value,
        local_error=departure.error,
        reason="; ".join(dict.fromkeys(reasons)),
        change=change,
    )


def extra_op(matched: Correspondence, name: str) -> str:
    """Return that an op changes a value which the original reads as it is; empty for other ops."""
    plain, places = matched.plain.graph, matched.diff.values
    if name not in plain or all(change.kind is not ChangeKind.ADDED for change in matched.diff.at.get(name, ())):
        return ""
    node, own = plain.node(name), {other: original for original, other in matched.diff.pairs.items()}
    computed = [value for value in node.inputs if value and value not in plain.constants]
    if len(computed) != 1 or len(node.outputs) != 1:
        return ""
    maker, made = plain.producer(computed[0]), places.get(node.outputs[0], "")
    was = matched.original.graph.producer(made)
    behind = maker is not None and was is not None and own.get(maker.name) == was.name
    if not (place := places.get(computed[0], "") or (made if behind else "")):
        return ""
    readers = [own.get(reader.name, "") for reader in plain.consumers(node.outputs[0])]
    graph = matched.original.graph
    reads = all(reader and place in graph.node(reader).uses for reader in readers)
    outputs = {new.name: old.name for old, new in zip(matched.original.outputs, matched.plain.outputs, strict=False)}
    if not reads or not (readers or outputs.get(node.outputs[0]) == place):
        return ""
    return f"is not in the reference's model, which reads '{place}' as it is"


def _other_attributes(matched: Correspondence, node: Node) -> list[str]:
    """Return the attributes of a fused op whose value no op of the original has."""
    reasons = []
    for name in _SCALARS:
        if not isinstance(given := node.attributes.get(name), int | float):
            continue
        values = (each.attributes.get(name) for each in matched.original.graph.nodes)
        had = {value for value in values if isinstance(value, int | float)}
        if had and not np.isclose(given, list(had), rtol=1e-5, atol=0.0).any():
            shown = " or ".join(magnitude(value) for value in sorted(had))
            reasons.append(f"has {name} {magnitude(given)}, where the original has {shown}")
    return reasons


def _other_weights(matched: Correspondence, node: Node) -> list[str]:
    """Return the weights of an op, with the rows, that differ from the most alike constant of the original."""
    graph, reasons = matched.plain.graph, []
    reader = graph.node(node.name) if node.name in graph else node
    for name in reader.inputs:
        if name not in graph.constants or not _is_weight(graph, name):
            continue
        if clipped := at_the_ends(matched.paired.graph, name):
            return [clipped]
        now = graph.weight(name).astype(np.float64)
        was = matched.most_alike(now)
        if was is None:
            reasons.append(f"has a weight '{name}' that resembles none of the original's")
            continue
        away = np.abs(now - was.astype(np.float64))
        axis = int(np.argmax([np.ptp(_each(away, each)) for each in range(now.ndim)]))
        rows = _each(away, axis) / (_each(np.abs(was.astype(np.float64)), axis) + 1e-30)
        wrong = np.flatnonzero(rows > _ONLY_ROUNDED)
        if wrong.size:
            few = wrong.size <= MINORITY * rows.size
            where = f"{wrong.size} of {rows.size} slices of axis {axis}" if few else "all of it"
            reasons.append(f"has a weight '{name}' that is not the original's in {where}, first at {int(wrong[0])}")
    return reasons


def _each(away: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of each slice of an axis."""
    return np.asarray(np.moveaxis(away, axis, 0).reshape(away.shape[axis], -1).mean(axis=1))


def _is_weight(graph: Graph, name: str) -> bool:
    spec = graph.constants[name]
    return spec.dtype is not None and spec.dtype.is_float and len(spec.shape or ()) > 0
