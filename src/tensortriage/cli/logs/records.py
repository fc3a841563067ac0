"""The log of a command, on stderr and in a file, with a level for each part of the package.

Made only when something is to be told; see `tensortriage.cli.logs.options`.
"""

import io
import logging
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

import click

from tensortriage.cli.logs.levels import LEVELS, LogValues, levels_of, moved

PACKAGE = "tensortriage"
_LETTERS = {level: name[0] for name, level in LEVELS.items()} | {
    logging.CRITICAL: "!",
    LEVELS["START"]: "I",
    LEVELS["FINISH"]: "I",
}
_COLORS = {logging.ERROR: "red", logging.WARNING: "yellow", LEVELS["FINISH"]: "green"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Log:
    """The log of one command while it runs.

    Args:
        given: The options: ``more`` and ``less`` levels, ``named`` levels, ``silent``, ``formats``, ``file``.
        usual: The level without any of them.
        on_stdout: Whether lines go to stdout, as Polygraphy's do.
        document: Whether stdout is for one JSON document, which is never silenced.
    """

    def __init__(self, given: LogValues, usual: int, *, document: bool, on_stdout: bool = False) -> None:
        whole, named = levels_of(given["named"])
        parts = {f"{PACKAGE}.{path}": level for path, level in named.items()}
        self.level = (
            logging.CRITICAL
            if given["silent"]
            else whole or moved(usual, given["less"] - given["more"], every=on_stdout)
        )
        self._streams = sys.stdout, sys.stderr
        self._started = time.monotonic()
        self._logger = logging.getLogger(PACKAGE if self.level > LEVELS["SUPER_VERBOSE"] else None)
        self._handlers: list[logging.Handler] = []
        colors = "no-colors" not in given["formats"]
        self.on_stdout, self.command = on_stdout, ""
        target = sys.stdout if on_stdout else sys.stderr
        stream = logging.StreamHandler(target)
        stream.addFilter(_Threshold(self.level, parts))
        stream.setFormatter(_Lines(given["formats"], colors=colors and _takes_colors(target)))
        self._add(stream)
        finest = min(self.level, *parts.values()) if parts else self.level
        self._file: TextIO | None = None
        if given["file"] is not None:
            given["file"].parent.mkdir(parents=True, exist_ok=True)
            self._file = given["file"].open("w", encoding="utf-8", errors="backslashreplace")
            finest = min(finest, logging.INFO)
            written = logging.StreamHandler(self._file)
            written.addFilter(_Threshold(min(self.level, logging.INFO), parts))
            written.setFormatter(_Lines(given["formats"], colors=False))
            self._add(written)
        self._old = self._logger.level, self._logger.propagate
        self._logger.setLevel(finest)
        self._logger.propagate = False
        self._redirect(silent=given["silent"], document=document)

    def _add(self, handler: logging.Handler) -> None:
        self._logger.addHandler(handler)
        self._handlers.append(handler)

    def _redirect(self, *, silent: bool, document: bool) -> None:
        """Let stdout reach the file too, or nobody."""
        if silent:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the log closes
            sys.stdout = sys.stdout if document else sys.stderr
        elif self._file is not None and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.flush()
            sys.stdout = _Copied(sys.stdout, self._file)

    def hear(self, level: int, text: str, *words: object) -> None:
        """Log a line of the command itself."""
        self._logger.log(level, text, *words)

    def copy(self, lines: Sequence[str]) -> None:
        """Write lines to the file alone."""
        if self._file is not None:
            self._file.writelines(f"{line}\n" for line in lines)

    @property
    def real_stderr(self) -> TextIO:
        """The stream that errors are told on, whatever is silenced."""
        return self._streams[1]

    @property
    def seconds(self) -> float:
        """Wall time since the command began."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Leave streams and loggers as they were."""
        sys.stdout.flush()
        if isinstance(sys.stdout, _Copied):
            sys.stdout.detach()
        if sys.stderr is not self._streams[1]:
            sys.stderr.close()
        sys.stdout, sys.stderr = self._streams
        for handler in self._handlers:
            self._logger.removeHandler(handler)
            handler.close()
        self._logger.setLevel(self._old[0])
        self._logger.propagate = self._old[1]
        if self._file is not None:
            self._file.close()


class _Copied(io.TextIOWrapper):
    """Standard output that a file gets a copy of."""

    def __init__(self, stream: io.TextIOWrapper, copy: TextIO) -> None:
        super().__init__(stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
        self._copy = copy

    def write(self, text: str, /) -> int:
        self._copy.write(_ESCAPES.sub("", text))
        return super().write(text)


class _Threshold(logging.Filter):
    """Lets records pass by the level of the part of the package that they come from.

    Args:
        whole: The level of what is not in any part.
        parts: Levels by logger name; the closest name counts.
    """

    def __init__(self, whole: int, parts: Mapping[str, int]) -> None:
        super().__init__()
        self._whole, self._parts = whole, parts

    def filter(self, record: logging.LogRecord) -> bool:
        name = record.name
        while name and name not in self._parts:
            name = name.rpartition(".")[0]
        return record.levelno >= self._parts.get(name, self._whole)


class _Lines(logging.Formatter):
    """``[I] text``, with time and place when asked for; names in models are not trusted with a terminal."""

    def __init__(self, formats: tuple[str, ...], *, colors: bool) -> None:
        super().__init__()
        self._formats, self._colors = formats, colors

    def format(self, record: logging.LogRecord) -> str:
        from tensortriage.values.printable import printable

        head = f"[{letter(record.levelno)}]"
        if "timestamp" in self._formats:
            head += time.strftime("[%m/%d/%Y-%H:%M:%S]", time.localtime(record.created))
        if "line-info" in self._formats:
            head += f"[{record.filename}:{record.lineno}]"
        text = "\n".join(f"{head} {printable(line)}" for line in record.getMessage().splitlines() or [""])
        color = next((color for level, color in _COLORS.items() if record.levelno >= level), None)
        return click.style(text, fg=color) if self._colors and color else text


def letter(level: int) -> str:
    """Return the letter of the highest named level that a number reaches."""
    return _LETTERS[max((named for named in LEVELS.values() if named <= level), default=min(LEVELS.values()))]


def _takes_colors(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
