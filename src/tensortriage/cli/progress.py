"""Progress of a command: lines that stay, and on a terminal one line for the work in progress.

Progress goes to stderr, so that stdout can be piped; a terminal that cannot move its cursor gets none.
"""

import logging
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from tensortriage.cli.logs import shows_progress
from tensortriage.values.printable import printable
from tensortriage.values.text import duration

if TYPE_CHECKING:
    from tensortriage.diagnose.state.verdict import Step

_MOST_COLUMNS = 100
_logger = logging.getLogger(__name__)


class Teller:
    """Prints lines, and on a terminal the work in progress.

    Args:
        err: Write the lines to stderr too (stdout then holds one JSON document).
    """

    def __init__(self, *, err: bool) -> None:
        self._err = err
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and shows_progress()
        self._width = 0
        self._started = time.monotonic()
        self._left = ""

    def step(self, step: "Step") -> None:
        """Receive a step of a diagnosis; other commands have none."""
        _logger.info("%s %s (%.1f s)", step.question, step.answer, step.seconds)

    def progress(self, text: str) -> None:
        """Show the work in progress, on a terminal only, and log it."""
        _logger.debug(text)
        if not self._live:
            return
        self.clear()
        passed = f"  [{duration(time.monotonic() - self._started)}{self._left}]"
        room = min(_MOST_COLUMNS, shutil.get_terminal_size().columns - 1)
        line = (f"  … {printable(text)}"[: max(room - len(passed), 0)] + passed)[:room]
        self._width = len(line)
        click.echo(click.style(line, dim=True), nl=False, err=True)

    def tell(self, text: str, *, bold: bool = False) -> None:
        """Print text."""
        self.clear()
        for line in text.splitlines():
            shown = printable(line)
            click.echo(click.style(shown, bold=True) if bold else shown, err=self._err)

    def close(self) -> None:
        """Clear the progress line; results are printed afterwards."""
        self.clear()

    def clear(self) -> None:
        """Clear the progress line."""
        if self._width:
            click.echo("\r" + " " * self._width + "\r", nl=False, err=True)
            self._width = 0


class StepTeller(Teller):
    """Prints the questions of a diagnosis with their answers."""

    def step(self, step: "Step") -> None:
        """Print an answered question."""
        super().step(step)
        self.clear()
        seconds = f"  ({step.seconds:.1f} s)" if step.seconds >= 0.1 else ""
        mark = click.style("?", fg="cyan", bold=True)
        click.echo(f"{mark} {printable(step.question)}\n  {printable(step.answer)}{seconds}", err=self._err)
