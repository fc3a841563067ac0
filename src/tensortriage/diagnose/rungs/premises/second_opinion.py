"""Is the reference itself right? It is judged by the envelope first, and by other implementations where it is outside.

A reference outside the envelope of its own model is not the truth. Which op is it, and which side do independent
implementations take? The same question decides at the op that a target is about to be blamed for.
"""

import dataclasses
from collections.abc import Sequence

from tensortriage.compare.judgement.within import is_minor, within_fp32
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.measurements.local_errors.local import parts_of
from tensortriage.diagnose.measurements.local_errors.witnesses import (
    FLOAT64,
    REFERENCE,
    Opinion,
    independent_engines,
    opinions,
)
from tensortriage.diagnose.measurements.outputs import FeedResult, deployed, judge, output_floors
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.rungs.variation.repeated import repeated
from tensortriage.diagnose.rungs.variation.run_order import run_order
from tensortriage.diagnose.state.confidence import OBSERVED, REFERENCE_CONTRADICTED, REFERENCE_OUTSIDE
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.registry import is_foreign, resolve
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, ROUNDED
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.reference import outside_envelope
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import enumeration, error_size

QUESTION = "does the reference compute what the model defines?"
MOST_DOUBTED = 8
"""Ops at which the other implementations run, those furthest beyond their limit first."""


@rung(
    QUESTION,
    reads=("results",),
    gives=("results", "exact_reference"),
    cost="nothing new; where it is outside, 3 to 58 runs of it, every op in isolation once",
    ends=(VerdictKind.COMPARISON_UNSOUND,),
)
def second_reference(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Judge the reference's outputs by the envelope; if they are outside, find the op and the wrong engine."""
    worst = evidence.worst_feed
    outside = outside_envelope(worst.floors, list(worst.metrics))
    if not outside:
        return None
    first = next(iter(outside))
    off, (failing, error, _) = max(dispute.error for dispute in outside.values()), worst.worst_output()
    if beyond_format(inv, worst) and is_minor(off, error):
        inv.record.answered(
            QUESTION,
            f"nearly: output '{first}' of the reference differs by {error_size(outside[first].error)} from what the "
            f"model computes, which does not explain the target's error: {error_size(error)} at '{failing}'",
            outputs=list(outside)[:12],
        )
        return None
    unseen = inv.golden.are_outputs_alone(evidence.feed)
    if unseen and (kept := _keeps_state(inv, worst)):
        return kept
    if words := _contradicts_itself(inv, worst):
        inv.record.answered(QUESTION, f"no: {words}; float64 takes its place")
        exact = inv.about(dataclasses.replace(inv.question, reference=CORRECTLY_ROUNDED))
        again = _judged_again(exact, evidence)
        return Answer(
            findings=Findings(results=again, exact_reference=f"float64 is the reference: {words}"),
            question=exact.question,
        )
    try:
        views = [] if unseen else opinions(inv, evidence.feed, doubted(inv, evidence.feed))
    except (EngineError, UsageError) as problem:
        inv.record.answered(QUESTION, f"unknown: {problem.message}")
        return None
    if wrong := [opinion for opinion in views if opinion.reference_is_alone]:
        return reference_is_wrong(inv, wrong, QUESTION)
    if any(opinion.float64_is_alone for opinion in views):
        opinion = next(opinion for opinion in views if opinion.float64_is_alone)
        inv.record.answered(
            QUESTION,
            f"float64 alone differs at '{opinion.value}' by {error_size(opinion.error(REFERENCE, FLOAT64))}: floors "
            "are measured by jittered inputs instead",
            value=opinion.value,
        )
        doubting = inv.about(dataclasses.replace(inv.question, trusts_float64=False))
        return Answer(findings=Findings(results=_judged_again(doubting, evidence)), question=doubting.question)
    disputed = [opinion for opinion in views if opinion.disputed]
    place = (
        f"; they diverge at '{disputed[0].value}', and {_sides(disputed[0])}"
        if disputed
        else "; it shows its outputs alone, so that no op can be named: the file is not what it computes" * unseen
    )
    words = (
        f"output '{first}' of the reference differs by {error_size(outside[first].error)} from what the model "
        f"computes, a healthy engine stays within {error_size(outside[first].limit)}{place}"
    )
    inv.record.answered(QUESTION, f"no: {words}", outputs=list(outside)[:12])
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        REFERENCE_OUTSIDE.on(inv.question.inputs_word),
        f"the reference {inv.question.reference} and the model disagree: {words}",
        culprits=[culprit_of(inv, opinion) for opinion in disputed],
        next=[triage_command(inv.question, "run", "--reference", "float64", "--target", str(inv.question.reference))],
    )


