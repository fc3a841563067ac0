"""Which op in a branch of an If is it? The branches that the worst feed takes are put in place of their Ifs.

An If is one op to the ladder, but its branch may be a whole network, as in decoders that are merged of two. If the
model with the branch in its place fails like the whole, the ladder continues with that; if not, the If itself is wrong.
"""

import dataclasses
import math

from tensortriage.diagnose.sdk import (
    Answer,
    EngineError,
    Evidence,
    FeedResult,
    Findings,
    Investigation,
    Model,
    ModelError,
    Unsound,
    deployed,
    error_size,
    fed_to,
    is_decisive,
    judge,
    rung,
    scan_ranges,
    with_taken_branches,
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
        fed = fed_to(model, feed)
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


def _as_far_off(result: FeedResult, name: str, error: float) -> bool:
    """Return whether at least half of an output's whole error is there: then the branches make it."""
    now = result.errors[name]
    return not result.passes and (now == error if math.isinf(error) else is_decisive(now / error))
