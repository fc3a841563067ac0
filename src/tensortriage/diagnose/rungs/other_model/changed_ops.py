"""Nodes of a changed model that compute something else than the original's, and the change.

Each node of the changed model computes on the original's golden values, those of the values at the same place; nodes
between two such values (a Gelu written out where the original has one) stay together. The error is judged by the floor
that the original has there.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.rungs.other_model.baked import baked
from tensortriage.diagnose.rungs.other_model.departure import departures
from tensortriage.diagnose.rungs.other_model.departure_words import departed_culprit, extra_op
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import fp32_floors
from tensortriage.envelope.unrounded_match import is_rounded, other_biases
from tensortriage.errors import DataError, EngineError, ModelError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.cutting.explode import Exploded, explode
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.changes import ChangeKind, NodeChange
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.runs.lab import FLOAT64
from tensortriage.values.spec import ValueSpec

_UNTOLD = "computes another result from the same inputs"


def changed_ops(
    inv: Investigation, matched: Correspondence, feed: Feed, unrounded: EngineSpec = FLOAT64
) -> list[Culprit]:
    """Return the nodes that change the numbers, those first whose own result is farthest above the original's floor.

    Where numbers are rounded, or the node that was found stands for none of the original, tensors are recognised by
    their values instead (`tensortriage.diagnose.rungs.other_model.departure`). Where no node can be shown to change
    them, all that differ are returned, in topological order.

    Args:
        inv: The investigation, of the original.
        matched: The original and the changed model, with their nodes matched.
        feed: Inputs of both.
        unrounded: The evaluation of the changed model that rounds no stored number.
    """
    reasons = matched.diff.nodes
    plain = matched.restored()
    wrong = _wrong_alone(inv, matched, plain, feed)
    names = sorted(wrong, key=lambda name: (-wrong[name][0], matched.plain.graph.node(name).index))
    unmatched = not names or not (_is_alike(matched, names[0]) or extra_op(matched, names[0]))
    if is_rounded(matched.changed) or unmatched:
        with contextlib.suppress(EngineError, ModelError, UsageError, DataError):
            departed = departures(inv, matched.paired, feed, unrounded)
            if corrected := other_biases(matched) if departed else {}:  # what they make up for hides no mistake
                later = departures(inv, freeze(matched.paired, corrected), feed, unrounded)
                departed = later if later and later[0].node.index > departed[0].node.index else departed
            if departed := departed or departures(inv, plain, feed, unrounded):
                return [departed_culprit(matched, each) for each in departed]
    return [_culprit(matched, name, reasons.get(name, _UNTOLD), wrong.get(name)) for name in names or list(reasons)]


def _is_alike(matched: Correspondence, name: str) -> bool:
    """Return whether a node corresponds to one of the original with the same operator."""
    original = next((own for own, other in matched.diff.pairs.items() if other == name), None)
    if original is None:
        return False
    was, now = matched.original.graph.node(original), matched.plain.graph.node(name)
    return (was.op_type, was.domain or "ai.onnx") == (now.op_type, now.domain or "ai.onnx")


def _wrong_alone(
    inv: Investigation, matched: Correspondence, plain: Model, feed: Feed
) -> dict[str, tuple[float, float, str]]:
    """Return the nodes that are wrong on the original's values, with floors exceeded, error and value."""
    graph = plain.graph
    wrong: dict[str, tuple[float, float, str]] = {}
    try:
        units = units_of(plain, matched.diff.values)
        errors = local_errors(inv, plain, matched.diff.values, units, feed)
        floors = fp32_floors(inv.setting(feed), inv.question.values)
    except (EngineError, ModelError, UsageError):
        units, errors, floors = [], {}, {}
    unit_of = {name: unit for unit in units for name in unit}
    for value, error in errors.items():
        ratio = ratio_of(error, floors.get(matched.diff.values[value])) or 0.0
        maker = graph.producer(value)
        if maker is None or not beyond_fp32(ratio):
            continue
        node = guilty(maker, [graph.node(name) for name in unit_of[maker.name]], matched.diff.at)
        if ratio > wrong.get(node.name, (0.0, 0.0, ""))[0]:
            wrong[node.name] = (ratio, error, value)
    return wrong


def units_of(plain: Model, values: Mapping[str, str]) -> list[list[str]]:
    """Return the nodes that are run together: those that exchange a value which the original does not have.

    Args:
        plain: The changed model.
        values: Its values to the original's at the same place.
    """
    unit: dict[str, list[str]] = {node.name: [node.name] for node in plain.graph.nodes if node.op_type != "Constant"}
    known = values.keys() | plain.graph.constants.keys()
    for node in plain.graph.nodes:
        for name in node.uses:
            maker = plain.graph.producer(name)
            if name not in known and maker is not None and unit[maker.name] is not unit[node.name]:
                joined = [*unit[maker.name], *unit[node.name]]
                unit.update((each, joined) for each in joined)
    return list({id(group): group for group in unit.values()}.values())


