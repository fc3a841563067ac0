"""Which op in a branch of an If is it? The branches that the worst feed takes are put in place of their Ifs.

An If is one op to the ladder, but its branch may be a whole network, as in decoders that are merged of two. If the
model with the branch in its place fails like the whole, the ladder continues with that; if not, the If itself is wrong.
"""

import dataclasses
import math

import numpy as np

from tensortriage.diagnose.sdk import (
    ELSE,
    THEN,
    Answer,
    EngineError,
    Evidence,
    Feed,
    FeedResult,
    Findings,
    Investigation,
    Model,
    ModelError,
    Unsound,
    deployed,
    error_size,
    is_decisive,
    judge,
    rung,
    scan_ranges,
    take_branches,
)
from tensortriage.engines.sdk import RunsGivenEngines
from tensortriage.envelope.sdk import resolve
from tensortriage.sdk import some

QUESTION = "does it fail in a branch of an If?"
FILE = "branches.onnx"
"""The model with the taken branches, in the case."""


@rung(
    QUESTION,
    reads=("results",),
    gives=("results", "ranges"),
    cost="a build and a run, for models with If",
    after="do the outputs show a narrower format than was asked for?",
)
def taken_branches(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Replace every If by the branch it takes, and investigate that model if it fails the same way."""
    target, feed = inv.question.target, evidence.feed
    engine = resolve(target).engine
    given = isinstance(engine, RunsGivenEngines) and engine.without_file(target.options) is not None
    if given or not any(node.op_type == "If" for node in inv.model.graph.nodes):
        return None
    try:
        model, taken = with_taken_branches(inv, feed)
        model = Model.load(model.save(inv.lab.case.folder / FILE))
        fed = Feed(feed.name, {spec.name: feed.tensors[spec.name] for spec in model.inputs}, feed.origin)
        asking = inv.about(dataclasses.replace(inv.question, model=model, feeds=(fed,), taken=taken))
        result = judge(asking, fed, deployed(asking, fed), evidence.worst_feed.floors)
    except (EngineError, ModelError, Unsound) as problem:
        inv.record.answered(QUESTION, f"unknown: {problem}")
        return None
    name, error, _ = evidence.worst_feed.worst_output()
    words = f"with {some(taken, 3)} in place output '{name}' is off by {error_size(result.errors[name])}"
    facts = {"taken": list(taken[:12]), "relative_error": result.errors[name]}
    if not _as_far_off(result, name, error):
        inv.record.answered(QUESTION, f"no: {words}, as a whole by {error_size(error)}", **facts)
        return None
    inv.record.answered(QUESTION, f"yes: {words}; that is investigated instead", **facts)
    ranges = scan_ranges(asking, evidence).findings
    return Answer(findings=Findings(results=(result,), **ranges), question=asking.question)


def with_taken_branches(inv: Investigation, feed: Feed) -> tuple[Model, tuple[str, ...]]:
    """Return the model without any If in its main graph, and which branch each took on a feed, as ``if/then_branch``.

    Raises:
        EngineError: When the reference does not show a condition.
        ModelError: When a branch cannot be put in place (``branch-not-taken``).
    """
    model, paths = inv.model, []
    while holders := [node for node in model.graph.nodes if node.op_type == "If"]:
        conditions = dict.fromkeys(node.inputs[0] for node in holders)
        made = [name for name in conditions if model.graph.producer(name) and name not in model.graph.constants]
        known = {**feed.tensors, **{n: model.graph.weight(n) for n in conditions if n in model.graph.constants}}
        fed = Feed(feed.name, {spec.name: feed.tensors[spec.name] for spec in model.inputs}, feed.origin)
        shown = inv.lab.values(inv.question.reference, model, fed, made)
        known |= {name: np.asarray(shown[name]) for name in made}
        taken = {node.name: THEN if np.reshape(known[node.inputs[0]], -1)[0] else ELSE for node in holders}
        for name, branch in taken.items():
            outer = model.graph.origin(name).body
            paths.append("/".join(filter(None, (outer, name, branch))))
        model = take_branches(model, taken)
    return model, tuple(paths)


def _as_far_off(result: FeedResult, name: str, error: float) -> bool:
    """Return whether at least half of an output's whole error is there: then the branches make it."""
    now = result.errors[name]
    return not result.passes and (now == error if math.isinf(error) else is_decisive(now / error))
