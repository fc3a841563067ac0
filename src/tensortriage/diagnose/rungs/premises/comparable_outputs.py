"""Do reference and target run, and are their outputs comparable? Then, whether it differs too much."""

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import is_noise
from tensortriage.compare.reference_checks import has_nan
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.misshapen import behind_the_outputs
from tensortriage.diagnose.measurements.nonfinite_values.own_nan import nan_of_reference
from tensortriage.diagnose.measurements.outputs import OutputFigures, Unsound, deployed, judge, output_floors
from tensortriage.diagnose.measurements.soundness import WORDS, failed, is_silent, silent
from tensortriage.diagnose.rungs.premises.made_up_anew import made_up_anew
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import IN_ANOTHER_LAYOUT, OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.explanations import PREDICTED
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import OddKind, oddities
from tensortriage.runs.outcome import Outcome, OutcomeKind
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.search.statistics.repeats import Rate
from tensortriage.values.text import error_size, noise_size, over_floor

SOUND = "is the reference sound?"
ALLOWED = "how large may a healthy engine's error be?"
ABOVE = "does the output differ by more than fp32 engines do?"


@rung(
    SOUND,
    cost="a run of the reference on every feed; if made-up data fail, one on each set tried",
    ends=(VerdictKind.COMPARISON_UNSOUND, VerdictKind.INCONCLUSIVE),
)
def reference_is_sound(inv: Investigation, _: Evidence) -> Answer | Conclusion | None:
    """Run the reference on every feed; its outputs must be free of NaN. Constant ones are seen to by `says_nothing`.

    Data that were made up are generated again where they do not run or are uninformative.
    """
    if (anew := made_up_anew(inv, SOUND)) is not None:
        return anew
    for feed in inv.question.feeds:
        try:
            golden = inv.golden.outputs(feed)
        except EngineError as error:
            inv.record.answered(SOUND, f"no: {inv.question.reference} {WORDS[Outcome.of(error).kind]}")
            return Conclusion(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference {inv.question.reference} {WORDS[Outcome.of(error).kind]}: {error.message}",
                next=[triage_command(inv.question, "run", "--reference", str(inv.question.reference))],
            )
        outputs = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}
        broken = [name for name, array in outputs.items() if has_nan(array)]
        given = [each for each in oddities([feed], inv.model.inputs) if each.kind is OddKind.NON_FINITE]
        if broken and given:
            inv.record.answered(SOUND, f"no: output '{broken[0]}' of the reference holds NaN, and so does the feed")
            return Conclusion(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the feed is not sound: {given[0].sentence}; output '{broken[0]}' of the reference is NaN with it",
                next=[triage_command(inv.question, "inspect data")],
            )
        if broken:
            culprit, born = nan_of_reference(inv, feed, broken[0])
            answer = f"no: output '{broken[0]}' of the reference holds NaN{born}"
            inv.record.answered(SOUND, answer, outputs=broken)
            return Conclusion(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference itself gives NaN in output '{broken[0]}' on {feed.name}{born or ': check the inputs'}",
                culprits=[culprit] if culprit else [],
                next=[triage_command(inv.question, "inspect data")],
            )
    state = (
        "not enough to compare: every output is empty or constant" if is_silent(inv) else "yes: finite, not constant"
    )
    inv.record.answered(SOUND, state, feeds=len(inv.question.feeds))
    return None


@rung(
    "can the reference's outputs prove anything?",
    cost="nothing new",
    ends=(VerdictKind.INCONCLUSIVE,),
)
def says_nothing(inv: Investigation, _: Evidence) -> Conclusion | None:
    """Agreement with a reference that is empty or constant proves nothing (disagreement would have)."""
    return silent(inv)


