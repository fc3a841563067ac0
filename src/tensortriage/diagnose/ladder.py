"""The ladder: the guide's questions in order of cost, answered by evidence, until one answer is decisive."""

import math
from collections.abc import Sequence

from tensortriage.diagnose.blame import blame, misled
from tensortriage.diagnose.changed import model_changed
from tensortriage.diagnose.evidence import Evidence
from tensortriage.diagnose.figures import MATCH_FACTOR, decibels, gap_allowance_db, ratio_of, say
from tensortriage.diagnose.floors import ROUNDED, floors_of
from tensortriage.diagnose.investigation import Investigation, Mark
from tensortriage.diagnose.local import local_errors
from tensortriage.diagnose.nonfinite import (
    born,
    explain,
    floors_in_range,
    nonfinite_alone,
    range_scan,
    wide_nodes,
)
from tensortriage.diagnose.outputs import above_the_floor, compare_outputs, run_to_run
from tensortriage.diagnose.soundness import WORDS, reference_is_sound
from tensortriage.diagnose.verdict import Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.model.graph import Node
from tensortriage.runs.outcome import Outcome


def climb(inv: Investigation, evidence: Evidence) -> Verdict:
    """Ask the questions in order and return the verdict of the first decisive answer.

    Args:
        inv: The investigation.
        evidence: Filled on the way; complete as far as the ladder was climbed, also when an error ends it.
    """
    if verdict := reference_is_sound(inv):
        return verdict
    changed = inv.question.target_model
    if changed is not None:
        if verdict := model_changed(inv, changed):
            return verdict
        inv.focus(changed)
    evidence.results, verdict = compare_outputs(inv)
    if verdict:
        return verdict
    fails = above_the_floor(inv, evidence.results)
    if verdict := run_to_run(inv, evidence.results):
        return verdict
    if not fails:
        return match(inv, evidence)
    for rung in (out_of_range, layer_wise, rounding, nonfinite, local_fault):
        if verdict := rung(inv, evidence):
            return verdict
    return inconclusive(inv, evidence)


def match(inv: Investigation, evidence: Evidence) -> Verdict:
    """Everything agrees: the more samples, and the more real they are, the surer."""
    worst = evidence.worst
    name, error, ratio = worst.worst
    samples = len(evidence.results)
    doubt = (0.2 if inv.inputs_word == "real" else 0.4) / samples
    limit = "within the tolerance given" if inv.question.tolerance else f"{ratio:.2g}x the fp32 noise floor"
    return inv.verdict(
        VerdictKind.MATCH,
        1.0 - doubt,
        f"{inv.question.target} agrees with {inv.question.reference} on {samples} feed{'s' * (samples > 1)}: worst "
        f"output '{name}', relative error {say(error)}, {limit}",
    )