def _judged_again(inv: Investigation, evidence: Evidence) -> tuple[FeedResult, ...]:
    """Return the results on the same feeds by another reference, or by other floors."""
    floors = output_floors(inv)
    return tuple(judge(inv, each.feed, deployed(inv, each.feed), floors) for each in evidence.results)


def unsteady(inv: Investigation, feed: Feed) -> str:
    """Return why an engine, reference and target of the investigation, gives way to float64 on a feed; or nothing.

    Not where it is steady, nor where it keeps state between runs: then it is wrong.

    Raises:
        EngineError: When it fails.
        Unsound: When its outputs differ in shape from run to run.
    """
    result = judge(inv, feed, deployed(inv, feed), output_floors(inv))
    outside = outside_envelope(result.floors, list(result.metrics))
    words = _contradicts_itself(inv, result) if outside else ""
    return "" if words and inv.golden.are_outputs_alone(feed) and _keeps_state(inv, result) else words


def _contradicts_itself(inv: Investigation, worst: FeedResult) -> str:
    """Return how far the reference's results differ from run to run, in words; empty where that is rounding."""
    try:
        seen = repeated(inv.about(dataclasses.replace(inv.question, target=inv.question.reference)), worst)
    except EngineError:
        return ""
    floors = worst.floors.fp32
    beyond = {name: error for name, error in seen.moved.items() if not within_fp32(error, floors.get(name, 0.0))}
    most = max(beyond, key=lambda name: beyond[name], default="")
    words = f"{inv.question.reference} gives other results from run to run, output '{most}' by "
    return words + error_size(beyond[most]) if beyond else ""


def _sides(opinion: Opinion) -> str:
    """Return which engines take which side, as a clause."""
    if not opinion.against or not opinion.agreeing:
        return "no other engine can decide which of them is right"
    return (
        f"engines disagree: {enumeration(opinion.against)} agree with each other, and {enumeration(opinion.agreeing)} "
        "with the reference"
    )


def _keeps_state(inv: Investigation, worst: FeedResult) -> Conclusion | None:
    """Return the verdict on a reference whose results depend on what it ran before; None where they do not."""
    as_target = dataclasses.replace(inv.question, target=inv.question.reference, reference=PLAIN)
    order = run_order(inv.about(as_target), worst.feed, worst.floors.fp32)
    if not order.words:
        return None
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        OBSERVED,
        f"the reference {inv.question.reference} keeps state between runs, and a model in ONNX keeps none: "
        f"{order.words}. Cure: make that state an input and an output of the model, or reset it before every run of "
        "the reference",
    )


def at_the_culprit(inv: Investigation, feed: Feed, value: str, error: float) -> Conclusion | None:
    """Before a target is blamed for an op: does any other engine agree with the reference there?

    Args:
        inv: The investigation.
        feed: The feed on which the op is wrong.
        value: Its result.
        error: The target's relative error there: where the reference is off by no more than a tenth of it, the target
            is wrong all the same.
    """
    question = "is the target wrong there, or the reference?"
    try:
        views = opinions(inv, feed, [value])
    except (EngineError, UsageError) as problem:
        inv.record.answered(question, f"unknown: {problem.message}")
        return None
    if not views:
        return None
    opinion = views[0]
    off = opinion.error(REFERENCE, FLOAT64)
    off_by = f"'{value}' of the reference differs by {error_size(off if opinion.reference_is_alone else error)}"
    if opinion.reference_is_alone and not is_minor(off, error):
        if inv.golden.are_outputs_alone(feed):
            others = f"from what others make of the operands that {PLAIN} computes"
            return _undecided(
                inv, question, f"{off_by} {others}; it shows its outputs alone, so that no op can be named"
            )
        return reference_is_wrong(inv, views, question)
    agreeing = opinion.agreeing
    if agreeing:
        answer = f"the target: {enumeration(agreeing)} agree{'s' * (len(agreeing) == 1)} with the reference"
    elif opinion.reference_is_alone:
        answer = f"the target: the reference is off as well, by {error_size(off)}, which is a small part of it"
    elif is_foreign(inv.question.reference.name):
        return _undecided(inv, question, f"{off_by} from the target's, and no other engine agrees with either")
    else:
        answer = "unknown: no other engine agrees with either"
    inv.record.answered(
        question,
        answer,
        errors={name: opinion.error(name, REFERENCE) for name in opinion.results if name != REFERENCE},
        bound=opinion.bound,
    )
    return None