def local_errors(
    inv: Investigation, plain: Model, values: Mapping[str, str], units: Sequence[Sequence[str]], feed: Feed
) -> dict[str, float]:
    """Return the relative error of each unit on golden values; inf where it has another shape.

    Args:
        inv: The investigation, whose model is the original.
        plain: The changed model.
        values: Its values to the original's at the same place.
        units: Names of nodes that are run together.
        feed: The feed.
    """
    golden = inv.golden.of(feed)
    known: dict[str, np.ndarray] = {}
    for name, original in values.items():
        if original in golden:
            known[name] = np.asarray(golden[original])
        elif original in feed.tensors:
            known[name] = feed.tensors[original]
    usable = [unit for unit in units if _is_fed(plain, unit, known)]
    declared = value_specs(plain, {name: ValueSpec.of(name, array) for name, array in known.items()})
    shapes = {name: array for name, array in known.items() if name in plain.graph.shape_like}
    exploded = explode(plain, usable, specs=declared, shape_values=shapes)
    wanted = [name for name in exploded.outputs.values() if values.get(name) in golden]
    fed = Feed(f"{feed.name} exploded", _fed(exploded, known), feed.origin)
    errors = {}
    shown = inv.lab.values(inv.question.reference, exploded.model, fed, wanted, specs={})
    for name in shown.names():
        expected, array = np.asarray(golden[values[name]]), np.asarray(shown[name])
        errors[name] = error_of(measure(expected, array)) if expected.shape == array.shape else math.inf
    return errors


def guilty(maker: Node, unit: Sequence[Node], changes: Mapping[str, tuple[NodeChange, ...]]) -> Node:
    """Return the node of a unit to report for a wrong result: the kind of its edit decides.

    Args:
        maker: The node that makes the result.
        unit: The nodes that were run together with it.
        changes: The differences, by node.
    """

    def weight(node: Node) -> tuple[bool, bool, bool, int]:
        kinds = {change.kind for change in changes.get(node.name, ())} - {ChangeKind.WEIGHT_ROUNDED}
        return any(kind.is_named_cause for kind in kinds), bool(kinds), node is maker, node.index

    return max((node for node in unit if node.index <= maker.index), key=weight)


def _is_fed(plain: Model, unit: Sequence[str], known: Mapping[str, np.ndarray]) -> bool:
    """Return whether there is a golden value for all that a unit reads from outside."""
    nodes = [plain.graph.node(name) for name in unit]
    inner = {value for node in nodes for value in node.outputs}
    return all(name in known or name in inner or name in plain.graph.constants for node in nodes for name in node.uses)


def _fed(exploded: Exploded, known: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs of an exploded model, in the types that it declares."""
    types = {spec.name: spec.dtype for spec in exploded.model.inputs}
    inputs = {}
    for name, value in exploded.feeds.items():
        dtype = types[name]
        inputs[name] = known[value] if dtype is None else known[value].astype(dtype.numpy, copy=False)
    return inputs


def _missing(matched: Correspondence, value: str) -> Node | None:
    """Return the op of the original that made the value at this place, where the file has none for it."""
    maker = matched.original.graph.producer(matched.diff.values.get(value, ""))
    return maker if maker is not None and maker.name in matched.diff.removed else None


def _culprit(matched: Correspondence, name: str, reason: str, wrong: tuple[float, float, str] | None) -> Culprit:
    if wrong and reason == _UNTOLD and (missing := _missing(matched, wrong[2])) is not None:
        where = f"is missing behind {matched.plain.graph.node(name).op_type} '{name}'"
        change, value = ChangeKind.REMOVED.value, missing.outputs[0]
        return Culprit(
            missing.name, missing.op_type, value, wrong[1], floor_ratio=wrong[0], reason=where, change=change
        )
    graph = matched.plain.graph if name in matched.plain.graph else matched.original.graph
    node = graph.node(name)
    reason = extra_op(matched, name) or (baked(matched, name) if reason == _UNTOLD else "") or reason
    kinds = [change.kind for change in matched.diff.at.get(name, ()) if change.kind is not ChangeKind.WEIGHT_ROUNDED]
    kinds.sort(key=lambda kind: (not kind.is_named_cause, list(ChangeKind).index(kind)))
    return Culprit(
        name,
        node.op_type,
        wrong[2] if wrong else next(iter(node.outputs), ""),
        local_error=wrong[1] if wrong else None,
        floor_ratio=wrong[0] if wrong else None,
        reason=reason,
        change=kinds[0].value if kinds else "",
    )
