"""Do reference and target answer at all, and is what they answer comparable? Then, whether it differs too much."""

from tensortriage.compare.judgement.relative_error import say_ratio
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.reference_checks import has_nan
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.misshapen import behind_the_outputs
from tensortriage.diagnose.measurements.outputs import OutputFigures, Unsound, deployed, judge, output_floors
from tensortriage.diagnose.measurements.own_nan import nan_of_reference
from tensortriage.diagnose.measurements.soundness import WORDS, failed, is_constant
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import IN_ANOTHER_LAYOUT, OBSERVED, SILENT_REFERENCE
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.lab import Mark
from tensortriage.runs.outcome import Outcome, OutcomeKind
from tensortriage.search.statistics.repeats import Rate

SOUND = "is the reference sound?"
ABOVE = "does it fail above the noise floor?"


@rung(SOUND)
def reference_is_sound(inv: Investigation, _: Evidence) -> Verdict | None:
    """Run the reference on every feed; its outputs must be free of NaN. Constant ones are seen to by `says_nothing`."""
    since = inv.mark()
    for feed in inv.question.feeds:
        try:
            golden = inv.golden_outputs(feed)
        except EngineError as error:
            inv.answered(SOUND, f"no: {inv.question.reference} {WORDS[Outcome.of(error).kind]}", since=since)
            return inv.verdict(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference {inv.question.reference} {WORDS[Outcome.of(error).kind]}: {error.message}",
                next=[inv.command("run", "--reference", str(inv.question.reference))],
            )
        outputs = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}
        broken = [name for name, array in outputs.items() if has_nan(array)]
        if broken:
            culprit, born = nan_of_reference(inv, feed, broken[0])
            answer = f"no: output '{broken[0]}' of the reference holds NaN{born}"
            inv.answered(SOUND, answer, since=since, outputs=broken)
            return inv.verdict(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference itself gives NaN in output '{broken[0]}' on {feed.name}{born or ': check the inputs'}",
                culprits=[culprit] if culprit else [],
                next=[inv.command("inspect data")],
            )
    state = "hardly: every output is empty or one constant" if is_silent(inv) else "yes: finite, not constant"
    inv.answered(SOUND, state, since=since, feeds=len(inv.question.feeds))
    return None


def is_silent(inv: Investigation) -> bool:
    """Say whether every output of the reference is empty or constant on every feed."""
    for feed in inv.question.feeds:
        golden = inv.golden_outputs(feed)
        outputs = [golden[spec.name] for spec in inv.model.outputs if spec.name in golden]
        if not outputs or not all(map(is_constant, outputs)):
            return False
    return True


@rung("does the reference say anything?")
def says_nothing(inv: Investigation, _: Evidence) -> Verdict | None:
    """Agreement with a reference that is empty or constant proves nothing (disagreement would have)."""
    if not is_silent(inv):
        return None
    return inv.verdict(
        VerdictKind.COMPARISON_UNSOUND,
        SILENT_REFERENCE,
        "every output of the reference is empty or constant on every feed, so that agreement proves nothing: "
        "give inputs on which the model does something",
    )


@rung("does the target build and run?", gives=("results",))
def compare_outputs(inv: Investigation, _: Evidence) -> Answer | Verdict:
    """Run the deployed target on every feed; a verdict when it could not be done."""
    since = inv.mark()
    question = f"does {inv.question.target} build and run?"
    measured: list[tuple[Feed, OutputFigures]] = []
    for feed in inv.question.feeds:
        try:
            measured.append((feed, deployed(inv, feed)))
        except EngineError as error:
            inv.answered(question, f"no: {error.message}", since=since, feed=feed.name)
            stumbles = Outcome.of(error).kind is OutcomeKind.RUN_FAILED  # maybe over what an op before made
            return (behind_the_outputs(inv, feed) if stumbles else None) or failed(inv, error)
        except Unsound as problem:
            return incomparable(inv, problem, feed, since)
    repeat = {"commands": list(inv.tally.commands)} if inv.tally.commands else {}
    inv.answered(question, "yes", since=since, precision=inv.precision.value, feeds=len(measured), **repeat)
    floors = output_floors(inv)
    results = tuple(judge(inv, feed, figures, floors) for feed, figures in measured)
    return Answer(findings=Findings(results=results))


def incomparable(inv: Investigation, problem: Unsound, feed: Feed, since: Mark) -> Verdict:
    """The outputs cannot be compared as they are; where their values are the right ones in another layout, say so."""
    places = f"; {problem.places}" if problem.places else ""
    inv.answered("are the outputs comparable?", f"no: {problem}{places}", since=since, feed=feed.name)
    if problem.layout:
        return inv.verdict(
            VerdictKind.LAYOUT, IN_ANOTHER_LAYOUT, f"{problem.places}; the values are right: give it the model's layout"
        )
    if not problem.places and (verdict := behind_the_outputs(inv, feed)):
        return verdict
    return inv.verdict(VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"{problem}{places}: nothing to compare")


@rung(ABOVE, reads=("results",))
def above_the_floor(inv: Investigation, evidence: Evidence) -> None:
    """Record whether any output of any feed fails."""
    since, results, worst = inv.mark(), evidence.results, evidence.worst
    name, error, ratio = worst.worst
    limit = "the tolerance given" if inv.question.tolerance is not None else f"{MATCH_FACTOR:g}x the fp32 noise floor"
    fails = not worst.passes
    failing = sum(not result.passes for result in results)
    inv.answered(
        ABOVE,
        f"{'yes' if fails else 'no'}: output '{name}' {worst.in_words(name)}, {say_ratio(ratio)}"
        + (f", on {failing} of {len(results)} feeds" if fails else ""),
        since=since,
        output=name,
        feed=worst.feed.name,
        relative_error=error,
        floor_ratio=ratio,
        limit=limit,
        failing_feeds=failing,
        failing_share_95=Rate(failing, len(results)).interval(0.95),
        feeds=len(results),
        floor_source=worst.floors.source,
    )
