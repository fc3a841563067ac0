"""A study of builds as text: how many are bad, how they differ, which tactic is guilty, the next step."""

import shlex
from collections.abc import Iterator

from tensortriage.sdk import RepeatStop, count, duration, magnitude, percent
from tensortriage_builds.study_result import BuildStudy, Deployed, Pinned, SuspectChoice, TacticBlame
from tensortriage_builds.trial import BuildJudgement

WORDS = {BuildJudgement.GOOD: "good", BuildJudgement.BAD: "bad", BuildJudgement.OTHER: "inconclusive"}
MOST_SHOWN = 5
_ENDED = {
    RepeatStop.MOST_RUNS.value: "; stopped at the maximum number of builds",
    RepeatStop.BUDGET.value: "; stopped by the budget",
    RepeatStop.INTERRUPTED.value: "; interrupted",
}


def study_lines(study: BuildStudy, *, case: str) -> Iterator[str]:
    """Yield the lines that end a study.

    Args:
        study: The result.
        case: Directory of the case, for the commands to run next.
    """
    yield ""
    yield (
        f"{count(len(study.trials), 'build')}: {study.good} good, {study.bad} bad"
        + (f", {study.unresolved} inconclusive" if study.unresolved else "")
        + f", {duration(study.seconds)}"
        + _ENDED.get(study.stop, "")
    )
    if study.rate is not None:
        yield (
            f"bad builds: {percent(study.rate)}; between {percent(study.low)} and {percent(study.high)} with "
            f"{percent(study.confidence)} confidence"
        )
    yield from _differences(study)
    if study.deployed is not None:
        yield _deployed(study.deployed)
    yield from _suspects(study.suspects, study.blame)
    if study.blame is not None:
        yield from _blame(study.blame)
    if study.pinned is not None:
        yield from _pinned(study.pinned)
    if study.good and study.bad:
        yield f"next: triage inspect diff-tactics --dir {shlex.quote(case)}"


def _differences(study: BuildStudy) -> Iterator[str]:
    if study.distinct_outputs > 1 and study.spread is not None:
        spread = study.spread
        yield (
            f"outputs: {study.distinct_outputs} different ones; builds {spread.builds[0]} and {spread.builds[1]} "
            f"differ most: by {magnitude(spread.max_abs)} at output '{spread.output}' (relative "
            f"{magnitude(spread.relative, 2)})"
        )
    elif study.distinct_outputs == 1:
        yield "outputs: the same in every build, bit by bit"
    if study.distinct_plans:
        yield f"choices: {count(study.distinct_plans, 'different set')} of tactics or plans"
    elif study.trials:
        yield "choices: the engine reports neither tactics nor a plan"


def _deployed(deployed: Deployed) -> str:
    word = WORDS[deployed.trial.judgement]
    if deployed.seen is None:
        return f"as deployed, tactics not recorded: {word}"
    if deployed.seen:
        return f"as deployed, tactics not recorded: {word}, with outputs that a recorded build has as well"
    moved = f" (by {magnitude(deployed.moved.max_abs)} from build 0)" if deployed.moved is not None else ""
    return (
        f"as deployed, tactics not recorded: {word}, with outputs that no recorded build has{moved}: "
        "see --no-tactics for how much such builds differ"
    )


def _suspects(suspects: tuple[SuspectChoice, ...], blame: TacticBlame | None) -> Iterator[str]:
    if not suspects or (blame is not None and blame.guilty):
        return
    yield "choices that bad builds share (bad/good builds with it, without it; probability of being the cause):"
    for one in suspects[:MOST_SHOWN]:
        yield (
            f"  {one.layer}: {one.choice}  {one.bad_with}/{one.good_with}, {one.bad_without}/{one.good_without}; "
            f"{percent(one.probability)}"
        )
    if len(suspects) > MOST_SHOWN:
        yield f"  ... and {len(suspects) - MOST_SHOWN} more"


def _blame(blame: TacticBlame) -> Iterator[str]:
    if not blame.guilty:
        yield f"no guilty choice: {blame.reason}"
        return
    for one in blame.guilty:
        nodes = f" (nodes {', '.join(one.nodes)})" if one.nodes and one.nodes != (one.layer,) else ""
        yield f"guilty: layer '{one.layer}'{nodes}: bad with {one.bad.label}, good with {one.good.label}"
    cured = {
        True: "replacing this choice alone makes a bad build good",
        False: "but replacing this choice alone leaves a bad build bad: there is more than one cause",
        None: "the cure was not tried",
    }[blame.cured]
    yield (
        f"confirmed in {count(blame.builds, 'build')} with given tactics, out of {blame.differing} differing layers; "
        f"{cured}"
    )


def _pinned(pinned: Pinned) -> Iterator[str]:
    trial = pinned.trial
    word = WORDS[trial.judgement]
    if pinned.same_outputs is None:
        yield f"a good build remade from its tactics is {word}"
        return
    same = "bit by bit the same outputs" if pinned.same_outputs else "other outputs than it had"
    again = "" if pinned.again_same is None else "; repeated twice " + ("the same" if pinned.again_same else "others")
    yield f"a good build remade from its tactics is {word}, with {same}{again}"
