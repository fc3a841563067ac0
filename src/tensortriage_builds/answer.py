"""The progress of ``triage debug build``, and its result."""

import contextlib
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.sdk import (
    EngineFlags,
    EngineSpec,
    Progress,
    Teller,
    count,
    dialect,
    duration,
    print_document,
    target_missing,
    to_json,
)
from tensortriage_builds.request import BuildRequest
from tensortriage_builds.study_builds import study_builds
from tensortriage_builds.text import WORDS, study_lines
from tensortriage_builds.trial import BuildJudgement, BuildTrial


class BuildTeller(Teller):
    """Reports the progress of a study: a line for every build.

    Args:
        err: Write to stderr (stdout then holds one JSON document).
        most: Most free builds, for the time that is left.
    """

    def __init__(self, *, err: bool, most: int) -> None:
        super().__init__(err=err)
        self._most = most

    def built(self, trial: BuildTrial, trials: Sequence[BuildTrial]) -> None:
        """Print a line for a free build."""
        mean = sum(one.seconds for one in trials) / len(trials)
        self._left = f", at most {duration(mean * (self._most - len(trials)))} to go"
        detail = f" ({trial.reason})" if trial.reason else ""
        outputs = f", outputs {trial.outputs[:8]}" if trial.outputs else ""
        self.tell(f"build {trial.name}: {WORDS[trial.judgement]}{detail}{outputs}, {duration(trial.seconds)}")

    def searched(self, progress: Progress[str]) -> None:
        """Print a line for a build with given tactics."""
        step, words = progress.step, {"same": "bad", "pass": "good"}
        what = words.get(step.outcome.value, "unresolved")
        known = "known already" if step.cached else duration(step.seconds)
        self._left = "" if progress.seconds_left is None else f", about {duration(progress.seconds_left)} to go"
        self.tell(f"  with {count(step.items, 'choice')} of the bad build: {what}, {known}")


def build_and_show(request: BuildRequest, *, as_json: bool) -> NoReturn:
    """Study the builds of a model, show the result and exit."""
    teller = BuildTeller(err=as_json, most=request.goal.ends_at)
    with contextlib.closing(teller):
        study = study_builds(request, listener=teller)
    if as_json:
        print_document(to_json(study))
    judged = [trial for trial in study.trials if trial.judgement is not BuildJudgement.OTHER]
    good = sum(trial.judgement is BuildJudgement.GOOD for trial in judged)
    dialect().tell_iterations(len(study.trials), passed=good, told=len(judged))
    bad = any(trial.judgement is BuildJudgement.BAD for trial in study.trials)
    for line in study_lines(study, case=str(request.case)):
        teller.tell(line, bold=bad and line.startswith("guilty"))
    sys.exit(study.exit_code)


def with_target(request: BuildRequest, tensorrt: EngineFlags) -> BuildRequest:
    """Return the request with the engine to build: the named one, else that of Polygraphy's TensorRT flags.

    Raises:
        UsageError: When neither or both name the engine (``target-missing``, ``usage``).
    """
    flag, target = tensorrt.any_given("save_tactics", "load_tactics"), request.target
    if target and flag:
        raise click.UsageError(f"{flag} and --target exclude each other: put it in the engine spec")
    if not target and not flag and request.check is None:
        raise target_missing(request.model)
    words = tensorrt.words()
    saved, loaded = words.pop("save_tactics", None), words.pop("load_tactics", None)
    return dataclasses.replace(
        request,
        target=target or str(EngineSpec("tensorrt", words)),
        save_tactics=Path(saved) if saved else None,
        load_tactics=Path(loaded) if loaded else None,
    )
