"""The command line: every command is one file that parses, calls one workflow, picks a renderer and sets the exit code.

Start-up is kept short by a table of commands that are imported only when used, with their one-line help in the table.
"""

import contextlib
import io
import os
import re
import signal
import sys
import threading
import time
import types
from collections.abc import Sequence

import click

from tensortriage.cli import dialect, documents, guard
from tensortriage.cli.lazy import LazyGroup
from tensortriage.cli.logs import finish, to_file
from tensortriage.errors import TriageError, did_you_mean
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.overview import COMMANDS, EPILOG, GROUP, INTERRUPTED, WIDEST, overview


def show_version(context: click.Context, _: click.Parameter, value: object) -> None:
    """Print the version and stop."""
    if not value or context.resilient_parsing:
        return
    from tensortriage import __version__

    click.echo(f"triage {__version__}")
    context.exit()


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    entry_points=GROUP,
    page=overview,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
@click.option("--version", "-V", is_flag=True, expose_value=False, is_eager=True, callback=show_version)
@click.option("--debug", is_flag=True)
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Read the options in front of the command word."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # https://no-color.org
        context.color = False


@frozen_dataclass
class CommandProblem:
    """The reason why a command ended early, as users see it.

    Attributes:
        slug: Stable word for the problem.
        message: The mistake and its place.
        cure: Advice, as in `TriageError`; may be empty.
        exit_code: Exit code of the command.
    """

    slug: str
    message: str
    cure: str
    exit_code: int = 2
    format: str = "tensortriage.error/1"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; the one place where errors become messages and exit codes."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    ours = own_words(words)
    debug = "--debug" in ours or bool(os.environ.get("TRIAGE_DEBUG"))
    if "--debug" in ours and words[0] != "--debug":
        words.remove("--debug")
    if arguments is None and not debug and guard.possible(ours):
        answer_for_child(ours)
    cause: BaseException | None = None
    try:
        prepare_process()
        code = exit_code_of(words)
        sys.stdout.flush()
        _last_words.begun = True
    except BrokenPipeError:  # the reader of the output has closed it
        _last_words.begun = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:
        _last_words.begun = True  # before any call, at which another signal could raise
        # A library may have made something else of an interruption.
        cause = KeyboardInterrupt() if _interrupted.is_set() else error
        if debug and not isinstance(cause, click.ClickException | click.Abort | KeyboardInterrupt):
            raise
        guard.about_to(guard.TELLING)
        code = tell(problem_of(cause), as_json="--json" in ours, prefix=dialect.last_spoken().mark)
    code = dialect.last_spoken().exit_code(words, code, cause)
    finish(code)
    guard.settle(code)
    if arguments is None:  # the output is complete: cleanup code of libraries needs no interruption
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def answer_for_child(words: Sequence[str]) -> None:
    """Return in a child process, which does the work; in this process wait for it, report its end, and exit."""
    limit = memory_limit_of(words)
    ending = guard.start(limit)
    if ending is not None and ending.code is None and ending.crashed and not ending.answered:
        name = signal.Signals(ending.signal).name
        click.echo(f"triage: native code crashed ({name}); retrying with every engine in a worker", err=True)
        guard.move_engines_apart()
        ending = guard.start(limit)
    if ending is None:
        return
    if ending.code is not None:
        os._exit(ending.code)  # nothing was done here that had to be finished: the child has spoken
    if ending.told:
        sys.exit(problem_of_ending(ending, limit).exit_code)
    sys.exit(tell(problem_of_ending(ending, limit), as_json="--json" in words and not ending.answered))


def memory_limit_of(words: Sequence[str]) -> int | None:
    """Return the value of ``--memory-limit`` in bytes; None without one, or with one that is refused later."""
    for place, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == "--memory-limit":
            from tensortriage.values.text import parse_bytes

            with contextlib.suppress(TriageError, IndexError):
                return parse_bytes(value or words[place + 1])
    return None


def problem_of_ending(ending: "guard.Ending", memory_bytes: int | None) -> CommandProblem:
    """Return the problem for the signal that ended the child."""
    if ending.cause == "interrupted":
        return problem_of(KeyboardInterrupt())
    if ending.cause == "memory":
        from tensortriage.values.text import larger_limit

        message = f"the command needed more than {(memory_bytes or 0) >> 20} MB"
        cure = f"try --memory-limit {larger_limit(memory_bytes or 0)}, or use --low-memory or smaller inputs"
        return CommandProblem(slug="out-of-memory", message=message, cure=cure)
    if ending.cause == guard.NO_MEMORY:
        from tensortriage.engines.process.control_group import group_memory

        group, message = group_memory(), "the command was killed: there was no memory left"
        cure = "try --memory-limit with less than this machine has, or use --low-memory or smaller inputs"
        if group is not None:
            message = f"the command was killed: its control group may hold {group.limit >> 20} MB"
            cure = f"{group.cure}; --low-memory and smaller inputs need less"
        return CommandProblem(slug="out-of-memory", message=message, cure=cure)
    name = signal.Signals(ending.signal).name
    if ending.crashed:
        when = "twice, the second time with every engine in a worker"
        message = f"native code crashed {'after the answer' if ending.answered else when} ({name})"
        cure = "triage inspect model and triage check lint may show anything unusual in the model"
        return CommandProblem(slug="crashed", message=message, cure=cure)
    cure = "free memory if the system had none left; rerun in the same --case to resume"
    return CommandProblem(slug="killed", message=f"the command was killed by {name}", cure=cure)


