"""Is the exported model still the network? PyTorch's own values are judged before any engine is.

The network runs in its own interpreter; its outputs, and every inner value that the exporter's metadata name, are
compared with the envelope of the ONNX model. A value outside was changed by the export: for the first such value on the
way to a wrong output, all values before it being right, the nodes between them are to blame. Values of single
operations cost an export of the network, and are requested only where the results of its modules do not settle it.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    CHANGED_UNNAMED,
    OBSERVED,
    PLAIN,
    Answer,
    Conclusion,
    Culprit,
    Dispute,
    EngineError,
    EngineSpec,
    Evidence,
    Feed,
    Findings,
    Graph,
    Investigation,
    LintFinding,
    MemoryStore,
    Node,
    NodeOrigin,
    UsageError,
    VerdictKind,
    WrongPart,
    between,
    disputes,
    error_size,
    rung,
    triage_command,
)
from tensortriage_torch.rungs.blamed_nodes import wrong_constant, wrong_nodes
from tensortriage_torch.rungs.network_mistakes import Mistake, Mistaken, Subject, mistaken
from tensortriage_torch.rungs.network_values import (
    Inner,
    NetworkValues,
    network_values,
    next_known,
)
from tensortriage_torch.rungs.whole_numbers import (
    IN_FLOATING_POINT,
    inexact_integers,
    may_have_inexact_integers,
)

QUESTION = "does the exported model compute the same results as the network?"
_MOST_SHOWN = 8
_NORMALIZING = frozenset({"InstanceNormalization", "BatchNormalization", "GroupNormalization"})


@rung(
    QUESTION,
    reads=("in_training",),
    gives=("wrong_part",),
    cost="a run of the network, one evaluation",
    ends=(
        VerdictKind.MODEL_CHANGED,
        VerdictKind.COMPARISON_UNSOUND,
    ),
    after="is the model meant for inference?",
)
def network_changed(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Compare the network with its exported model; a difference at an output is the verdict."""
    network = inv.question.network
    if network is None:
        return None
    first: NetworkValues | None = None
    whole: Mapping[str, Dispute] = {}
    suspected = may_have_inexact_integers(inv.model)
    swept = {shaped.feed.name: shaped for shaped in inv.question.sweep}
    for feed in (*inv.question.feeds, *(shaped.feed for shaped in swept.values())):
        try:
            inv.lab.progress(f"running the network on {feed.name}")
            values = network_values(inv, network, feed, inner=Inner.NONE if first else Inner.MODULES)
            inv.lab.progress("exporting the network for the values of its operations")
            if first is None and not values.covers_most:
                values = network_values(inv, network, feed, inner=Inner.OPERATIONS)
            first = first or values
            values, found = _disputed(inv, feed, values)
            differs = any(spec.name in found for spec in inv.model.outputs)
            if (differs or suspected) and values.inner is not Inner.OPERATIONS:
                values, found = _disputed(inv, feed, network_values(inv, network, feed, inner=Inner.OPERATIONS))
            if suspected and values.trace.network and not differs:
                whole = inexact_integers(inv, feed, values)
                found = dict(whole) or found
        except EngineError as failure:
            if feed.name in swept:  # asked of every engine by `shape_sweep`
                continue
            if evidence.in_training and first is not None and not first.training:
                return _left_on(inv, evidence.in_training[0], first)
            return _unanswered(inv, failure, mistaken(Subject(inv, network, feed)).mistake)
        except UsageError as failure:
            if wrong := mistaken(Subject(inv, network, feed)).mistake:  # as where another network takes other inputs
                return _mistaken(inv, wrong, failure.message)
            raise
        if any(spec.name in found for spec in inv.model.outputs):
            break
    else:
        assert first is not None
        inv.record.answered(QUESTION, f"yes: {first.share}", **first.evidence)
        return None
    outputs = [spec.name for spec in inv.model.outputs if spec.name in found]
    made = {name: values.arrays[name] for name in (spec.name for spec in inv.model.outputs) if name in values.arrays}
    why = mistaken(Subject(inv, network, feed, made, found[outputs[0]].error, values.training))
    if why.mistake is not None:
        return _mistaken(
            inv, why.mistake, f"output '{outputs[0]}' differs by {error_size(found[outputs[0]].error)} from PyTorch's"
        )
    culprit, nodes = _first(inv.model.graph, found, values, outputs) or (None, ())
    normalizing = next((node for node in nodes if why.statistics and node.op_type in _NORMALIZING), None)
    if culprit and normalizing:
        culprit = dataclasses.replace(
            culprit, node=normalizing.name, op_type=normalizing.op_type, reason=why.statistics, origin=NodeOrigin()
        )
    findings = Findings()
    if culprit:
        if whole:
            culprit = dataclasses.replace(culprit, reason=f"{culprit.reason}; {IN_FLOATING_POINT}")
        place, names = _place(inv.model.graph, culprit), tuple(node.name for node in nodes)
        part = WrongPart(names, feed, values.arrays, culprit.value, place, culprit.reason)
        findings = Findings(wrong_part=part)
    inv.record.answered(
        QUESTION,
        f"no: output '{outputs[0]}' differs by {error_size(found[outputs[0]].error)} on {feed.name}; {values.share}",
        output=outputs[0],
        relative_error=found[outputs[0]].error,
        disputed=list(found)[:_MOST_SHOWN],
        **values.evidence,
    )
    verdict = _verdict(inv, values, found, outputs, culprit, why)
    if feed.name in swept:
        words = f"{verdict.summary}, at {swept[feed.name].label}; at the given sizes they agree"
        verdict = dataclasses.replace(verdict, summary=words)
    return Answer(verdict, findings)


