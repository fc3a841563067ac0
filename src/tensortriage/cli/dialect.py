"""The wording of answers: ours, unless a group of another package has commands use another `Dialect`.

Such a group (``triage polygraphy``) runs our commands; all that they do otherwise below it are the methods here.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tensortriage.cli.prompt import Reply
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.report.run_result import CompareResult
    from tensortriage.workflows.comparison.participants import Saved
    from tensortriage.workflows.comparison.rejudge import Rejudged

_KEY = "tensortriage.dialect"


class Dialect:
    """Our own wording. Where not stated otherwise, methods return whether they have printed the whole answer.

    Attributes:
        strict: Whether a name that means nothing in a model is an error.
        lines_on_stdout: Whether log lines are the answer: on stdout, every step of them.
        mark: Prefix of an error's first line.
        inserted: Name of the result of an inserted node that also takes the value; empty for our naming.
    """

    strict: bool = True
    lines_on_stdout: bool = False
    mark: str = ""
    inserted: str = ""

    def opening(self, path: str, line: str) -> str:
        """Return the first line of a log; empty for none.

        Args:
            path: The words that name the command, ``triage run``.
            line: The whole command line.
        """
        from tensortriage import __version__

        return f"triage {__version__}: {line}"

    def closing(self, code: int, seconds: float) -> tuple[int, str]:
        """Return level and text of the last line of a log; empty for none."""
        return logging.INFO, f"ended with exit code {code} after {seconds:.1f} s"

    def exit_code(self, words: Sequence[str], code: int, error: BaseException | None) -> int:
        """Return the exit code of a command.

        Args:
            words: The command line.
            code: Our exit code.
            error: Why it ended early; None when it did its work.
        """
        return code

    def asks_for_run(self, words: Sequence[str], *, named: bool) -> bool:
        """Return whether ``run`` has something to do, or refuse its words.

        Args:
            words: The command line.
            named: Whether an engine or saved results are named.
        """
        return True

    def ordered(
        self, runners: "Sequence[EngineSpec]", saved: "Sequence[Saved]"
    ) -> "tuple[EngineSpec | None, list[EngineSpec], list[Saved]] | None":
        """Return the reference among shorthands, the targets and saved results; None where our own rule applies."""
        return None

    def tolerances(self) -> "list[Tolerance]":
        """Return the tolerances that apply without options; none means the noise floor."""
        return []

    def runner_names(self, participants: Sequence[str]) -> Mapping[str, str]:
        """Return how participants are called in files and lines, by our names; nothing where as here."""
        return {}

    def tell_comparison(self, result: "CompareResult", names: Mapping[str, str], *, validated: bool) -> bool:
        """Show a comparison."""
        return False

    def tell_rejudged(self, judged: "Rejudged") -> bool:
        """Show the results of judging saved numbers again."""
        return False

    def ask_about(self, model: Path, nodes: int) -> "Reply":
        """Ask a person whether a model of so many nodes fails."""
        from tensortriage.cli.prompt import Reply, ask
        from tensortriage.values.printable import printable
        from tensortriage.values.text import count

        words = {Reply.PASS: "pass", Reply.FAIL: "fail", Reply.SKIP: "skip", Reply.UNDO: "undo", Reply.QUIT: "quit"}
        return ask(f"Did '{printable(str(model))}' ({count(nodes, 'node')})", words)

    def tell_iterations(self, made: int, *, passed: int, told: int) -> None:
        """Show how many builds passed, of those with a clear outcome."""

    def check_output(self, output: Path) -> None:
        """Refuse a name of a converted file that does not determine its kind."""

    def shapes_inferred(self) -> None:
        """Report that shapes of a model were inferred."""

    def list_model(
        self,
        path: Path,
        show: Sequence[str],
        external_data_dir: Path | None,
        *,
        unbounded: bool,
        infer_shapes: bool,
        unseen: bool,
    ) -> bool:
        """Show the contents of a model; the arguments are the options of ``inspect model``."""
        return False


OURS = Dialect()
_spoken = OURS


def speak(context: click.Context, spoken: Dialect) -> None:
    """Have the commands below a group answer in a dialect."""
    global _spoken
    context.meta[_KEY] = _spoken = spoken


def dialect() -> Dialect:
    """Return the dialect of the current command."""
    context = click.get_current_context(silent=True)
    return OURS if context is None else dialect_of(context)


def dialect_of(context: click.Context) -> Dialect:
    """Return the dialect of a command."""
    found: Dialect = context.meta.get(_KEY, OURS)
    return found


def last_spoken() -> Dialect:
    """Return the dialect of the command that has ended."""
    return _spoken


def forget() -> None:
    """No command has spoken yet."""
    global _spoken
    _spoken = OURS
