"""Is the target at one with itself? Where it passes so far, rows that the model makes equal are put to it.

Given data have one batch size and one order of rows; the fault of a kernel for another size does not show on them, nor
does one that needs another stream, or another address of memory. Batches on which the target contradicts itself are
diagnosed as if they had been given as data, and another number of threads as if it had been an option.
"""

import dataclasses
import time
from collections.abc import Iterable, Sequence

from tensortriage.diagnose.sdk import (
    MOVES_UNNAMED,
    OBSERVED,
    OVERWRITTEN,
    Answer,
    Conclusion,
    Culprit,
    EngineError,
    EngineSpec,
    Evidence,
    Experiment,
    Feed,
    FeedResult,
    Findings,
    Investigation,
    Measurement,
    Unsound,
    UsageError,
    VerdictKind,
    another_feed,
    batch_axes,
    beyond_format,
    builds_vary,
    count,
    deployed,
    gather_rows,
    is_foreign,
    judge,
    of_order,
    output_floors,
    run_order,
    rung,
)
from tensortriage_steps.consistency.relations import ROWS, ClaimKind, EqualityClaim, row_relations
from tensortriage_steps.consistency.self_check import ClaimOutcome, SelfAnswer, SelfCheck

QUESTION = "do equal inputs give equal results?"

SLOW_BUILD_SECONDS = 5.0
"""Engines that build for a batch size build again for each; where that takes longer, only the given size runs."""

MOST_SECONDS = 20.0
"""Of processor time, after which no further test begins: where rows are mixed, as by dynamic quantization, each is an
evaluation of the model."""

QUICK_BUILD_SECONDS, FOREIGN_BUILD_SECONDS = 0.5, 5.0
"""A second stream costs one more build, which should go unnoticed. With engines of other authors, which are less tried,
most of it is the start of a process, and builds are compared five times anyway. Threads cost two more builds, with
these engines only."""

IN_FULL = "triage check consistency checks it"


@dataclasses.dataclass(frozen=True, slots=True)
class SelfAnswers:
    """Outcomes of the claims in their order, and the claims left out; stored in the case."""

    answers: tuple[SelfAnswer, ...]
    unasked: tuple[str, ...] = ()


