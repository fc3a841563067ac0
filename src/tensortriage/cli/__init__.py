"""The command line: every command is one file that parses, calls one workflow, picks a renderer and sets the exit code.

Start-up is kept short by a table of commands that are imported only when used, with their one-line help in the table.
"""

import os
import sys
from collections.abc import Sequence

import click

from tensortriage.cli.lazy import LazyGroup
from tensortriage.errors import TriageError

INTERRUPTED = 130

EPILOG = """\b
Examples:
  triage demo
  triage diagnose model.onnx --target openvino:precision=bf16 --inputs real.npz
  triage run model.onnx --target onnxruntime --onnx-outputs mark all
  triage report triage-case --format markdown

\b
Exit codes: 0 fine, 1 a problem was found, 2 usage or bad input, 3 an engine cannot be
used here, 4 inconclusive, 130 interrupted (state is kept).
"""

COMMANDS = {
    "diagnose": ("tensortriage.cli.diagnose:diagnose", "Walk the whole guide by itself; one verdict."),
    "run": ("tensortriage.cli.run:run", "Run on one or more engines, compare outputs or every layer, validate."),
    "debug": ("tensortriage.cli.groups:debug", "Reduce a failing model; repeat a check."),
    "surgeon": ("tensortriage.cli.groups:surgeon", "Edit models: sanitize, extract, insert, prune, weights."),
    "convert": ("tensortriage.cli.convert:convert", "Write a model in fp16 or bf16, or of a later opset."),
    "inspect": ("tensortriage.cli.groups:inspect", "Look into data and models."),
    "check": ("tensortriage.cli.groups:check", "Judge saved results again."),
    "data": ("tensortriage.cli.data:data", "Merge, concatenate and convert feeds and saved outputs."),
    "report": ("tensortriage.cli.report:report", "Render a case again (html, markdown, json, console)."),
    "demo": ("tensortriage.cli.demo:demo", "The main job on a bundled model and real data."),
}


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
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--version", "-V", is_flag=True, expose_value=False, is_eager=True, callback=show_version,
              help="Show the version and exit.")  # fmt: skip
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Find out why an ONNX model gives wrong numbers on an inference engine: culprit op, repro and fix."""
    context.obj = {"debug": debug}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; the one place where errors become messages and exit codes."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    ours = words[: words.index("--check")] if "--check" in words else words
    debug = "--debug" in ours or bool(os.environ.get("TRIAGE_DEBUG"))
    if "--debug" in ours and words[0] != "--debug":
        words.remove("--debug")
    try:
        code = cli.main(words, prog_name="triage", standalone_mode=False)
    except TriageError as error:
        if debug:
            raise
        code = fail(error.message, error.slug, error.cure, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        code = 2
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "triage"
        code = fail(error.format_message().rstrip("."), "usage", f"see {context} --help", 2)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("triage: interrupted; what was found so far is kept", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except MemoryError:
        code = fail("out of memory", "out-of-memory", "try --low-memory, or a machine with more memory", 2)
    except OSError as error:
        if debug:
            raise
        place = f"{error.filename}: " if error.filename else ""
        code = fail(f"{place}{error.strerror or error}", "os-error", "check the path and its permissions", 2)
    except Exception as error:
        if debug:
            raise
        code = fail(
            f"internal error: {type(error).__name__}: {error}",
            "internal",
            "run again with --debug and report the traceback",
            2,
        )
    sys.exit(code if isinstance(code, int) else 0)


def fail(message: str, slug: str, cure: str, code: int) -> int:
    """Print one error block on stderr and return the exit code; names in models are not trusted with a terminal."""
    from tensortriage.report.text import printable

    click.echo(f"triage: error[{slug}]: {printable(message)}", err=True)
    if cure:
        click.echo(f"  cure: {printable(cure)}", err=True)
    return code
