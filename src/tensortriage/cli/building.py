"""From the words of ``triage debug build`` to a study of builds, and from it to terminal and exit code."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from tensortriage.builds.study import BuildGoal
from tensortriage.builds.trial import BuildTrial, Judgement
from tensortriage.cli.check_spec import spec_of
from tensortriage.cli.diagnosing import feed_request, limits_of
from tensortriage.cli.inspecting import required_target
from tensortriage.cli.options import parse_bytes
from tensortriage.cli.tensorrt_options import any_given, tensorrt_words
from tensortriage.compare.tolerance import PolygraphyTolerance
from tensortriage.diagnose.verdict import Step
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.syntax import parse_named
from tensortriage.report.builds_text import WORDS, study_lines
from tensortriage.report.text import count, duration, printable
from tensortriage.search.result import Progress
from tensortriage.search.stopping import Until
from tensortriage.values.serial import to_json
from tensortriage.workflows.builds import BuildRequest, study_builds


class Teller:
    """Tells how a study goes on: a line for every build, and on a terminal what is under way.

    Args:
        err: Write to stderr (stdout then holds one JSON document).
        most: Most free builds, for the time that is left.
    """

    def __init__(self, *, err: bool, most: int) -> None:
        self._err = err
        self._most = most
        self._live = (sys.stderr if err else sys.stdout).isatty()
        self._shown = False
        self._started = time.monotonic()
        self._left = ""

    def step(self, step: Step) -> None:
        """Ignore the steps of a diagnosis."""

    def progress(self, text: str) -> None:
        """Show what is under way, on a terminal only."""
        if self._live:
            line = f"  … {printable(text)}  [{time.monotonic() - self._started:.0f} s{self._left}]"[:100]
            click.echo("\r\x1b[2K" + click.style(line, dim=True), nl=False, err=self._err)
            self._shown = True

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

    def tell(self, text: str) -> None:
        """Print text."""
        self.clear()
        for line in text.splitlines():
            click.echo(printable(line), err=self._err)

    def clear(self) -> None:
        """Remove what is under way from the terminal."""
        if self._shown:
            click.echo("\r\x1b[2K", nl=False, err=self._err)
            self._shown = False


def build_and_show(
    model: Path, target: str, words: Sequence[str] | None, given: dict[str, Any], *, as_json: bool
) -> NoReturn:
    """Study the builds of a model, show what came of it and exit."""
    request = request_of(model, target, words, given)
    teller = Teller(err=as_json, most=request.goal.most)
    try:
        study = study_builds(request, teller)
    finally:
        teller.clear()
    if as_json:
        click.echo(to_json(study))
    bad = sum(trial.judgement is Judgement.BAD for trial in study.trials)
    for line in study_lines(study, case=str(request.case)):
        teller.tell(click.style(line, bold=True) if bad and line.startswith("guilty") and teller._live else line)
    sys.exit(study.exit_code)


def target_of(model: Path, target: str | None, check: Sequence[str] | None, given: Mapping[str, Any]) -> str:
    """Return the engine to build: the one named, else what Polygraphy's flags for TensorRT stand for.

    Raises:
        UsageError: When neither says, or both do (``target-missing``, ``usage``).
    """
    flags = {**given, "save_tactics": None, "load_tactics": None}
    flag = any_given(flags)
    if target and flag:
        raise click.UsageError(f"{flag} and --target exclude each other: say it in the engine spec")
    if not target and (flag or check is not None):
        return str(EngineSpec("tensorrt", tensorrt_words(flags)))
    return required_target(target, "debug build", model)


def request_of(model: Path, target: str, words: Sequence[str] | None, given: dict[str, Any]) -> BuildRequest:
    """Return the request that a command line stands for."""
    atol, rtol = parse_named(given["atol"], float), parse_named(given["rtol"], float)
    return BuildRequest(
        model=model,
        target=target,
        goal=goal_of(given),
        check=None if words is None else spec_of(words, given),
        reference=given["reference"],
        feeding=feed_request(given, most=given["samples"]),
        case=given["case"],
        tolerance=PolygraphyTolerance(atol=atol, rtol=rtol) if atol or rtol else None,
        limits=limits_of(given["timeout"], parse_bytes(given["memory_limit"])),
        artifact=given["iter_artifact"],
        keep_artifact=given["no_remove_intermediate"],
        output=given["output"],
        save_tactics=Path(given["save_tactics"]) if given["save_tactics"] else None,
        load_tactics=Path(given["load_tactics"]) if given["load_tactics"] else None,
        record=not given["no_tactics"],
        external_data_dir=given["external_data_dir"],
    )


def goal_of(given: Mapping[str, Any]) -> BuildGoal:
    """Return the goal that the options stand for.

    Raises:
        UsageError: When ``--until`` is no known word and no number (``build-until-unknown``).
    """
    text = given["until"].lower()
    limits = {"rate": given["rate"], "seconds": given["budget"], "pin": not given["no_pin"]}
    if text in (Until.SURE.value, Until.GOOD.value, Until.BAD.value):
        return BuildGoal(Until(text), given["max_builds"], **limits)
    if text.isdecimal() and int(text) > 0:
        return BuildGoal(Until.COUNT, int(text), **limits)
    raise UsageError(
        f"--until {given['until']} means nothing",
        slug="build-until-unknown",
        cure="give good, bad, sure, or a number of builds of at least 1",
    )