def _undecided(inv: Investigation, question: str, words: str) -> Conclusion:
    """Record that nobody can say whether a program as the reference is wrong or the op, and return the verdict."""
    inv.record.answered(question, f"unknown: {words}")
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        REFERENCE_OUTSIDE.on(inv.question.inputs_word),
        f"the reference {inv.question.reference} and the model disagree: output {words}",
        next=[triage_command(inv.question, "run", "--reference", str(PLAIN), "--target", str(inv.question.reference))],
    )


def reference_is_wrong(inv: Investigation, wrong: Sequence[Opinion], question: str) -> Conclusion:
    """Record that no engine agrees with the reference, and return the verdict."""
    culprits = [culprit_of(inv, opinion) for opinion in wrong]
    first = culprits[0]
    precision = resolve(inv.question.reference).precision
    narrow = f"; it computes in {precision.value}, which a reference should not" if precision in ROUNDED else ""
    inv.record.answered(
        question,
        f"no: the reference is wrong at {first.op_type} '{first.node}'{narrow}",
        values=[opinion.value for opinion in wrong],
        errors={
            opinion.value: {name: opinion.error(REFERENCE, name) for name in opinion.results if name != REFERENCE}
            for opinion in wrong
        },
        bounds={opinion.value: opinion.bound for opinion in wrong},
    )
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        REFERENCE_CONTRADICTED.on(inv.question.inputs_word),
        f"the reference {inv.question.reference} is wrong at {first.op_type} '{first.node}': {first.reason}{narrow}",
        culprits=culprits,
        next=[
            triage_command(
                inv.question,
                "diagnose",
                "--reference",
                better_than(inv, wrong[0]),
                "--target",
                str(inv.question.target),
            )
        ],
    )


def better_than(inv: Investigation, opinion: Opinion) -> str:
    """Return an engine to take as the reference instead: one that contradicts it, float64 at last."""
    others = [
        spec for name, spec in independent_engines(inv).items() if name in opinion.against and spec.name != "float64"
    ]
    return str(next((spec for spec in others if spec != inv.question.target), "float64"))


def culprit_of(inv: Investigation, opinion: Opinion) -> Culprit:
    """Return the op at which the reference is contradicted."""
    node = inv.model.graph.producer(opinion.value)
    assert node is not None
    against = opinion.against or (FLOAT64,)
    error = opinion.error(REFERENCE, against[0])
    agreeing = f"{enumeration(against)} agree" if len(against) > 1 else f"{against[0]} disagrees"
    same = opinion.same_code
    copied = (
        f"; {enumeration(same)} alone gives its numbers, whose kernels it may run" if same and opinion.against else ""
    )
    return Culprit(
        node.name,
        node.op_type,
        opinion.value,
        local_error=error,
        floor_ratio=error / opinion.floor if opinion.floor else None,
        reason=f"on equal operands {agreeing}, and the reference differs by {error_size(error)}{copied}",
    )


def doubted(inv: Investigation, feed: Feed) -> list[str]:
    """Return the values whose op the reference computes as no healthy engine would, on its own operands."""
    operands = golden_operands(inv, feed)
    golden, specs, what = operands.golden, operands.specs, "each op alone"
    excess: dict[str, float] = {}
    for nodes in parts_of(inv, golden):
        ops = operands.apart([[name] for name in nodes])
        values, setting = ops.values, inv.setting(ops.feed, ops.model)
        floors = floors_of(setting, values, judged=setting.of_reference(golden, values), specs=specs, what=what)
        for name, dispute in outside_envelope(floors, values).items():
            excess[name] = dispute.error / dispute.limit if dispute.limit else float("inf")
    return sorted(excess, key=lambda name: -excess[name])[:MOST_DOUBTED]
