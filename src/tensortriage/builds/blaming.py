"""Which choice makes a build bad? The one that makes a good build bad when nothing else is changed.

Ranking says what goes together; this says what causes what. A good and a bad build differ in many choices; builds that
take some of them from the bad one and the rest from the good one are searched for the fewest that still make it bad
(delta debugging between a passing and a failing run: Zeller, FSE 2002), the suspects of the ranking first. Then the bad
build gets the good choices in just these layers, and must be good.
"""

from collections.abc import Callable, Mapping, Sequence

from tensortriage.builds.result import Blame, GuiltyChoice
from tensortriage.builds.trial import Bench, BuildTrial, Judgement
from tensortriage.engines.base import Choice
from tensortriage.errors import UsageError
from tensortriage.runs.checks import digest
from tensortriage.search.desk import Cache
from tensortriage.search.driver import minimize
from tensortriage.search.problem import Outcome, Problem, Verdict
from tensortriage.search.repeats import Repeats
from tensortriage.search.result import Budget, Progress, SearchResult, Stop

REPEATS = Repeats(premise=2, measure=6, limit=12)
"""Given tactics, builds are meant to be alike, and every one is dear: two tell whether that holds."""

_OUTCOMES = {Judgement.BAD: Outcome.SAME, Judgement.GOOD: Outcome.PASS, Judgement.OTHER: Outcome.UNRESOLVED}


def blame(
    bench: Bench,
    trials: Sequence[BuildTrial],
    suspicion: Mapping[str, float],
    *,
    identity: str,
    cache: Cache | None = None,
    budget: Budget | None = None,
    observe: Callable[[Progress[str]], None] | None = None,
) -> Blame:
    """Find and confirm the choices that make a build bad.

    Args:
        bench: Makes builds with given choices.
        trials: Free builds, at least one good and one bad.
        suspicion: How much speaks against a layer.
        identity: Digest of all that answers depend on besides the choices.
        cache: Where answers are kept.
        budget: What it may cost.
        observe: Told of every build.
    """
    good, bad = closest(trials)
    right, wrong = _by_layer(good), _by_layer(bad)
    differing = tuple(layer for layer in wrong if layer in right and _differ(right[layer], wrong[layer]))
    if not differing:
        return Blame(reason="a good and a bad build made the same choices: the cause is not among the tactics told")

    def mixed(candidate: Sequence[str]) -> tuple[Choice, ...]:
        taken = frozenset(candidate)
        return tuple(wrong[layer] if layer in taken else choice for layer, choice in right.items())

    def oracle(candidate: tuple[str, ...], attempt: int) -> Verdict:
        trial = bench.build(f"given-{digest(list(candidate))[:8]}-{attempt}", mixed(candidate))
        return Verdict(_OUTCOMES[trial.judgement], trial.signature, trial.reason)

    problem = Problem(differing, oracle, key=lambda c: digest(identity, list(c), good.name, bad.name), suspicion={
        layer: suspicion.get(layer, 0.0) for layer in differing
    })  # fmt: skip
    try:
        found = minimize(problem, cache=cache, budget=budget, repeats=REPEATS, observe=observe)
    except UsageError as error:
        return Blame(differing=len(differing), builds=REPEATS.premise, reason=_unfounded(error))
    guilty = tuple(
        GuiltyChoice(layer, wrong[layer].nodes or right[layer].nodes, wrong[layer], right[layer])
        for layer in found.kept
    )
    return _confirmed(bench, wrong, right, guilty, found, len(differing))


def closest(trials: Sequence[BuildTrial]) -> tuple[BuildTrial, BuildTrial]:
    """Return the good and the bad build that differ in the fewest choices, the earliest of equals."""
    pairs = [(good, bad) for good in trials if good.good for bad in trials if bad.failed]
    return min(pairs, key=lambda pair: len(dict(pair[0].features).items() ^ dict(pair[1].features).items()))


def _confirmed(
    bench: Bench,
    wrong: Mapping[str, Choice],
    right: Mapping[str, Choice],
    guilty: tuple[GuiltyChoice, ...],
    found: SearchResult[str],
    differing: int,
) -> Blame:
    if found.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    cure = tuple(right[layer] if layer in found.kept else choice for layer, choice in wrong.items())
    trial = bench.build("cured", cure)
    return Blame(guilty, differing, found.checks + 1, trial.good)


def _by_layer(trial: BuildTrial) -> dict[str, Choice]:
    return {choice.layer: choice for choice in trial.choices}


def _differ(one: Choice, other: Choice) -> bool:
    return one.label != other.label


def _unfounded(error: UsageError) -> str:
    if error.slug == "premise-not-failing":
        return "a build with every choice of a bad one is good: the cause is not among the tactics told"
    if error.slug == "premise-unresolved":
        return "the engine does not build with the choices of a bad build"
    return error.message
