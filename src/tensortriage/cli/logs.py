"""The log of a command: ``-v``, ``-q``, ``--log LEVEL``, ``--log-file FILE``, in front of a command word or behind it.

Every module of the package logs under its own name on the loggers of Python's `logging`; log lines go to
stderr. Results are no log lines: they stay on stdout at every level.
"""

import logging
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypedDict, cast

import click

from tensortriage.cli.dialect import dialect_of, last_spoken

PACKAGE = "tensortriage"
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
FINISHED = 28
"""Level of lines that end something where lines are the answer: one ``-q`` leaves them."""
_STEP = 10
_USUAL = LEVELS["warning"]
_META = "tensortriage.log"


class LogValues(TypedDict):
    """The logging options of a command line, as far as it is read."""

    more: int
    less: int
    level: str | None
    file: Path | None


def given_to(context: click.Context) -> LogValues:
    """Return the logging options in front of the command word and behind it."""
    kept: LogValues = context.meta.setdefault(_META, LogValues(more=0, less=0, level=None, file=None))
    return kept


def remembered(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that stores the value of an option until the command begins; counts add up."""

    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        kept = cast("dict[str, Any]", given_to(context))  # the option that is read says which key
        if value is not None:
            kept[key] = kept[key] + value if isinstance(value, int) else value

    return remember


def log_parameters(make: Callable[..., click.Option] = click.Option, **more: Any) -> list[click.Option]:
    """Return the logging options.

    Args:
        make: The class of options of the command.
        **more: Further settings of `click.Option`.
    """

    def one(*names: str, key: str, text: str, **kwargs: Any) -> click.Option:
        return make(names, expose_value=False, callback=remembered(key), help=text, **{**more, **kwargs})

    return [
        one("--verbose", "-v", key="more", count=True, text="Log to stderr: -v every step, -vv every detail."),
        one("--quiet", "-q", key="less", count=True, text="No progress and no warnings; results stay."),
        one("--log", key="level", type=click.Choice([*LEVELS], case_sensitive=False), metavar="LEVEL",
            text=f"Log from this level on: {', '.join(LEVELS)}."),
        one("--log-file", key="file", type=click.Path(path_type=Path), metavar="FILE",
            text="Write log lines and errors to a file as well."),
    ]  # fmt: skip


class Log:
    """The log of one command while it runs.

    Args:
        given: The options.
        usual: The level without any of them.
        on_stdout: Whether lines go to stdout.
    """

    def __init__(self, given: LogValues, usual: int, *, on_stdout: bool = False) -> None:
        moved = usual + _STEP * (given["less"] - given["more"]) - (_STEP // 2 if on_stdout and given["less"] else 0)
        moved = min(max(moved, LEVELS["debug"]), LEVELS["critical"])
        self.level = LEVELS[given["level"]] if given["level"] else moved
        self._started = time.monotonic()
        self._logger = logging.getLogger(PACKAGE)
        self._old = self._logger.level, self._logger.propagate
        self._handlers: list[logging.Handler] = []
        self._add(logging.StreamHandler(sys.stdout if on_stdout else sys.stderr), self.level)
        self._file: TextIO | None = None
        if given["file"] is not None:
            given["file"].parent.mkdir(parents=True, exist_ok=True)
            self._file = given["file"].open("w", encoding="utf-8", errors="backslashreplace")
            self._add(logging.StreamHandler(self._file), min(self.level, LEVELS["info"]))
        self._logger.setLevel(min(handler.level for handler in self._handlers))
        self._logger.propagate = False

    def _add(self, handler: logging.Handler, level: int) -> None:
        handler.setLevel(level)
        handler.setFormatter(_Lines())
        self._logger.addHandler(handler)
        self._handlers.append(handler)

    def hear(self, level: int, text: str, *words: object) -> None:
        """Log a line of the command itself."""
        self._logger.log(level, text, *words)

    def copy(self, lines: Sequence[str]) -> None:
        """Write lines to the file alone."""
        if self._file is not None:
            self._file.writelines(f"{line}\n" for line in lines)

    @property
    def seconds(self) -> float:
        """Wall time since the command began."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Leave the logger as it was."""
        for handler in self._handlers:
            self._logger.removeHandler(handler)
            handler.close()
        self._logger.setLevel(self._old[0])
        self._logger.propagate = self._old[1]
        if self._file is not None:
            self._file.close()


class _Lines(logging.Formatter):
    """``[I] text``; names in models are not trusted with a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        from tensortriage.values.printable import printable

        lines = record.getMessage().splitlines() or [""]
        letter = logging.getLevelName(record.levelno // _STEP * _STEP)[0]
        return "\n".join(f"[{letter}] {printable(line)}" for line in lines)


_log: Log | None = None


def begin(context: click.Context, words: Sequence[str]) -> None:
    """Open the log of a command, if there is anything to log.

    Args:
        context: The command's.
        words: Words of the command line, for the first line.
    """
    global _log
    end()
    given = given_to(context)
    spoken = dialect_of(context)
    if not (spoken.lines_on_stdout or given["more"] or given["less"] or given["level"] or given["file"]):
        return
    usual = LEVELS["info"] if spoken.lines_on_stdout else _USUAL
    _log = Log(given, usual, on_stdout=spoken.lines_on_stdout and not context.params.get("as_json"))
    check = ["--check", *context.meta["check"]] if context.meta.get("check") else []
    if text := spoken.opening(context.command_path, f"{context.command_path} {shlex.join([*words, *check])}"):
        _log.hear(LEVELS["info"], "%s", text)


def finish(code: int) -> None:
    """Log how the command ended, and close the log."""
    if _log is not None:
        level, text = last_spoken().closing(code, _log.seconds)
        if text:
            _log.hear(level, "%s", text)
    end()


def end() -> None:
    """Close the log, if there is one."""
    global _log
    if _log is not None:
        _log.close()
        _log = None


def to_file(lines: Sequence[str]) -> None:
    """Copy lines that were already printed to the log file."""
    if _log is not None:
        _log.copy(lines)


def shows_progress() -> bool:
    """Whether progress may be shown on a terminal: not among log lines, nor with --quiet."""
    return _log is None or _log.level == _USUAL
