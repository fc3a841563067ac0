"""Is the target right on the same model in another form? Two forms that change nothing of what is computed.

Engines have kernels of their own for sizes that are open until a run, which pieces with fixed sizes never show. And
some keep what they built, by the model's name or structure, and run it for another model that looks alike: then a
value that is marked or a node that does nothing, wherever it is, restores the answer, and other
weights change nothing.
"""

import dataclasses

import numpy as np

from tensortriage.diagnose.sdk import (
    CURED_BY_SETTING,
    KEPT_BUILD,
    Conclusion,
    Culprit,
    EngineError,
    Evidence,
    Feed,
    Investigation,
    Model,
    NewNode,
    TriageError,
    VerdictKind,
    beyond_fp32,
    command_without_inputs,
    error_of,
    error_size,
    extract,
    freeze,
    inner_values,
    insert_node,
    marking_restores,
    measure,
    restored,
    run_command,
    rung,
    value_specs,
)
from tensortriage.engines.sdk import EngineMissing, mark_outputs, with_input_shapes
from tensortriage.envelope.sdk import ratio_of
from tensortriage.sdk import some

QUESTION = "is the same model right in another form?"
_FEWEST = 4
"""Values inside a model from which on its ends belong to no single fusion."""


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "in_context_judged"),
    cost="a build and a run with fixed sizes; four more, if marking values restores the answer",
    ends=(VerdictKind.LOCAL_FAULT, VerdictKind.FUSION_FAULT, VerdictKind.COMPARISON_UNSOUND),
    after="are the outputs in another layout?",
)
def equal_forms(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Fix open sizes; where marking restores the answer, add a node that does nothing, and mark far from that."""
    feed = evidence.feed
    shapes = {spec.name: feed.tensors[spec.name].shape for spec in inv.model.inputs if not spec.is_static}
    if shapes and _right(inv, evidence, with_input_shapes(inv.model, shapes)):
        return _open_sizes(inv, evidence, {name: [*map(int, shape)] for name, shape in shapes.items()})
    if marking_restores(inv, evidence) and _is_kept(inv, evidence):
        return _kept_build(inv, evidence)
    inv.record.answered(QUESTION, "no" if shapes else "no other form is known")
    return None


def _right(inv: Investigation, evidence: Evidence, model: Model) -> bool:
    try:
        return restored(inv, evidence, evidence.feed, model=model, spec=inv.question.target)
    except (EngineError, EngineMissing):
        return False


def _open_sizes(inv: Investigation, evidence: Evidence, shapes: dict[str, list[int]]) -> Conclusion:
    told = some([f"{name}: {shape}" for name, shape in shapes.items()], 3)
    inv.record.answered(QUESTION, f"yes: with fixed sizes ({told})", shapes=shapes)
    name, error, _ = evidence.worst_feed.worst_output()
    first = _first_wrong(inv, evidence)
    alone = _alone_with_open_sizes(inv, evidence, first) if first else None
    where = f"; {first.op_type} '{first.node}' makes the first wrong value of the whole run" if first else ""
    if first and alone is not None:
        where += f", and with open sizes is off by {error_size(alone)} alone"
        first = dataclasses.replace(first, local_error=alone, effect="goes wrong where sizes are open")
    given = [f"{name}:[{','.join(map(str, shape))}]" for name, shape in shapes.items()]
    options = ("--override-input-shapes", *given, "-o", "fixed.onnx")
    fix = command_without_inputs(inv.question, "surgeon sanitize", *options)
    return Conclusion(
        VerdictKind.LOCAL_FAULT if alone is not None else VerdictKind.FUSION_FAULT,
        CURED_BY_SETTING,
        f"{inv.question.target} is wrong where sizes are open (dynamic) and right with static ones: output '{name}' is "
        f"off by {error_size(error)}, and with the sizes of this feed fixed ({told}) it is within its limit{where}. "
        "Cure: fix the sizes of the inputs in the model",
        culprits=[first] if first else [],
        next=[fix, run_command(inv.question)],
    )


def _first_wrong(inv: Investigation, evidence: Evidence) -> Culprit | None:
    """Return the op that makes the first wrong value of the target's own run; None where that is not known."""
    figures, floors = evidence.in_context or {}, evidence.floors.target if evidence.floors else {}
    for node in inv.model.graph.nodes:
        for value in node.outputs:
            if value in figures and beyond_fp32(ratio_of(error_of(figures[value]), floors.get(value))):
                return Culprit(node.name, node.op_type, value, reason="makes the first wrong value of the whole run")
    return None


def _alone_with_open_sizes(inv: Investigation, evidence: Evidence, op: Culprit) -> float | None:
    """Return the error of an op alone, on golden operands, whose sizes are open; None where that is none."""
    golden, given = inv.golden.of(evidence.feed), evidence.feed.tensors
    try:
        piece = extract(inv.model, [op.node], specs=value_specs(inv.model), outputs=[op.value])
        names = [spec.name for spec in piece.inputs]
        tensors = {name: given[name] if name in given else np.asarray(golden[name]) for name in names}
        feed = Feed(f"{evidence.feed.name} at {op.node}", tensors, evidence.feed.origin)
        made = inv.lab.outputs(inv.question.target, piece, feed, what="asking an op whose sizes are open")
    except TriageError:
        return None
    error = error_of(measure(np.asarray(golden[op.value]), np.asarray(made[op.value])))
    floor = evidence.floors.target.get(op.value) if evidence.floors else None
    return error if beyond_fp32(ratio_of(error, floor)) else None


def _is_kept(inv: Investigation, evidence: Evidence) -> bool:
    """Return whether any change at either end of the model restores the answer, and one of all weights leaves it."""
    values = inner_values(inv.model.graph, [node.name for node in inv.model.graph.nodes])
    given = next((spec.name for spec in inv.model.inputs if spec.dtype is not None and spec.dtype.is_float), "")
    if len(values) < _FEWEST or not given:
        return False
    try:
        longer = insert_node(inv.model, NewNode(op_type="Identity", inputs=[given], outputs=[given]))
        changed = (longer, mark_outputs(inv.model, values[-1:]))
        return all(_right(inv, evidence, model) for model in changed) and _ignores_weights(inv, evidence)
    except TriageError:
        return False


def _ignores_weights(inv: Investigation, evidence: Evidence) -> bool:
    """Return whether other weights under the same names change the reference's outputs, and no bit of the target's."""
    feed, graph = evidence.feed, inv.model.graph
    floats = [name for name, spec in graph.constants.items() if spec.dtype is not None and spec.dtype.is_float]
    weights = {name: array for name in floats if (array := graph.weight(name)).size > 1}
    other = freeze(inv.model, {name: (array / 2).astype(array.dtype) for name, array in weights.items()})
    right, made = inv.golden.outputs(feed), inv.deployed(feed)
    expected, found = (inv.lab.outputs(spec, other, feed) for spec in (inv.question.reference, inv.question.target))
    names = evidence.worst_feed.metrics
    moved = any(not np.array_equal(right[name], expected[name], equal_nan=True) for name in names)
    return moved and all(np.array_equal(made[name], found[name], equal_nan=True) for name in names)


def _kept_build(inv: Investigation, evidence: Evidence) -> Conclusion:
    inv.record.answered(
        QUESTION, "yes: with a node that does nothing, and with any value marked; with other weights nothing changes"
    )
    name, error, _ = evidence.worst_feed.worst_output()
    target = inv.question.target
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        KEPT_BUILD,
        f"{target} does not run this model: output '{name}' is off by {error_size(error)}, right as soon as a node "
        "that does nothing is added or a value is marked, and the same to the last bit with all weights halved; so it "
        "runs something that it built before, under the same names, of another model or other weights. Cure: delete "
        "the engines that it keeps (its cache), give every model a cache of its own, and diagnose again",
        next=[run_command(inv.question)],
    )
