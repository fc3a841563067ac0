"""Turns a command line of ``triage debug build`` into a study of builds, and its result into output and exit code."""

import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.builds.study import BuildGoal
from tensortriage.builds.study_result import BuildStudy
from tensortriage.builds.trial import BuildJudgement, BuildTrial
from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.debug.check_spec import spec_of
from tensortriage.cli.documents import print_document
from tensortriage.cli.inspect.engine_arguments import required_target
from tensortriage.cli.option_values import BuildValues
from tensortriage.cli.progress import Teller
from tensortriage.cli.requests import feed_request, limits_of, tolerance_of, until_of
from tensortriage.cli.tensorrt_options import any_given, tensorrt_words
from tensortriage.engines.spec import EngineSpec
from tensortriage.report.terminal.builds_text import WORDS, study_lines
from tensortriage.search.search_result import Progress
from tensortriage.values.serial import to_json
from tensortriage.values.text import count, duration
from tensortriage.workflows.study_builds import BuildRequest, study_builds

_logger = logging.getLogger(__name__)


class BuildTeller(Teller):
    """Tells how a study goes on: a line for every build.

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
        what = words.get(step.outcome.value, "cannot be told")
        known = "known already" if step.cached else duration(step.seconds)
        self._left = "" if progress.seconds_left is None else f", about {duration(progress.seconds_left)} to go"
        self.tell(f"  with {count(step.items, 'choice')} of the bad build: {what}, {known}")


def build_and_show(
    model: Path, target: str, words: Sequence[str] | None, given: BuildValues, *, as_json: bool
) -> NoReturn:
    """Study the builds of a model, show what came of it and exit."""
    request = request_of(model, target, words, given)
    teller = BuildTeller(err=as_json, most=request.goal.most)
    with contextlib.closing(teller):
        study = study_builds(request, teller)
    if as_json:
        print_document(to_json(study))
    if click.get_current_context().meta.get(COMPATIBLE):
        tell_as_there(study)
    bad = any(trial.judgement is BuildJudgement.BAD for trial in study.trials)
    for line in study_lines(study, case=str(request.case)):
        teller.tell(line, bold=bad and line.startswith("guilty"))
    sys.exit(study.exit_code)


def tell_as_there(study: BuildStudy) -> None:
    """Log in Polygraphy's words how many builds passed."""
    told = [trial for trial in study.trials if trial.judgement is not BuildJudgement.OTHER]
    passed = sum(trial.judgement is BuildJudgement.GOOD for trial in told)
    _logger.info("Finished %d iteration(s) | Passed: %d/%d | Pass Rate: %s%%", len(study.trials), passed, len(told),
                 100.0 * passed / max(len(told), 1))  # fmt: skip


def target_of(model: Path, target: str | None, check: Sequence[str] | None, given: BuildValues) -> str:
    """Return the engine to build: the one named, else what Polygraphy's flags for TensorRT stand for.

    Raises:
        UsageError: When neither says, or both do (``target-missing``, ``usage``).
    """
    flags = given.copy()
    flags["save_tactics"] = flags["load_tactics"] = None
    flag = any_given(flags)
    if target and flag:
        raise click.UsageError(f"{flag} and --target exclude each other: say it in the engine spec")
    if not target and (flag or check is not None):
        return str(EngineSpec("tensorrt", tensorrt_words(flags)))
    return required_target(target, "debug build", model)


def request_of(model: Path, target: str, words: Sequence[str] | None, given: BuildValues) -> BuildRequest:
    """Return the request that a command line stands for."""
    limits = limits_of(given["timeout"], given["memory_limit"])
    return BuildRequest(
        model=model,
        target=target,
        goal=goal_of(given),
        check=None if words is None else spec_of(words, given),
        reference=given["reference"],
        feeding=feed_request(given, most=given["samples"], limits=limits),
        case=given["case"],
        tolerance=tolerance_of(given),
        limits=limits,
        artifact=given["iter_artifact"],
        keep_artifact=given["no_remove_intermediate"],
        output=given["output"],
        save_tactics=given["save_tactics"],
        load_tactics=given["load_tactics"],
        record=not given["no_tactics"],
        external_data_dir=given["external_data_dir"],
    )


def goal_of(given: BuildValues) -> BuildGoal:
    """Return the goal that the options stand for.

    Raises:
        UsageError: When ``--until`` is no known word and no number (``build-until-unknown``).
    """
    until, most = until_of(given["until"], given["max_builds"], noun="builds", slug="build-until-unknown")
    return BuildGoal(until, most, rate=given["rate"], seconds=given["budget"], pin=not given["no_pin"])
