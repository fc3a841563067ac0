"""Which choice makes a build bad? The one that makes a good build bad when nothing else is changed.

Ranking shows correlation; this proves causes. A good and a bad build differ in many choices; builds that take some of
them from the bad one and the rest from the good one are searched for the fewest that still make it bad (delta debugging
between a passing and a failing run: Zeller, FSE 2002), the suspects of the ranking first. Then it is confirmed with new
builds: the good build with just these choices must be bad, and the bad one without them good, every time. Builds that
are bad by chance, at whatever rate p, pass that with probability (p (1 - p))^n, at most 1/64 for n = 3.
"""

from collections.abc import Callable, Mapping, Sequence

from tensortriage.sdk import (
    AnswerCache,
    Cache,
    CandidateOutcome,
    Choice,
    OracleVerdict,
    Progress,
    Repeats,
    SearchBudget,
    SearchProblem,
    SearchStop,
    UsageError,
    digest,
    minimize,
)
from tensortriage_builds.build_maker import EngineBench
from tensortriage_builds.study_result import GuiltyChoice, TacticBlame
from tensortriage_builds.trial import BuildJudgement, BuildTrial

REPEATS = Repeats(premise=2, measure=6, limit=12, confirms=False)  # choices are pinned, and a build is expensive
"""Builds with equal tactics, meant to be alike, that are made to check this; each is expensive."""

CONFIRMATIONS = 3
"""New builds of each kind, the good one made bad and the bad one made good."""
_BY_CHANCE = (
    "builds with equal choices are sometimes bad and sometimes good: the cause is not among the reported tactics"
)

_OUTCOMES = {
    BuildJudgement.BAD: CandidateOutcome.SAME,
    BuildJudgement.GOOD: CandidateOutcome.PASS,
    BuildJudgement.OTHER: CandidateOutcome.UNRESOLVED,
}


def blame(
    bench: EngineBench,
    trials: Sequence[BuildTrial],
    suspicion: Mapping[str, float],
    *,
    cache: Cache | None = None,
    budget: SearchBudget | None = None,
    observe: Callable[[Progress[str]], None] | None = None,
) -> TacticBlame:
    """Find and confirm the choices that make a build bad.

    Args:
        bench: Makes builds with given choices.
        trials: Free builds, at least one good and one bad.
        suspicion: How much speaks against a layer.
        cache: Store of answers.
        budget: Limits of the search.
        observe: Receives every build.

    Raises:
        KeyboardInterrupt: When the search was interrupted; the cache has the answers so far.
    """
    good, bad = closest(trials)
    right, wrong = _by_layer(good), _by_layer(bad)
    differing = tuple(layer for layer in wrong if layer in right and right[layer].label != wrong[layer].label)
    if not differing:
        return TacticBlame(
            reason="a good and a bad build made the same choices: the cause is not among the reported tactics"
        )

    def mixed(candidate: Sequence[str]) -> tuple[Choice, ...]:
        chosen = frozenset(candidate)
        return tuple(wrong[layer] if layer in chosen else choice for layer, choice in right.items())

    def oracle(candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        trial = bench.build(f"given-{digest(list(candidate))[:8]}-{attempt}", mixed(candidate))
        return OracleVerdict(_OUTCOMES[trial.judgement], trial.signature, trial.reason)

    if reason := _unsteady(bench, oracle, differing, mixed(())):
        return TacticBlame(differing=len(differing), builds=REPEATS.premise + 1, reason=reason)
    problem = SearchProblem(
        differing,
        oracle,
        key=lambda c: digest(bench.identity, list(c), good.name, bad.name),
        suspicion={layer: suspicion.get(layer, 0.0) for layer in differing},
    )
    try:
        answers = AnswerCache.of(problem, cache)
        found = minimize(problem, answers=answers, budget=budget, repeats=REPEATS, observe=observe)
    except UsageError as error:
        return TacticBlame(differing=len(differing), builds=REPEATS.premise, reason=error.message)
    if found.stop is SearchStop.INTERRUPTED:
        raise KeyboardInterrupt
    cure = tuple(right[layer] if layer in found.kept else choice for layer, choice in wrong.items())
    made_bad, made_good = (
        [bench.build(f"{word}-{number}", choices).judgement for number in range(CONFIRMATIONS)]
        for word, choices in (("guilty", mixed(found.kept)), ("cured", cure))
    )
    builds = found.checks + 2 * CONFIRMATIONS + 1  # and the control
    if set(made_bad) != {BuildJudgement.BAD} or len(set(made_good)) > 1:
        return TacticBlame(differing=len(differing), builds=builds, reason=_BY_CHANCE)
    guilty = tuple(
        GuiltyChoice(layer, wrong[layer].nodes or right[layer].nodes, wrong[layer], right[layer])
        for layer in found.kept
    )
    return TacticBlame(guilty, len(differing), builds, made_good[0] is BuildJudgement.GOOD)


def closest(trials: Sequence[BuildTrial]) -> tuple[BuildTrial, BuildTrial]:
    """Return the good and the bad build that differ in the fewest choices, the earliest of equals."""
    pairs = [(good, bad) for good in trials if good.good for bad in trials if bad.failed]
    return min(pairs, key=lambda pair: len(dict(pair[0].features).items() ^ dict(pair[1].features).items()))


def _unsteady(
    bench: EngineBench,
    oracle: Callable[[tuple[str, ...], int], OracleVerdict],
    differing: tuple[str, ...],
    good: tuple[Choice, ...],
) -> str:
    """Return why choices do not decide: the bad build's are not always bad, or the good one's not always good."""
    outcomes = {oracle(differing, attempt).outcome for attempt in range(REPEATS.premise)}
    if CandidateOutcome.UNRESOLVED in outcomes:
        return "the engine does not build with the choices of a bad build"
    if outcomes == {CandidateOutcome.PASS}:
        return "a build with every choice of a bad one is good: the cause is not among the reported tactics"
    steady = outcomes == {CandidateOutcome.SAME} and bench.build("control", good).good
    return "" if steady else _BY_CHANCE


def _by_layer(trial: BuildTrial) -> dict[str, Choice]:
    return {choice.layer: choice for choice in trial.choices}
