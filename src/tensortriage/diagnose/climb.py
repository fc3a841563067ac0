"""Climbs the ladder: asks its questions in order, answered by evidence, until one answer is decisive."""

from collections.abc import Collection, Sequence

from tensortriage.diagnose.ladder import (
    BEFORE,
    BESIDE_ROUNDING,
    IN_THE_END,
    OF_ANOTHER_MODEL,
    OF_THE_FIRST_RUN,
    OF_THE_NUMBERS,
    OF_THE_OUTPUTS,
    ONCE_IT_FAILS,
    ONCE_IT_PASSES,
    complete,
    of_a_fault,
)
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import noise_of
from tensortriage.diagnose.measurements.suggested_commands import layers_command, reduce_command
from tensortriage.diagnose.rungs.rung import Rung
from tensortriage.diagnose.state.confidence import UNDECIDED, unfailing
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.capabilities import RunsGivenEngines
from tensortriage.engines.registry import resolve
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.oddities import constant_inputs
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import count, percent, times


@frozen_dataclass
class ClimbResult:
    """The end of a climb.

    Attributes:
        conclusion: That of the decisive rung, or of the evidence where none was.
        evidence: All that was found out.
        investigation: The question that it is the conclusion on, which may be another than the user's: about the
            target's own model, or about an emulated format.
    """

    conclusion: Conclusion
    evidence: Evidence
    investigation: Investigation


def climb(inv: Investigation) -> ClimbResult:
    """Ask the questions in order until an answer is decisive."""
    climber = _Climber(inv)
    conclusion = climber.climb()
    return ClimbResult(conclusion, climber.evidence, climber.inv)


class _Climber:
    """State of a climb: the only place at which evidence is merged, or another question taken up."""

    def __init__(self, inv: Investigation) -> None:
        self.inv = inv
        self.evidence = Evidence()
        self.answered: set[Rung] = set()

    def ask(self, rung: Rung) -> Conclusion | None:
        """Ask a question, and store its findings."""
        answer = rung(self.inv, self.evidence)
        self.answered.add(rung)
        self.evidence = self.evidence.with_(**answer.findings)
        if answer.question is not None:
            self.inv = self.inv.about(answer.question)
        return answer.verdict

    def first_of(self, rungs: Sequence[Rung]) -> Conclusion | None:
        """Ask questions in order, until an answer is decisive."""
        return next(filter(None, map(self.ask, complete(rungs))), None)

    def climb(self) -> Conclusion:
        """Return the conclusion, as far as the budget allows."""
        try:
            found = self.first_decisive()
        except BudgetSpent:
            found = self.evidence.rounded or out_of_budget(self.inv, self.evidence, self.answered)
        self.evidence = self.evidence.with_(concluded=found)
        rungs = () if found.kind is VerdictKind.MATCH else of_a_fault()
        rungs += IN_THE_END if found.kind in (VerdictKind.MATCH, VerdictKind.ROUNDING) else ()
        try:
            return self.first_of(rungs) or found
        except BudgetSpent:
            self.inv.record.unasked(*(rung.title for rung in rungs))
        return found

    def first_decisive(self) -> Conclusion:
        """Climb until an answer is decisive.

        Raises:
            BudgetSpent: When the time is over before.
        """
        if verdict := self.first_of(BEFORE):
            return verdict
        if (changed := self.inv.question.target_model) is not None:
            if verdict := self.first_of(OF_ANOTHER_MODEL):
                return verdict
            self.inv = self.inv.about(self.inv.question.on_model(changed))
        if verdict := self.first_of(OF_THE_NUMBERS):
            return verdict
        answers = [self.ask(rung) for rung in complete(OF_THE_FIRST_RUN)]
        if verdict := next(filter(None, answers), None) or self.first_of(OF_THE_OUTPUTS):
            return verdict
        if self.evidence.worst_feed.passes:
            return self.first_of(ONCE_IT_PASSES) or match(self.inv, self.evidence)
        for rung in complete(ONCE_IT_FAILS):
            if self.evidence.rounded is not None and rung not in BESIDE_ROUNDING:
                continue
            if verdict := self.ask(rung):
                return verdict
        return self.evidence.rounded or inconclusive(self.inv, self.evidence)


def match(inv: Investigation, evidence: Evidence) -> Conclusion:
    """Everything agrees: the more samples, and the more real they are, the surer."""
    worst = evidence.worst_feed
    name, _, ratio = worst.worst_output()
    samples = len(evidence.results)
    unasked = "".join(f"; skipped: {reason}" for reason in evidence.unasked)
    limit = "within the tolerance given" if inv.question.tolerance else f"{times(ratio)} the fp32 noise floor"
    constant = constant_inputs(inv.question.feeds)
    shown = f"; made-up data were tried too, since these prove little ({constant}): give real data" if constant else ""
    far = f"worst output '{name}' {worst.in_words(name, noise_of(inv))}, {limit}"
    if all(result.is_equal for result in evidence.results):
        far = "every number of every output is equal"
    return Conclusion(
        VerdictKind.MATCH,
        unfailing(samples, "random" if constant else inv.question.inputs_word),
        f"{inv.question.target} agrees with {inv.question.reference} on {count(samples, 'feed')}: {far}{shown}"
        f"{unasked}",
    )


def inconclusive(inv: Investigation, evidence: Evidence) -> Conclusion:
    """Nothing was decisive: state the evidence, and what it excludes."""
    name, _, _ = evidence.worst_feed.worst_output()
    target = inv.question.target
    look = layers_command(inv.question)
    commands = [reduce_command(inv.question), look]
    engine = resolve(target).engine
    anew = engine.without_file(target.options) if isinstance(engine, RunsGivenEngines) else None
    if anew is not None:
        known = "an engine from a file runs as a whole: give the options that it was built with to learn the op"
        commands = [triage_command(inv.question, "diagnose", "--target", str(target.with_options(anew)))]
    elif evidence.influence is not None:
        known = f"the ops that are wrong in isolation explain only {percent(evidence.influence.explained)} of the error"
    elif evidence.local is not None and evidence.local.metrics:
        known = "no op or group of ops reproduces it in isolation: an effect of the whole graph is likely"
    else:
        known = "the ops could not be run one by one"
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        UNDECIDED,
        f"{target} fails: output '{name}' {evidence.worst_feed.in_words(name, noise_of(inv))}, rounding does "
        f"not explain it, and {known}",
        next=commands,
    )


def out_of_budget(inv: Investigation, evidence: Evidence, answered: Collection[Rung]) -> Conclusion:
    """The time is over: state the evidence, and the questions that were skipped."""
    inv.record.unasked(*dict.fromkeys(rung.title for rung in complete(ONCE_IT_FAILS) if rung not in answered))
    if evidence.results and not evidence.worst_feed.passes:
        name, _, _ = evidence.worst_feed.worst_output()
        known = f"{inv.question.target} fails: output '{name}' {evidence.worst_feed.in_words(name, noise_of(inv))}"
    elif evidence.results:
        known = f"{inv.question.target} agrees on {len(evidence.results)} feeds so far"
    else:
        known = f"nothing is known about {inv.question.target} yet"
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        UNDECIDED,
        f"the budget of {inv.question.budget_seconds:g} s is spent: {known}; run the same command with a larger "
        "--budget to resume",
        next=[
            triage_command(
                inv.question, "diagnose", "--target", str(inv.question.target), "--case", str(inv.lab.case.folder)
            )
        ],
    )
