"""Builds a model repeatedly until enough is known, then reports the result.

There are three possible results. If all builds are alike: that the other kind is rare, which takes a number of builds
that follows from the rate and the wanted confidence. If both kinds were seen and tactics can be forced: nothing more is
needed, since forcing them finds the guilty choice. If they cannot: a choice that goes with failure so clearly that it
is the cause with the wanted confidence, or the rate of failure itself.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence

from tensortriage.sdk import (
    CONFIDENCE,
    Cache,
    Progress,
    RepeatStop,
    SearchBudget,
    Trial,
    Until,
    feature_digest,
    rank,
    runs_needed,
    wilson,
)
from tensortriage_builds.build_maker import EngineBench
from tensortriage_builds.goal import BuildGoal
from tensortriage_builds.guilty_choice import blame, closest
from tensortriage_builds.study_result import BuildStudy, Deployed, Pinned, SuspectChoice, TacticBlame
from tensortriage_builds.trial import BuildJudgement, BuildTrial, Difference

_LEAST_BUILDS = 2
"""Builds before the first check whether enough is known: a single build cannot differ."""

MOST_SUSPECTS = 50


def enough(goal: BuildGoal, trials: Sequence[BuildTrial], *, pins: bool) -> bool:
    """Whether enough builds have been made."""
    good, bad = _count(trials, BuildJudgement.GOOD), _count(trials, BuildJudgement.BAD)
    if isinstance(goal.until, int):
        return len(trials) >= goal.until
    if goal.until is not Until.SURE:
        return (good if goal.until is Until.GOOD else bad) > 0
    if good + bad < _LEAST_BUILDS:
        return False
    if not good or not bad:
        return good + bad >= runs_needed(goal.rate, 1.0 - CONFIDENCE)
    low, high = wilson(bad, good + bad)
    return (pins and goal.pin) or high - low <= goal.width or _best(trials) >= CONFIDENCE


@dataclasses.dataclass(kw_only=True)
class Studying:
    """A study in progress.

    Attributes:
        bench: Makes builds.
        goal: The build that is wanted.
        engine: Spec of the engine, for the record.
        cache: Keeps the answers of the search.
        built: Receives every free build.
        searched: Receives every build with forced tactics.
    """

    bench: EngineBench
    goal: BuildGoal
    engine: str
    cache: Cache | None = None
    built: Callable[[BuildTrial, Sequence[BuildTrial]], None] = lambda trial, trials: None
    searched: Callable[[Progress[str]], None] | None = None

    def study(self) -> BuildStudy:
        """Build until enough is known, and look for the cause; Ctrl-C ends it with the results so far."""
        started, trials = time.monotonic(), list[BuildTrial]()
        found: TacticBlame | None = None
        pinned: Pinned | None = None
        deployed: Deployed | None = None
        try:
            stop = self._build(trials, started)
            deployed = self._deployed(trials)
            if self._may_pin(trials):
                found = self._blame(trials, started)
            if self.goal.pin and self.bench.pins:
                pinned = self._pin(trials)
        except KeyboardInterrupt:
            if not trials:
                raise
            stop = RepeatStop.INTERRUPTED
        return self._result(trials, stop, found, pinned, deployed, time.monotonic() - started)

    def _build(self, trials: list[BuildTrial], started: float) -> RepeatStop:
        while not enough(self.goal, trials, pins=self.bench.pins):
            if len(trials) >= self.goal.ends_at:
                return RepeatStop.MOST_RUNS
            if self.goal.seconds is not None and time.monotonic() - started >= self.goal.seconds:
                return RepeatStop.BUDGET
            trials.append(self.bench.build(str(len(trials))))
            self.built(trials[-1], trials)
        return RepeatStop.REACHED

    def _deployed(self, trials: Sequence[BuildTrial]) -> Deployed | None:
        """Make one build without recording, if recording is something that engines may notice."""
        trial = self.bench.deployed() if self.bench.pins else None
        if trial is None:
            return None
        known = {one.outputs for one in trials if one.outputs}
        seen = trial.outputs in known if trial.outputs and known else None
        return Deployed(trial, seen, self.bench.difference(trials[0], trial))

    def _may_pin(self, trials: Sequence[BuildTrial]) -> bool:
        wanted = self.goal.pin and self.bench.pins
        return wanted and any(t.good and t.choices for t in trials) and any(t.failed and t.choices for t in trials)

    def _blame(self, trials: Sequence[BuildTrial], started: float) -> TacticBlame:
        left = None if self.goal.seconds is None else max(0.0, self.goal.seconds - (time.monotonic() - started))
        suspicion: dict[str, float] = {}
        for suspect in suspects(trials):
            suspicion.setdefault(suspect.layer, suspect.factor)
        return blame(
            self.bench, trials, suspicion, cache=self.cache, budget=SearchBudget(seconds=left), observe=self.searched,
        )  # fmt: skip

    def _pin(self, trials: Sequence[BuildTrial]) -> Pinned | None:
        """Make a good build again, twice, from the choices it made."""
        good = next((trial for trial in trials if trial.good and trial.choices), None)
        if good is None:
            return None
        if any(trial.failed for trial in trials):
            good, _ = closest(trials)
        first, second = (self.bench.build(name, good.choices) for name in ("pinned", "pinned-again"))
        return Pinned(first, _same(good, first), _same(first, second))

    def _result(
        self,
        trials: Sequence[BuildTrial],
        stop: RepeatStop,
        found: TacticBlame | None,
        pinned: Pinned | None,
        deployed: Deployed | None,
        seconds: float,
    ) -> BuildStudy:
        good, bad = _count(trials, BuildJudgement.GOOD), _count(trials, BuildJudgement.BAD)
        low, high = wilson(bad, good + bad)
        return BuildStudy(
            engine=self.engine,
            trials=tuple(trials),
            good=good,
            bad=bad,
            unresolved=len(trials) - good - bad,
            rate=bad / (good + bad) if good + bad else None,
            low=low,
            high=high,
            distinct_outputs=len({trial.outputs for trial in trials if trial.outputs}),
            distinct_plans=len({feature_digest(trial.features) for trial in trials if trial.features}),
            spread=self._spread(trials),
            suspects=suspects(trials)[:MOST_SUSPECTS],
            blame=found,
            pinned=pinned,
            deployed=deployed,
            stop=stop.value,
            seconds=seconds,
        )

    def _spread(self, trials: Sequence[BuildTrial]) -> Difference | None:
        """Return the largest difference between two builds with different outputs (or two of the same)."""
        different = list({trial.outputs: trial for trial in trials if trial.outputs}.values())
        if len(different) < 2:
            different = [trial for trial in trials if trial.outputs][:2]
        pairs = [self.bench.difference(one, other) for one, other in itertools.combinations(different, 2)]
        return max((pair for pair in pairs if pair is not None), key=lambda d: (d.relative, d.max_abs), default=None)


def suspects(trials: Sequence[BuildTrial]) -> tuple[SuspectChoice, ...]:
    """Return the choices that speak for failure, the most telling first."""
    nodes = {(choice.layer, choice.label): choice.nodes for trial in trials for choice in trial.choices}
    judged = [t for t in trials if t.judgement is not BuildJudgement.OTHER]
    ranked = rank([Trial(frozenset(t.features), t.failed) for t in judged])
    return tuple(
        SuspectChoice(
            *s.item, nodes.get(s.item, ()), s.bad_with, s.good_with, s.bad_without, s.good_without, s.factor,
            s.probability,
        )
        for s in ranked
    )  # fmt: skip


def _best(trials: Sequence[BuildTrial]) -> float:
    return next((suspect.probability for suspect in suspects(trials)), 0.0)


def _count(trials: Sequence[BuildTrial], judgement: BuildJudgement) -> int:
    return sum(trial.judgement is judgement for trial in trials)


def _same(one: BuildTrial, other: BuildTrial) -> bool | None:
    return one.outputs == other.outputs if one.outputs and other.outputs else None
