"""Comparing recorded tactics: choices of bad builds that good ones did not make (``tensortriage.tactic-diff/1``)."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from tensortriage.sdk import (
    DataError,
    UsageError,
    features,
    load_record,
)
from tensortriage_builds.study import suspects
from tensortriage_builds.study_result import SuspectChoice
from tensortriage_builds.trial import BuildJudgement, BuildTrial


@dataclasses.dataclass(frozen=True, slots=True)
class TacticDiff:
    """Differences between the tactics of bad and good builds.

    Attributes:
        good: Files of good builds.
        bad: Files of bad builds.
        skipped: Files in the folders that hold no tactics.
        only_bad: Choices that no good build made, those of the most bad builds first.
        suspects: Choices that speak for failure, the most telling first.
    """

    good: tuple[str, ...]
    bad: tuple[str, ...]
    skipped: tuple[str, ...]
    only_bad: tuple[SuspectChoice, ...]
    suspects: tuple[SuspectChoice, ...]
    format: str = "tensortriage.tactic-diff/1"


def diff_tactics(good: Sequence[Path], bad: Sequence[Path]) -> TacticDiff:
    """Compare the tactics of good and bad builds.

    Args:
        good: Files of good builds, or folders of them.
        bad: Those of bad ones.

    Raises:
        UsageError: When one side has no file of tactics (``tactics-one-sided``).
        DataError: When a file that is named holds no tactics.
    """
    skipped: list[str] = []
    trials = [
        *_trials(good, BuildJudgement.GOOD, skipped),
        *_trials(bad, BuildJudgement.BAD, skipped),
    ]
    names = {j: tuple(t.name for t in trials if t.judgement is j) for j in (BuildJudgement.GOOD, BuildJudgement.BAD)}
    for judgement, found in names.items():
        if not found:
            raise UsageError(
                f"no tactics of {judgement.value} builds among {', '.join(map(str, [*good, *bad]))}",
                slug="tactics-one-sided",
                cure="give --good DIR --bad DIR, or --dir DIR that has good/ and bad/, as triage debug build makes",
            )
    ranked = suspects(trials)
    return TacticDiff(
        good=names[BuildJudgement.GOOD],
        bad=names[BuildJudgement.BAD],
        skipped=tuple(skipped),
        only_bad=tuple(sorted((one for one in ranked if not one.good_with), key=lambda one: -one.bad_with)),
        suspects=ranked,
    )


def _trials(paths: Iterable[Path], judgement: BuildJudgement, skipped: list[str]) -> Iterable[BuildTrial]:
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            try:
                record = load_record(file)
            except DataError:
                if not path.is_dir():
                    raise
                skipped.append(str(file))  # engines, logs of other things: folders of artifacts hold more than tactics
                continue
            yield BuildTrial(
                name=str(file), judgement=judgement, choices=record.choices, features=features(record.choices, None)
            )
