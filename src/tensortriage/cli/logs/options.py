"""Polygraphy's logging options, in front of a command word and behind it.

What is told is made by `tensortriage.cli.logs.records`, on the loggers of Python's `logging`: every module of the
package logs under its own name, so ``--verbosity runs:VERBOSE`` is finer for one of its parts. Results are no log
lines: they stay on stdout whatever the level is, and only ``--silent`` takes them away.
"""

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tensortriage.cli.logs.levels import LEVELS, LogValues

if TYPE_CHECKING:
    from tensortriage.cli.logs.records import Log

FORMATS = ("timestamp", "line-info", "no-colors")
LOG_LISTS: dict[str, Callable[[str], bool]] = {
    "--verbosity": lambda word: word.rpartition(":")[2].upper() in LEVELS,
    "--log-format": FORMATS.__contains__,
}
"""Options that take several values, and which words those can be: a model or a command word may follow them."""
_USUAL = LEVELS["WARNING"]
_META = "tensortriage.log"
_log: "Log | None" = None


def given_to(context: click.Context) -> LogValues:
    """Return the logging options that stand before and behind the command word."""
    nothing = LogValues(more=0, less=0, named=(), silent=False, formats=(), plain=False, file=None)
    kept: LogValues = context.meta.setdefault(_META, nothing)
    return kept


def remembered(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that keeps what an option says until the command begins; counts add up, lists grow."""

    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        kept = cast("dict[str, Any]", given_to(context))  # the option that is read says which key
        if isinstance(value, bool):
            kept[key] = kept[key] or value
        elif value is not None:
            kept[key] = kept[key] + value if isinstance(value, int | tuple) else value

    return remember


def log_parameters(make: Callable[..., click.Option] = click.Option, **more: Any) -> list[click.Option]:
    """Return the logging options.

    Args:
        make: The class of options of the command.
        **more: What else it takes.
    """

    def one(*names: str, key: str, text: str, **kwargs: Any) -> click.Option:
        return make(names, expose_value=False, callback=remembered(key), help=text, **{**more, **kwargs})

    return [
        one("--verbose", "-v", key="more", count=True, text="Log to stderr: -v every step, -vv every detail."),
        one("--quiet", "-q", key="less", count=True, text="No progress and no warnings; results stay."),
        one("--verbosity", key="named", multiple=True, metavar="[MODULE:]LEVEL...",
            text="Log level, of everything or of one part of the package, e.g. INFO runs:VERBOSE."),
        one("--silent", key="silent", is_flag=True, text="Print nothing but errors (and a JSON document)."),
        one("--log-format", key="formats", multiple=True, type=click.Choice(FORMATS), metavar="FORMAT...",
            text="Add timestamp or line-info to log lines; no-colors."),
        one("--log-file", key="file", type=click.Path(path_type=Path), metavar="FILE",
            text="Write log lines and everything that is printed to a file as well."),
        one("--no-colors", key="plain", is_flag=True, text="No colours."),
    ]  # fmt: skip


def before_the_command(words: Sequence[str]) -> list[str]:
    """Return words in which the logging lists in front of the command word are repeated options."""
    done: list[str] = []
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        position += 1
        start = position
        belongs = LOG_LISTS.get(word)
        while belongs is not None and position < len(words) and belongs(words[position]):
            done += [word, words[position]]
            position += 1
        if position == start:
            done.append(word)
        if word == "--log-file":
            done += words[position : position + 1]
            position += 1
    return [*done, *words[position:]]


def begin(context: click.Context, words: Sequence[str]) -> None:
    """Open the log of a command, if it is to tell anything.

    Args:
        context: The command's.
        words: Its own words, for the first line.
    """
    global _log
    end()
    given = given_to(context)
    if given["plain"] or "no-colors" in given["formats"]:
        given["formats"] += ("no-colors",)
        context.find_root().color = False
    compatible = bool(context.meta.get("tensortriage.compatible"))
    if not compatible and not (given["more"] or given["less"] or given["named"] or given["silent"] or given["file"]):
        return
    from tensortriage import __version__
    from tensortriage.cli.logs.records import Log

    document = bool(context.params.get("as_json"))
    usual = LEVELS["INFO"] if compatible else _USUAL
    _log = Log(given, usual, document=document, on_stdout=compatible and not document)
    check = ["--check", *context.meta["check"]] if context.meta.get("check") else []
    line = f"{context.command_path} {shlex.join([*words, *check])}"
    if not compatible:
        _log.hear(LEVELS["START"], "triage %s: %s", __version__, line)
        return
    if context.command_path.split()[2] in ("run", "convert", "check", "surgeon", "debug"):
        _log.command = line.removeprefix("triage ")
        _log.hear(LEVELS["START"], "RUNNING | Command: %s", _log.command)


def finish(code: int) -> None:
    """Log how the command ended, and close the log."""
    if _log is not None and _log.on_stdout:
        if _log.command:
            level, word = (LEVELS["ERROR"], "FAILED") if code else (LEVELS["FINISH"], "PASSED")
            _log.hear(level, "%s | Runtime: %.3fs | Command: %s", word, _log.seconds, _log.command)
    elif _log is not None:
        _log.hear(LEVELS["FINISH"], "ended with exit code %d after %.1f s", code, _log.seconds)
    end()


def end() -> None:
    """Close the log, if there is one."""
    global _log
    if _log is not None:
        _log.close()
        _log = None


def to_file(lines: Sequence[str]) -> None:
    """Write lines that were told already to the log file."""
    if _log is not None:
        _log.copy(lines)


@contextlib.contextmanager
def unsilenced() -> Iterator[None]:
    """Give errors the real stderr, which --silent takes from everything else."""
    silenced = sys.stderr
    if _log is not None:
        sys.stderr = _log.real_stderr
    try:
        yield
    finally:
        sys.stderr = silenced


def shows_progress() -> bool:
    """Whether a terminal may be shown what is under way: not beside log lines, nor when quiet was asked for."""
    return _log is None or _log.level == _USUAL
