"""The console of tables: coloured and as wide as the window on a terminal, plain and wide elsewhere."""

import os
from typing import TextIO

from rich.console import Console

PLAIN_WIDTH = 140
"""Columns where there is no terminal to ask and ``COLUMNS`` is not set."""


class StreamConsole(Console):
    """A console whose reader may leave: that is for the caller to know, not the end of the process.

    Args:
        stream: Where to print.
    """

    def __init__(self, stream: TextIO) -> None:
        fitted = stream.isatty() or "COLUMNS" in os.environ
        super().__init__(file=stream, highlight=False, width=None if fitted else PLAIN_WIDTH)

    def on_broken_pipe(self) -> None:
        """Let the error pass; Rich would end the process with code 1, which says that a problem was found."""
        self.quiet = True
        raise BrokenPipeError