@rung(
    "does the target build and run?",
    gives=("results",),
    cost="a build; a run on every feed; evaluations of the model",
    ends=(
        VerdictKind.BUILD_FAILED,
        VerdictKind.ENGINE_CRASH,
        VerdictKind.ENGINE_HANG,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.LAYOUT,
        VerdictKind.LOCAL_FAULT,
        VerdictKind.INCONCLUSIVE,
    ),
)
def compare_outputs(inv: Investigation, _: Evidence) -> Answer | Conclusion:
    """Run the deployed target on every feed; a verdict when it could not be done."""
    question = f"does {inv.question.target} build and run?"
    measured: list[tuple[Feed, OutputFigures]] = []
    for feed in inv.question.feeds:
        try:
            measured.append((feed, deployed(inv, feed)))
        except EngineError as error:
            inv.record.answered(question, f"no: {error.message}", feed=feed.name)
            stumbles = Outcome.of(error).kind is OutcomeKind.RUN_FAILED  # maybe over what an op before made
            return (behind_the_outputs(inv, feed) if stumbles else None) or failed(inv, error, feed)
        except Unsound as problem:
            return incomparable(inv, problem, feed)
    repeat = {"commands": list(inv.lab.tally.commands)} if inv.lab.tally.commands else {}
    inv.record.answered(question, "yes", precision=inv.precision.value, feeds=len(measured), **repeat)
    floors = output_floors(inv)
    inv.record.answered(ALLOWED, allowed_in_words(inv, floors), fp32_floors=dict(floors.fp32), source=floors.source)
    results = tuple(judge(inv, feed, figures, floors) for feed, figures in measured)
    return Answer(findings=Findings(results=results))


def allowed_in_words(inv: Investigation, floors: Floors) -> str:
    """Return the largest error that a healthy engine may have at any output, in words."""
    name = max(floors.fp32, key=lambda n: (floors.target.get(n, 0.0), floors.fp32[n]), default=None)
    if name is None:
        return "unknown: the model has no output that can be compared"
    most = "a tenth of it or more" if is_noise(floors.fp32[name]) else error_size(floors.in_fp32(name).error)
    words = f"output '{name}' by {most} in fp32"
    if inv.precision not in PREDICTED:
        return words
    return f"{words}; rounding to {inv.precision.value} costs it {noise_size(floors.target.get(name, 0.0))}"


def incomparable(inv: Investigation, problem: Unsound, feed: Feed) -> Conclusion:
    """The outputs cannot be compared as they are; right values in another layout are reported as such."""
    places = f"; {problem.places}" if problem.places else ""
    inv.record.answered("are the outputs comparable?", f"no: {problem}{places}", feed=feed.name)
    if problem.layout:
        return Conclusion(
            VerdictKind.LAYOUT, IN_ANOTHER_LAYOUT, f"{problem.places}; the values are right: give it the model's layout"
        )
    if not problem.places and (verdict := behind_the_outputs(inv, feed)):
        return verdict
    return Conclusion(VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"{problem}{places or ': nothing to compare'}")


@rung(ABOVE, reads=("results",), cost="nothing new")
def above_the_floor(inv: Investigation, evidence: Evidence) -> None:
    """Record whether any output of any feed fails."""
    results, worst = evidence.results, evidence.worst_feed
    name, error, ratio = worst.worst_output()
    limit = "the tolerance given" if inv.question.tolerance is not None else f"{MATCH_FACTOR:g}x the fp32 noise floor"
    fails = not worst.passes
    failing = sum(not result.passes for result in results)
    expected = worst.floors.target.get(name, 0.0)
    words = over_floor(ratio)
    if inv.question.tolerance is not None:
        words = f"{'beyond' if fails else 'within'} the tolerance given"
    elif fails and inv.precision in PREDICTED and expected > 0.0:
        words = f"{inv.precision.value} is expected to cost {error_size(expected)}"
    far = "every number is equal" if worst.is_equal else f"output '{name}' {worst.in_words(name)}, {words}"
    inv.record.answered(
        ABOVE,
        f"{'yes' if fails else 'no'}: {far}"
        + (f"; on {failing} of {len(results)} feeds" if fails and len(results) > 1 else ""),
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