@rung(
    QUESTION,
    reads=("results",),
    gives=("results", "unasked"),
    cost="about fifteen runs, and one to three quick builds",
    ends=(VerdictKind.NONDETERMINISTIC_RUN,),
    after="does the reference compute what the model defines?",
)
def contradictions(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Look for rows and ways to run on which the target contradicts itself; not where it fails already.

    Batches are added to the results, another number of threads becomes the question; equal inputs with other results
    are the verdict.
    """
    if inv.question.tolerance is not None or any(beyond_format(inv, result) for result in evidence.results):
        return None
    try:
        claims, unasked = _claims(inv)
        found = _answers(inv, claims, unasked)
    except (EngineError, UsageError) as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    answers = found.answers
    broken = [answer for answer in answers if answer.outcome == ClaimOutcome.BROKEN.value]
    not_held = [answer for answer in answers if answer.outcome != ClaimOutcome.HOLDS.value]
    sentences = "; ".join(f"{each.question} {each.answer}" for each in (broken or not_held))
    left = "; ".join(f"skipped: {reason}" for reason in found.unasked)
    tests = ", ".join(dict.fromkeys(each.relation.replace("-", " ") for each in answers))
    held = f"yes ({count(len(answers), 'test')}: {tests})"
    inv.record.answered(QUESTION, "; ".join(filter(None, (sentences or held, left))), answers=answers)
    rows = [each for each in broken if not each.unstable and not ClaimKind(each.relation).whole]
    unstable = [each for each in broken if each.unstable]
    left_out = Findings(unasked=tuple(unasked))
    if not rows and unstable:
        return _unstable(inv, unstable)
    names = {name for each in rows for name in (each.left, each.right)}
    feeds = {feed.name: feed for claim in claims for feed in (claim.left, claim.right) if feed.name in names}
    results = _judged(inv, feeds.values())
    if results or not broken:
        return Answer(findings=Findings(results=(*evidence.results, *results), **left_out))
    wrong = next((each.engine for each in broken if each.engine), "")
    if not wrong:
        return Answer(findings=left_out)
    question = inv.question.on_target(EngineSpec.parse(wrong), kept=inv.question.kept)
    again = _judged(inv.about(question), inv.question.feeds)
    return Answer(findings=Findings(results=again or evidence.results, **left_out), question=question)


def _judged(inv: Investigation, feeds: Iterable[Feed]) -> tuple[FeedResult, ...]:
    results: list[FeedResult] = []
    for feed in feeds:
        try:
            results.append(judge(inv, feed, deployed(inv, feed), output_floors(inv)))
        except (EngineError, Unsound):  # then the others tell
            continue
    return tuple(results)


def _unstable(inv: Investigation, broken: Sequence[SelfAnswer]) -> Conclusion:
    """Return the verdict on a target whose results equal inputs do not determine."""
    first = next((each for each in broken if each.node), broken[0])
    culprits = []
    if first.node:
        reason = f"the first value that differs: {first.question}"
        culprits = [Culprit(first.node, first.op_type, first.value, reason=reason)]
    if ClaimKind(first.relation) is ClaimKind.HELD:
        return of_order(inv, OVERWRITTEN, f"{first.question} {first.answer}")
    if (order := run_order(inv, inv.question.feeds[0], {})).words:
        return of_order(inv, order, f"{first.question} {first.answer}", culprits)
    return Conclusion(
        VerdictKind.NONDETERMINISTIC_RUN,
        OBSERVED if culprits else MOVES_UNNAMED,
        f"{inv.question.target} gives different results for equal inputs: {first.question} {first.answer}",
        culprits=culprits,
    )


def _claims(inv: Investigation) -> tuple[list[EqualityClaim], list[str]]:
    """Return the claims about rows, and the reasons for skipping others."""
    unasked: list[str] = []
    axes = batch_axes(inv.model.inputs)
    own = axes.rows_in(inv.question.feeds[0]) if axes is not None else 0
    if axes is None or not own:
        return [], unasked
    slow, replaced = _deployed(inv).build_seconds > SLOW_BUILD_SECONDS, _would_be_replaced(inv)
    if (slow or replaced) and axes.fixed is None:
        axes = dataclasses.replace(axes, fixed=own)
        why = "a build takes long" if slow else "another build may differ"
        unasked.append(f"batches of other sizes than {own} ({why}; {IN_FULL})")
    wanted = axes.fixed or max(ROWS, own)
    rows = gather_rows(inv.model, inv.question.feeds, axes, wanted)
    if len(rows.rows) < 2:
        unasked.append("rows: there is one, and none can be made up; give more with --inputs")
        return [], unasked
    return row_relations(rows, whole=False), unasked


def _would_be_replaced(inv: Investigation) -> bool:
    """Return whether feeding another batch size would replace the deployed engine by one that may differ from it."""
    return _deployed(inv).builds_made > 0 and builds_vary(inv) is not False


def _deployed(inv: Investigation) -> Measurement:
    """Return the first run, which includes the deployed build; the same after a resume."""
    return inv.lab.answer(Experiment(engine=inv.question.target, model=inv.model, feed=inv.question.feeds[0]))


def _answers(inv: Investigation, claims: list[EqualityClaim], unasked: list[str]) -> SelfAnswers:
    """Return the outcomes of claims about rows and about ways to run a feed, and the skipped ones."""
    feed, target = claims[0].left if claims else inv.question.feeds[0], inv.question.target
    foreign = is_foreign(target.name)
    quick = _deployed(inv).build_seconds <= (FOREIGN_BUILD_SECONDS if foreign else QUICK_BUILD_SECONDS)
    streams = quick and not _would_be_replaced(inv)
    threads = streams and foreign

    def ask() -> SelfAnswers:
        check = SelfCheck(inv.lab, inv.model, target, at_sight=True, before=inv.question.feeds)
        left_out = [*unasked]
        if not threads:
            left_out.append(f"other thread counts{'' if streams else ', two streams'} ({IN_FULL})")
        other = another_feed(inv.model, feed, inv.question.feeds)
        whole = check.whole_claims(feed, other, left_out, streams=streams, threads=threads)
        began, answers = time.process_time(), list[SelfAnswer]()
        for number, claim in enumerate(asked := [*claims, *whole]):
            if time.process_time() - began > MOST_SECONDS:
                left_out.append(
                    f"{count(len(asked) - number, 'more test')}: the model takes long to evaluate ({IN_FULL})"
                )
                break
            answers.append(check.ask(claim))
        return SelfAnswers(tuple(answers), tuple(left_out))

    names = [claim.right.name for claim in claims]
    return inv.lab.derived(SelfAnswers, QUESTION, target, inv.model, feed, names).of(ask)
