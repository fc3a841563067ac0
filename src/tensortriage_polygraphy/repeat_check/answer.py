"""Turns a command line of ``triage debug repeat`` into runs, and their result into output and exit code."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import click
from click.core import ParameterSource

from tensortriage.sdk import (
    Checker,
    CheckSpec,
    Entry,
    RepeatStop,
    Replay,
    Reply,
    Ruling,
    Teller,
    ask,
    dialect,
    load_replay,
    percent,
    print_document,
    to_json,
    verdict_word,
)
from tensortriage_polygraphy.dialect import PolygraphyDialect
from tensortriage_polygraphy.repeat_check.repeat import Repeated, RepeatGoal, repeat

CANDIDATE = "repeat"
"""The only candidate in the replay of a repetition."""

_ENDED = {
    RepeatStop.REACHED: "",
    RepeatStop.MOST_RUNS: "; stopped at the maximum number of runs",
    RepeatStop.BUDGET: "; stopped by the budget",
    RepeatStop.INTERRUPTED: "; interrupted",
}


def repeat_and_show(
    goal: RepeatGoal, spec: CheckSpec, save_replay: Path | None, loaded: Path | None, *, as_json: bool
) -> NoReturn:
    """Repeat a check (or ask, when it has no words), show the result and exit.

    Raises:
        click.UsageError: Without ``--until`` where Polygraphy requires it.
    """
    context = click.get_current_context()
    polygraphy = isinstance(dialect(), PolygraphyDialect)
    if polygraphy and context.get_parameter_source("until") is ParameterSource.DEFAULT:
        raise click.UsageError("the following arguments are required: --until", context)
    tell = Teller(err=as_json).tell
    known = _verdicts(spec, loaded)
    replay = None if save_replay is None else Replay(save_replay, spec.identity())
    with contextlib.closing(Checker(spec, tell=tell)) as checker:
        result = repeat(_with_replay(_run(checker, asked=not spec.words), known, replay), goal, observe=_observer(tell))
    if as_json:
        print_document(to_json(result))
    for line in summary(result):
        tell(line)
    resolved = result.passed + result.failed
    dialect().tell_iterations(resolved + result.unresolved, passed=result.passed, told=resolved)
    sys.exit(130 if result.stop is RepeatStop.INTERRUPTED else result.exit_code)


def summary(result: Repeated) -> Iterator[str]:
    """Yield the lines that end a repetition."""
    made = result.passed + result.failed + result.unresolved
    resolved = result.passed + result.failed
    yield (
        f"{made} runs, {result.passed} passed, {result.failed} failed"
        + (f", {result.unresolved} unresolved" if result.unresolved else "")
        + f", {result.seconds:.1f} s"
        + _ENDED[result.stop]
    )
    if result.rate is not None:
        yield (
            f"failure rate {percent(result.rate)} of {resolved}; between {percent(result.low)} and "
            f"{percent(result.high)} with {percent(result.confidence)} confidence"
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
    return Ruling(failed, "failed" if failed else "", "as reported by you")


def _with_replay(
    run: Callable[[int], Ruling], known: Mapping[int, Ruling], replay: Replay | None
) -> Callable[[int], Ruling]:
    def replayed(iteration: int) -> Ruling:
        if replay is not None and iteration not in known:
            replay.about_to_check(_entry(iteration, Ruling(True, "skipped", "the check did not finish")))
        ruling = known.get(iteration) or run(iteration)
        if replay is not None:
            replay.add(_entry(iteration, ruling))
        return ruling

    return replayed


def _verdicts(spec: CheckSpec, path: Path | None) -> Mapping[int, Ruling]:
    """Return the verdicts of a replay, if there is one."""
    known: dict[int, Ruling] = {}
    for entry in load_replay(path, spec.identity(), unbound=True) if path is not None else ():
        failed = None if entry.outcome == "unresolved" else not entry.success
        known[entry.iteration] = Ruling(failed, entry.signature, "from the replay")
    return known


def _entry(iteration: int, ruling: Ruling) -> Entry:
    outcome = "unresolved" if ruling.failed is None else "same" if ruling.failed else "pass"
    return Entry(iteration, "", CANDIDATE, iteration, None, not ruling.failed, outcome, ruling.signature)


def _observer(tell: Callable[[str], None]) -> Callable[[int, Ruling], None]:
    def observe(iteration: int, ruling: Ruling) -> None:
        word = "unresolved" if ruling.failed is None else "failed" if ruling.failed else "passed"
        tell(f"run {iteration + 1}: {word} ({ruling.reason})")

    return observe
