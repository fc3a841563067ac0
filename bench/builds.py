"""Does a study of builds name the guilty choice, and in how many builds? Simulated builds whose truth is known.

    python bench/builds.py --seeds 40

A model of so many layers, a number of tactics for each, drawn evenly; builds are bad when the culprits drew their
faulty tactic. "right" is: what was named is guilty, and the cure was confirmed (of two culprits, the good build that
was looked into may have drawn one as well; then the other is all that is needed). In the last row failures come by
chance: there, naming anything is a false alarm.
"""

import argparse
import random
import statistics
import time
from collections.abc import Sequence

from tensortriage.engines.base import Choice
from tensortriage_builds.goal import BuildGoal
from tensortriage_builds.study import Studying
from tensortriage_builds.study_result import BuildStudy
from tensortriage_builds.trial import BuildJudgement, BuildTrial, Difference


class Simulated:
    """Builds that are bad when all culprits drew tactic 0, or by chance."""

    identity = "x"

    def __init__(self, layers: int, tactics: int, culprits: Sequence[str], chance: float, seed: int) -> None:
        self.names = [f"layer{number}" for number in range(layers)]
        self.tactics, self.culprits, self.chance = tactics, frozenset(culprits), chance
        self.rng = random.Random(seed)
        self.pins = True

    def build(self, name: str, choices: tuple[Choice, ...] = ()) -> BuildTrial:
        """Build once, with the given choices."""
        given = {choice.layer: int(choice.tactic, 16) for choice in choices}
        drawn = {layer: self.rng.randrange(self.tactics) for layer in self.names} | given
        failed = bool(self.culprits) and all(drawn[layer] == 0 for layer in self.culprits)
        failed = failed or self.rng.random() < self.chance
        told = tuple(Choice(layer, hex(drawn[layer])) for layer in self.names)
        return BuildTrial(
            name=name,
            judgement=BuildJudgement.BAD if failed else BuildJudgement.GOOD,
            choices=told,
            features=tuple((choice.layer, choice.label) for choice in told),
        )

    def deployed(self) -> None:
        """Recording changes nothing here."""

    def difference(self, one: BuildTrial, other: BuildTrial) -> Difference | None:
        """Nothing is run."""
        return None


def right(study: BuildStudy, culprits: Sequence[str]) -> bool:
    """Say whether what a study names is the truth."""
    if study.blame is None or not study.blame.guilty or not study.blame.cured:
        return False
    return {guilty.layer for guilty in study.blame.guilty} <= set(culprits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    print(
        "| layers | tactics | culprits | right | free builds, median (worst) | given builds, median (worst) | CPU s |"
    )
    print("|---|---|---|---|---|---|---|")
    for layers, tactics, many, chance in (
        (20, 2, 1, 0.0), (100, 3, 1, 0.0), (500, 3, 1, 0.0), (100, 2, 2, 0.0), (500, 2, 2, 0.0), (100, 3, 0, 0.3),
    ):  # fmt: skip
        studies, good, began = [], 0, time.process_time()
        for seed in range(seeds):
            culprits = random.Random(-seed - 1).sample([f"layer{number}" for number in range(layers)], many)
            bench = Simulated(layers, tactics, culprits, chance, seed)
            study = Studying(bench=bench, goal=BuildGoal(), engine="simulated").study()
            studies.append(study)
            accused = study.blame is not None and bool(study.blame.guilty)
            good += right(study, culprits) if many else not accused
        free = [len(study.trials) for study in studies]
        given = [study.blame.builds for study in studies if study.blame is not None] or [0]
        print(
            f"| {layers} | {tactics} | {many or 'none: 30 % fail by chance'} | {good} of {seeds} "
            f"| {statistics.median(free):.0f} ({max(free)}) | {statistics.median(given):.0f} ({max(given)}) "
            f"| {time.process_time() - began:.1f} |"
        )


if __name__ == "__main__":
    main()