def exit_code_of(words: list[str]) -> int:
    """Run one command and return its exit code; errors pass through."""
    try:
        with cli.make_context("triage", words) as context:
            cli.invoke(context)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    return 0


def own_words(words: Sequence[str]) -> Sequence[str]:
    """Return the words that are neither those of a check nor behind a lone ``--``."""
    from tensortriage.cli.options import split_check

    ours, _ = split_check(words)
    return ours[: ours.index("--")] if "--" in ours else ours


_interrupted = threading.Event()
_last_words = types.SimpleNamespace(begun=False)


def _interrupt(number: int, _: object) -> None:
    if _last_words.begun or documents.begun():  # the last words: they are few, and half of them would be none
        if not guard.is_child():  # without a parent that waits for the output, the next signal ends the process
            signal.signal(number, signal.SIG_DFL)
        return
    if _interrupted.is_set() and time.monotonic() - _told[-1] < PATIENCE_SECONDS:
        return  # the same request by another way: from the terminal, and passed on
    _told[:] = [time.monotonic()]
    _interrupted.set()
    raise KeyboardInterrupt


PATIENCE_SECONDS = 1.0
_told: list[float] = []


def prepare_process() -> None:
    """Make every request to end an interruption, and output possible in any locale; none has come yet."""
    _interrupted.clear()
    _last_words.begun = False
    documents.forget()
    dialect.forget()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # a shell may have closed them
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def problem_of(error: BaseException) -> CommandProblem:
    """Return the problem for an exception."""
    if isinstance(error, TriageError):
        return CommandProblem(error.slug, error.message, error.cure, error.exit_code)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return CommandProblem(slug="interrupted", message="the results so far are kept", cure="", exit_code=INTERRUPTED)
    if isinstance(error, click.UsageError):
        return _problem_of_usage(error)
    if isinstance(error, MemoryError):
        return CommandProblem(slug="out-of-memory", message="out of memory", cure="--low-memory, or a larger machine")
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        text = f"{place}{error.strerror or error}"
        return CommandProblem(slug="os-error", message=text, cure="check the path and its permissions")
    text = f"internal error: {type(error).__name__}: {error}"
    return CommandProblem(slug="internal", message=text, cure="run again with --debug and report the traceback")


def _problem_of_usage(error: click.UsageError) -> CommandProblem:
    """Return the problem of a command line: the nearest option first, an example where the model is missing."""
    place, message = error.ctx.command_path if error.ctx else "triage", error.format_message().rstrip(".")
    cure = f"see {place} --help"
    if isinstance(error, click.NoSuchOption):
        meant = did_you_mean(error.option_name, error.possibilities or ())
        message = f"no option '{error.option_name}'{f', {meant}' if meant else ''}"
    elif message.startswith("Missing argument") and error.ctx:
        examples = re.findall(r"^  (triage .*)$", error.ctx.command.epilog or "", re.MULTILINE)
        cure = f"{cure}; for example: {examples[0].split('  ')[0]}" if examples else cure
    return CommandProblem(slug="usage", message=message, cure=cure)


def tell(problem: CommandProblem, *, as_json: bool, prefix: str = "") -> int:
    """Print one error block on stderr, with --json a document on stdout too, and return the exit code.

    Names in models are not trusted with a terminal.
    """
    from tensortriage.values.printable import printable

    lines = [f"{prefix}triage: error[{problem.slug}]: {printable(problem.message)}"]
    if problem.exit_code == INTERRUPTED:
        lines = [f"triage: {problem.slug}; {problem.message}"]
    if problem.cure:
        lines.append(f"  cure: {printable(problem.cure)}")
    for line in lines:
        click.echo(line, err=True)
    to_file(lines)
    if as_json and not documents.begun():
        from tensortriage.values.serial import to_json

        with contextlib.suppress(OSError):  # where stdout is closed, the exit code is all that is left
            documents.print_document(to_json(problem))
    return problem.exit_code