def _disputed(inv: Investigation, feed: Feed, values: NetworkValues) -> tuple[NetworkValues, dict[str, Dispute]]:
    """Return values that differ from the model's, and all values by the names that the model's numbers match.

    A value for which the file names only a module stands for the result of the last of the modules joined there, unless
    it is that of an earlier one.
    """

    def judged(arrays: Mapping[str, np.ndarray]) -> dict[str, Dispute]:
        names = [name for name in values.names if name in arrays]
        return {each.value: each for each in disputes(inv.lab, inv.model, feed, names, MemoryStore(arrays))}

    found, arrays = judged(values.arrays), dict(values.arrays)
    for place in range(1, max(map(len, values.otherwise.values()), default=0)):
        others = {name: each[place] for name, each in values.otherwise.items() if name in found and len(each) > place}
        wrong = judged(others) if others else {}
        arrays |= {name: array for name, array in others.items() if name not in wrong}
        found = {name: dispute for name, dispute in found.items() if name not in others or name in wrong}
    return dataclasses.replace(values, arrays=arrays), found


def _mistaken(inv: Investigation, wrong: Mistake, seen: str) -> Conclusion:
    """Return the verdict on a network and a file that cannot be compared as they are."""
    inv.record.answered(QUESTION, f"undecided: {wrong.what}", cure=wrong.cure)
    return Conclusion(VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"{wrong.what} ({seen}). Cure: {wrong.cure}")


def _unanswered(inv: Investigation, failure: EngineError, wrong: Mistake | None) -> Conclusion:
    if wrong is not None:
        return _mistaken(inv, wrong, failure.message)
    inv.record.answered(QUESTION, f"unknown: {failure.message}")
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"the network cannot be compared with its model: {failure.message}"
    )


def _left_on(inv: Investigation, finding: LintFinding, values: NetworkValues) -> Conclusion:
    """Return the verdict on a model in training mode, exported from a network that is not."""
    node = inv.model.graph.node(finding.node)
    origin = inv.model.graph.origin(node.name)
    inv.record.answered(QUESTION, f"no: {node.op_type} '{node.name}': {finding.why}", **values.evidence)
    remark = f"; in PyTorch it is {described}" if (described := values.described(origin.module)) else ""
    reason = f"{finding.why}, though the network is in evaluation mode{remark}"
    place = origin.label or f"{node.op_type} '{node.name}'"
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        OBSERVED,
        f"the exported model differs from the network: {place} was left in training mode",
        culprits=[Culprit(node.name, node.op_type, node.outputs[0], reason=reason, change="export")],
    )


def _verdict(
    inv: Investigation,
    values: NetworkValues,
    found: Mapping[str, Dispute],
    outputs: Sequence[str],
    culprit: Culprit | None,
    why: Mistaken,
) -> Conclusion:
    error = error_size(found[outputs[0]].error)
    summary = f"the exported model differs from the network: output '{outputs[0]}' differs by {error} from PyTorch's"
    if culprit is not None:
        summary += f"; it begins in {_place(inv.model.graph, culprit)}: {culprit.reason}"
    if why.statistics and not (culprit and culprit.reason == why.statistics):
        summary += f"; {why.statistics}"
    if why.weights:
        summary += f"; {why.weights}"
    if values.training:
        summary += "; the network is in training mode: call .eval() before it is exported and compared"
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        OBSERVED if culprit else CHANGED_UNNAMED,
        summary,
        culprits=[culprit] if culprit else [],
        next=[
            triage_command(
                inv.question, "run", "--reference", str(inv.question.network), "--target", str(_runs_the_file(inv))
            )
        ],
    )


def _runs_the_file(inv: Investigation) -> EngineSpec:
    """Return an engine that runs the file: the reference, or the target where the network is the reference."""
    both = (inv.question.reference, inv.question.target)
    return next((spec for spec in both if inv.question.network and spec.name != inv.question.network.name), PLAIN)


def _place(graph: Graph, culprit: Culprit) -> str:
    origin = culprit.origin if culprit.origin.is_known else graph.origin(culprit.node)
    return origin.label or f"{culprit.op_type} '{culprit.node}'"


def _first(
    graph: Graph, found: Mapping[str, Dispute], values: NetworkValues, outputs: Sequence[str]
) -> tuple[Culprit, Sequence[Node]] | None:
    """Return the producer of the first wrong value with wrong successors, and the nodes that make it of known ones."""
    on_the_way = {value for node in graph.ancestors(outputs) for value in node.outputs}
    for value in found:
        if value not in on_the_way or graph.producer(value) is None:
            continue
        followers = next_known(graph, value, values.arrays)
        if value in outputs or any(follower in found for follower in followers):
            nodes = between(graph, value, values.arrays)
            given = graph, nodes, found[value], values
            return wrong_constant(*given) or wrong_nodes(*given), nodes
    return None
