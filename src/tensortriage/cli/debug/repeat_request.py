"""Turns a command line of ``triage debug repeat`` into runs, and their result into output and exit code."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import click
from click.core import ParameterSource

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.debug.check_spec import spec_of
from tensortriage.cli.debug.prompt import Reply, ask
from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import RepeatValues
from tensortriage.cli.progress import Teller
from tensortriage.cli.requests import until_of
from tensortriage.runs.commands.check import Checker, CheckSpec, verdict_word
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.replay import Entry, Replay, load_replay
from tensortriage.search.statistics.stop_rule import RepeatStop
from tensortriage.values.serial import to_json
from tensortriage.workflows.repeat import Repeated, RepeatGoal, repeat

_logger = logging.getLogger(__name__)
CANDIDATE = "repeat"
"""What the replay of a repetition calls its subject: there is only one."""

_ENDED = {
    RepeatStop.REACHED: "",
    RepeatStop.MOST_RUNS: "; stopped at the most runs allowed",
    RepeatStop.BUDGET: "; stopped by the budget",
    RepeatStop.INTERRUPTED: "; interrupted",
}


def repeat_and_show(words: Sequence[str] | None, given: RepeatValues, *, as_json: bool) -> NoReturn:
    """Repeat a check (or ask, when there is none), show what came of it and exit.

    Raises:
        click.UsageError: Without ``--until`` where Polygraphy would ask for it.
    """
    context = click.get_current_context()
    as_there = bool(context.meta.get(COMPATIBLE))
    if as_there and context.get_parameter_source("until") is ParameterSource.DEFAULT:
        raise click.UsageError("the following arguments are required: --until", context)
    goal = goal_of(given)
    spec = spec_of(words or (), given)
    tell = Teller(err=as_json).tell
    known, replay = _replayed(spec, given)
    with contextlib.closing(Checker(spec, tell=tell)) as checker:
        run = _run(checker, asked=words is None)
        result = repeat(_with_replay(run, known, replay), goal, observe=_observer(tell))
    if as_json:
        print_document(to_json(result))
    for line in summary(result):
        tell(line)
    if as_there:
        told = result.passed + result.failed
        _logger.info("Finished %d iteration(s) | Passed: %d/%d | Pass Rate: %s%%", told + result.unresolved,
                     result.passed, told, 100.0 * result.passed / max(told, 1))  # fmt: skip
    sys.exit(130 if result.stop is RepeatStop.INTERRUPTED else result.exit_code)


def goal_of(given: RepeatValues) -> RepeatGoal:
    """Return the goal that the options stand for.

    Raises:
        UsageError: When ``--until`` is no known word and no number (``repeat-until-unknown``).
    """
    until, most = until_of(given["until"], given["max_runs"], noun="runs", slug="repeat-until-unknown")
    return RepeatGoal(until, most, width=given["width"], seconds=given["budget"])


def summary(result: Repeated) -> Iterator[str]:
    """Yield the lines that end a repetition."""
    made = result.passed + result.failed + result.unresolved
    told = result.passed + result.failed
    yield (
        f"{made} runs, {result.passed} passed, {result.failed} failed"
        + (f", {result.unresolved} told nothing" if result.unresolved else "")
        + f", {result.seconds:.1f} s"
        + _ENDED[result.stop]
    )
    if result.rate is not None:
        yield (
            f"failure rate {result.rate:.0%} of {told}; between {result.low:.0%} and {result.high:.0%} "
            f"with {result.confidence:.0%} confidence"
        )
    if len(result.signatures) > 1:
        yield "ways of failing: " + ", ".join(f"{word} ({many}x)" for word, many in result.signatures.items())


def _run(checker: Checker, *, asked: bool) -> Callable[[int], Ruling]:
    def run(iteration: int) -> Ruling:
        ruling = _asked(iteration) if asked else checker.check(iteration)
        checker.sort(verdict_word(ruling.failed), iteration)
        return ruling

    return run


def _asked(iteration: int) -> Ruling:
    reply = ask(f"Did run {iteration + 1}", {Reply.PASS: "pass", Reply.FAIL: "fail", Reply.QUIT: "quit"})
    if reply is Reply.QUIT:
        raise KeyboardInterrupt
    failed = reply is Reply.FAIL
    return Ruling(failed, "failed" if failed else "", "as you said")


def _with_replay(
    run: Callable[[int], Ruling], known: Mapping[int, Ruling], replay: Replay | None
) -> Callable[[int], Ruling]:
    def replayed(iteration: int) -> Ruling:
        if replay is not None and iteration not in known:
            replay.about_to_check(_entry(iteration, Ruling(True, "skipped", "the check did not come back")))
        ruling = known.get(iteration) or run(iteration)
        if replay is not None:
            replay.add(_entry(iteration, ruling))
        return ruling

    return replayed


def _replayed(spec: CheckSpec, given: RepeatValues) -> tuple[Mapping[int, Ruling], Replay | None]:
    """Return the verdicts of the replay to load and the replay to write."""
    known: dict[int, Ruling] = {}
    if given["load_debug_replay"] is not None:
        for entry in load_replay(given["load_debug_replay"], spec.identity(), unbound=True):
            failed = None if entry.outcome == "unresolved" else not entry.success
            known[entry.iteration] = Ruling(failed, entry.signature, "from the replay")
    replay = None if given["save_debug_replay"] is None else Replay(given["save_debug_replay"], spec.identity())
    return known, replay


def _entry(iteration: int, ruling: Ruling) -> Entry:
    outcome = "unresolved" if ruling.failed is None else "same" if ruling.failed else "pass"
    return Entry(iteration, "", CANDIDATE, iteration, None, not ruling.failed, outcome, ruling.signature)


def _observer(tell: Callable[[str], None]) -> Callable[[int, Ruling], None]:
    def observe(iteration: int, ruling: Ruling) -> None:
        word = "told nothing" if ruling.failed is None else "failed" if ruling.failed else "passed"
        tell(f"run {iteration + 1}: {word} ({ruling.reason})")

    return observe
