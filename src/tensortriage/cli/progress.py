"""How a diagnosis is told while it goes on: one line per answered question, and what is being done, on a terminal."""

import sys
import time

import click

from tensortriage.diagnose.verdict import Step
from tensortriage.report.text import printable


class Teller:
    """Prints steps as they are answered; on a terminal also what is under way.

    Args:
        err: Write to stderr (stdout then holds one JSON document).
    """

    def __init__(self, *, err: bool = False) -> None:
        self._err = err
        stream = sys.stderr if err else sys.stdout
        self._live = stream.isatty()
        self._width = 0
        self._started = time.monotonic()

    def step(self, step: Step) -> None:
        """Print an answered question."""
        self._clear()
        mark = click.style("?", fg="cyan", bold=True) if self._live else "?"
        seconds = f"  ({step.seconds:.1f} s)" if step.seconds >= 0.1 else ""
        click.echo(f"{mark} {printable(step.question)}\n  {printable(step.answer)}{seconds}", err=self._err)

    def progress(self, text: str) -> None:
        """Show what is under way, on a terminal only."""
        if not self._live:
            return
        self._clear()
        line = f"  … {printable(text)}  [{time.monotonic() - self._started:.0f} s]"[:100]
        self._width = len(line)
        click.echo(click.style(line, dim=True), nl=False, err=self._err)

    def _clear(self) -> None:
        if self._width:
            click.echo("\r" + " " * self._width + "\r", nl=False, err=self._err)
            self._width = 0