def out_of_range(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Does the format hold the model's values? If not, and it matters at the outputs, that is the verdict."""
    since = inv.mark()
    feed = evidence.feed
    golden, specs = inv.golden(feed), inv.specs(feed)
    evidence.excess = range_scan(inv, feed)
    evidence.floors = floors_of(inv, inv.model, feed, inv.values, golden=golden, specs=specs, what="every layer")
    question = f"does {inv.precision.value} hold every value?"
    if inv.precision not in ROUNDED:
        return None
    origins = born(inv.model.graph, evidence.floors.emulated, evidence.excess)
    if not origins:
        inv.answered(question, "yes: rounding every result to it leaves all of them finite", since=since)
        return None
    outputs = [name for name in evidence.worst.metrics if name in evidence.floors.target]
    kept = {node.name for node in origins} | wide_nodes(inv.model.graph, evidence.excess)
    in_range = floors_in_range(inv, feed, evidence.floors, kept)
    before, after = (max(floors.target[name] for name in outputs) for floors in (evidence.floors, in_range))
    measured = max(evidence.worst.errors.values())
    matters = before > 2.0 * after and measured > 2.0 * after
    facts = [f"{item.op_type} '{item.node}': {item.magnitude:.3g}" for item in evidence.excess[:10]]
    inv.answered(
        question,
        f"no: {origins[0].op_type} '{origins[0].name}' leaves its range" + ("" if matters else ", without harm"),
        since=since,
        origins=[node.name for node in origins][:20],
        beyond_range=facts,
        predicted_error=before,
        predicted_error_kept_in_fp32=after,
        measured_error=measured,
    )
    if not matters:
        return None
    evidence.floors = in_range
    layer_wise(inv, evidence)
    culprits = [explain(inv, node, feed, evidence.excess) for node in origins]
    first, option = culprits[0], "+".join(sorted(kept))
    return inv.verdict(
        VerdictKind.RANGE_OVERFLOW,
        0.99 if math.isinf(measured) or measured > 0.5 * before else 0.85,
        f"{inv.precision.value} cannot hold {first.op_type} '{first.node}': {first.reason}; with "
        f"{len(kept)} op{'s' * (len(kept) > 1)} kept in fp32 the predicted output error falls from {say(before)} "
        f"to {say(after)}",
        culprits=culprits,
        next=[inv.command("run", "--target", f"emulate:precision={inv.precision.value},kept={option}")],
    )


def alike(one: float, other: float) -> bool:
    """Whether two figures are equal; two that could not be computed are."""
    return one == other or (math.isnan(one) and math.isnan(other))


def layer_wise(inv: Investigation, evidence: Evidence) -> None:
    """Compare every layer on the instrumented target, and say whether instrumenting changed the answer."""
    since = inv.mark()
    question = "what do the layers look like?"
    feed = evidence.feed
    golden = inv.golden(feed)
    try:
        found = inv.measured(
            inv.question.target,
            inv.model,
            feed,
            inv.values,
            golden=golden,
            what=f"every layer on {inv.question.target}",
        )
    except EngineError as error:
        inv.answered(
            question,
            f"unknown: with every tensor marked the target {WORDS[Outcome.of(error).kind]}",
            since=since,
            reason=error.message,
        )
        return
    evidence.in_context = found.metrics
    moved = [
        name
        for name, figure in evidence.worst.metrics.items()
        if name in found.metrics and not alike(found.metrics[name].rms_error, figure.rms_error)
    ]
    rows = evidence.layer_rows(inv)
    above = [row for row in rows if (ratio_of(row.in_context_error, row.floor) or 0.0) > MATCH_FACTOR]
    answer = f"{len(above)} of {len(rows)} tensors are above {MATCH_FACTOR:g}x their floor"
    if above:
        answer += f", the first is '{above[0].value}' ({above[0].op_type})"
    answer += "; marking moved the outputs" if moved else "; marking left the outputs as they were"
    inv.answered(
        question,
        answer,
        since=since,
        tensors=len(rows),
        above=[row.value for row in above][:20],
        outputs_moved_by_marking=moved,
        observation="instrumented",
    )


def rounding(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Does rounding to the requested format alone explain the error at the outputs?"""
    if inv.precision not in ROUNDED or evidence.floors is None:
        return None
    since = inv.mark()
    question = f"does rounding to {inv.precision.value} explain it?"
    gaps: dict[str, float] = {}
    unexplained: list[str] = []
    for name, error in evidence.worst.errors.items():
        metrics, predicted = evidence.worst.metrics[name], evidence.floors.target.get(name, 0.0)
        if metrics.exact:
            expected = predicted * metrics.count
            explained = metrics.mismatches <= expected + 3.0 * math.sqrt(max(expected, 1.0))
            gaps[name] = 0.0 if explained else math.inf
        else:
            gaps[name] = decibels(ratio_of(error, predicted) or 0.0)
            explained = gaps[name] <= gap_allowance_db(metrics.count)
        if not explained:
            unexplained.append(name)
    worst = max(gaps, key=lambda name: gaps[name])
    inv.answered(
        question,
        f"{'no' if unexplained else 'yes'}: output '{worst}' is {gaps[worst]:+.1f} dB against the prediction",
        since=since,
        gap_db=gaps,
        unexplained=unexplained,
        predicted_error={n: evidence.floors.target.get(n) for n in gaps},
        measured_error=dict(evidence.worst.errors),
    )
    if unexplained:
        return None
    name, error, _ = evidence.worst.worst
    return inv.verdict(
        VerdictKind.ROUNDING,
        0.95 if inv.inputs_word == "real" else 0.85,
        f"rounding to {inv.precision.value} explains the error: output '{name}' has relative error {say(error)}, "
        f"predicted {say(evidence.floors.target.get(name))} ({gaps[name]:+.1f} dB); no op is to blame",
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )


def nonfinite(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Where is the NaN or Inf born that the reference does not have and the format does not explain?"""
    if not any(figure.nonfinite_mismatch for figure in evidence.worst.metrics.values()):
        return None
    since = inv.mark()
    question = "where is the NaN or Inf born?"
    nodes = born(inv.model.graph, evidence.in_context or {})
    seen_in, confidence = "the instrumented run", 0.97
    if not nodes or any(misled(inv, evidence, node) for node in nodes):
        try:
            evidence.local = evidence.local or local_errors(inv, evidence.feed)
        except EngineError as error:
            if not nodes:
                inv.answered(question, f"unknown: the exploded graph fails: {error.message}", since=since)
                return None
            confidence = 0.7  # nobody can tell whether they do so on golden operands
        else:
            alone = nonfinite_alone(inv, evidence.local)
            if nodes and not any(node in alone for node in nodes):
                return misled_origins(inv, evidence, nodes, since)
            nodes, seen_in, confidence = [node for node in nodes if node in alone] or alone, "the exploded graph", 0.9
    if not nodes:
        inv.answered(question, "unknown: not once tensors are marked, nor in any op alone", since=since)
        return None
    culprits = [explain(inv, node, evidence.feed, evidence.excess) for node in nodes]
    inv.answered(
        question,
        f"in {culprits[0].op_type} '{culprits[0].node}', seen in {seen_in}",
        since=since,
        origins=[culprit.node for culprit in culprits][:20],
    )
    return inv.verdict(
        VerdictKind.NON_FINITE,
        confidence,
        f"NaN or Inf that the reference does not have is born in {culprits[0].op_type} '{culprits[0].node}', which "
        f"{culprits[0].reason}",
        culprits=culprits,
        next=[reduce_command(inv), inv.command("run", "--target", str(inv.question.target), "--validate")],
    )


def misled_origins(inv: Investigation, evidence: Evidence, nodes: Sequence[Node], since: Mark) -> Verdict:
    """Ops that make a NaN in the target's run, but not on golden operands: who made their operands wrong?"""
    first = nodes[0]
    inv.answered(
        "where is the NaN or Inf born?",
        f"in {first.op_type} '{first.name}', but of operands that are wrong already: on golden ones it stays finite",
        since=since,
        origins=[node.name for node in nodes][:20],
    )
    found = blame(inv, evidence)
    where = f"NaN or Inf that the reference does not have appears in {first.op_type} '{first.name}'"
    following = [reduce_command(inv), inv.command("run", "--target", str(inv.question.target), "--validate")]
    if found is None:
        return inv.verdict(
            VerdictKind.NON_FINITE,
            0.6,
            f"{where}, of operands that are off already; no op is wrong by itself",
            culprits=[explain(inv, node, evidence.feed, evidence.excess) for node in nodes],
            next=following,
        )
    guilty = found.culprits[0]
    return inv.verdict(
        VerdictKind.NON_FINITE,
        0.5 + 0.5 * max(found.explained, 0.5),
        f"{where}, because {guilty.op_type} '{guilty.node}' before it is wrong: {guilty.reason}",
        culprits=found.culprits,
        next=following,
    )


def local_fault(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Is an op wrong on golden inputs, and does its error make the failure?"""
    found = blame(inv, evidence)
    if found is None:
        return None
    first = found.culprits[0]
    return inv.verdict(
        VerdictKind.LOCAL_FAULT,
        0.5 + 0.5 * max(found.explained, 0.5),
        f"{first.op_type} '{first.node}' is wrong by itself on {inv.question.target}: {first.reason}; "
        f"{'it explains' if found.named == 1 else f'{found.named} such ops explain'} {found.explained:.0%} of the "
        "output error",
        culprits=found.culprits,
        next=[
            reduce_command(inv),
            inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", first.value),
        ],
    )


def reduce_command(inv: Investigation) -> str:
    """Return the command that finds the smallest piece that still fails."""
    return inv.command("debug reduce", "-o", "reduced.onnx", "--target", str(inv.question.target))


def inconclusive(inv: Investigation, evidence: Evidence) -> Verdict:
    """Nothing was decisive: say what is known and what was excluded."""
    name, error, _ = evidence.worst.worst
    if evidence.influence is not None:
        known = f"the ops that are wrong by themselves explain only {evidence.influence.explained:.0%} of the error"
    elif evidence.local is not None:
        known = "no op is wrong by itself: a fusion, or an effect of the whole graph, is likely"
    else:
        known = "the ops could not be run one by one"
    return inv.verdict(
        VerdictKind.INCONCLUSIVE,
        0.5,
        f"{inv.question.target} fails (output '{name}', relative error {say(error)}), rounding does not explain it, "
        f"and {known}",
        next=[
            reduce_command(inv),
            inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all"),
        ],
    )
