"""Is it the engine at all, or did the model change on its way to it?

When the target runs another ONNX file, both files first run on the *reference*. If their outputs differ there, no
engine is to blame: the changed nodes are found by comparing the graphs, and confirmed by running each node of the new
file on golden values of the old one.
"""

import dataclasses
from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import MATCH_FACTOR, error_of, say
from tensortriage.compare.measured import compare_all
from tensortriage.diagnose.measurements.floors import fp32_floors
from tensortriage.diagnose.measurements.local import local_errors, suspects
from tensortriage.diagnose.measurements.soundness import mismatched, run_once
from tensortriage.diagnose.rungs.quantization.quantized_model import inspect_command
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import QUANTIZING_OPS, bypass, quantizers
from tensortriage.model.similarity.diff import diff


def model_changed(inv: Investigation, changed: Model) -> Verdict | None:
    """Compare the original and the changed model on the reference engine; a difference is the verdict."""
    since = inv.mark()
    question = "do both models compute the same on the reference?"
    original = inv.question.model
    worst, where, feed = 0.0, "", inv.question.feeds[0]
    for each in inv.question.feeds:
        golden = inv.golden_outputs(each)
        try:
            outputs = run_once(inv, inv.question.reference, changed, each)
        except EngineError as failure:
            reason = f"the reference engine cannot run the target's model: {failure.message}"
            inv.answered(question, reason, since=since)
            return inv.verdict(VerdictKind.MODEL_CHANGED, 1.0, reason)
        expected = {spec.name: golden[spec.name] for spec in original.outputs if spec.name in golden}
        if problem := mismatched(expected, outputs):
            inv.answered(question, f"no: {problem}", since=since)
            return inv.verdict(VerdictKind.COMPARISON_UNSOUND, 1.0, f"the two models are not comparable: {problem}")
        figures = compare_all(((name, outputs[name]) for name in expected), golden).metrics
        floors, _ = fp32_floors(inv, original, each, list(expected), golden=golden, what="the outputs")
        for name, figure in figures.items():
            error = error_of(figure)
            if error > MATCH_FACTOR * floors.get(name, 0.0) and error > worst:
                worst, where, feed = error, name, each
    reasons = reasons_of(original, changed)
    if not where:
        inv.answered(question, "yes, within the fp32 floor", since=since, changed_nodes=list(reasons)[:20])
        return None
    culprits = confirm(inv, changed, feed, reasons)
    inv.answered(
        question,
        f"no: output '{where}' differs by {say(worst)}",
        since=since,
        output=where,
        relative_error=worst,
        feed=feed.name,
        changed_nodes=list(reasons)[:20],
    )
    reference = str(inv.question.reference)
    named = f": {culprits[0].op_type} '{culprits[0].node}' {culprits[0].reason}" if culprits else ""
    return inv.verdict(
        VerdictKind.MODEL_CHANGED,
        1.0 if culprits else 0.9,
        f"the target's model is not the reference's: on the reference engine output '{where}' already differs by "
        f"{say(worst)}{named}",
        culprits=culprits,
        next=[
            *([inspect_command(inv, changed)] if quantizers(changed.graph) else []),
            inv.command("run", "--reference", reference, "--target", reference, "--target-model", str(changed.path)),
        ],
    )


def reasons_of(original: Model, changed: Model) -> Mapping[str, str]:
    """Return what differs, by node; where one model was quantized, what differs besides its quantizers, if anything."""
    if quantizers(changed.graph) and not quantizers(original.graph):
        added = {node.name for node in changed.graph.nodes if node.op_type in QUANTIZING_OPS}
        found = {name: why for name, why in diff(original, bypass(changed, {})).nodes.items() if name not in added}
        if found:
            return found
    return diff(original, changed).nodes


def confirm(inv: Investigation, changed: Model, feed: Feed, reasons: Mapping[str, str]) -> list[Culprit]:
    """Return the changed nodes, those first whose own result differs most on the original's golden values."""
    reference = inv.question.reference
    question = dataclasses.replace(inv.question, model=changed, target_model=None, target=reference)
    inner = Investigation(question, inv.case, listener=inv.listener)
    inner.adopt(feed, inv.golden(feed), inv.tally)
    local: dict[str, float] = {}
    try:
        found = local_errors(inner, feed)
        for value, ratio in suspects(inner, feed, found):
            node = changed.graph.producer(value)
            if node is not None:
                local[node.name] = max(local.get(node.name, 0.0), ratio)
        errors = {
            node.name: found.error(value)
            for value in found.metrics
            if (node := changed.graph.producer(value)) is not None
        }
    except EngineError:
        errors = {}
    finally:
        inner.close()
    nodes = {node.name: node for node in changed.graph.nodes}
    culprits = []
    for name in sorted({*reasons, *local}, key=lambda name: (-local.get(name, 0.0), name)):
        node = nodes.get(name)
        reason = reasons.get(name, "computes another result from the same inputs")
        culprits.append(
            Culprit(
                name,
                node.op_type if node else "",
                node.outputs[0] if node else "",
                local_error=errors.get(name),
                floor_ratio=local.get(name),
                reason=reason,
            )
        )
    return culprits
