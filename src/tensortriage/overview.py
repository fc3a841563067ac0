"""The page that ``triage --help`` prints, and the table of commands behind it.

Nothing heavy is imported here, not even click: `tensortriage.__main__` prints the page without the command line, and
the command line shows the same page as the help of its root.
"""

import os
import shutil
import sys
import textwrap

from tensortriage.values.registered import registered

INTERRUPTED = 130
"""Exit code of a command whose reader closed its output early, and of one that Ctrl-C ended."""
GROUP = "tensortriage.commands"
"""Entry-point group under which other packages register commands; those of a group of ours in ``GROUP.group``."""
COMMANDS = {
    "diagnose": (
        "tensortriage.cli.diagnose.command:diagnose",
        "Find out why a model is wrong on an engine: one verdict.",
    ),
    "run": (
        "tensortriage.cli.run.command:run",
        "Run on one or more engines, compare outputs or every layer, validate.",
    ),
    "debug": (
        "tensortriage.cli.groups:debug",
        "Reduce a failing model, study its builds and precision, repeat a check.",
    ),
    "surgeon": ("tensortriage.cli.groups:surgeon", "Edit models: sanitize, extract, insert."),
    "convert": (
        "tensortriage.cli.convert.command:convert",
        "Write a model in fp16, bf16 or int8, or of a later opset.",
    ),
    "inspect": ("tensortriage.cli.groups:inspect", "Look into models, engines, tactics and data."),
    "check": ("tensortriage.cli.groups:check", "Known problems of a model; consistency of an engine; saved results."),
    "engines": ("tensortriage.cli.engines:engines", "List engines, test them, and make environments for them."),
    "report": ("tensortriage.cli.report:report", "Render a case once more (html, markdown, json, console)."),
    "demo": ("tensortriage.cli.diagnose.demo:demo", "The main job on a bundled model and real data."),
}
"""Command words with ``module:attribute`` and one line of help."""
PURPOSE = "Find out why an ONNX model gives wrong numbers on an inference engine: culprit op, repro and fix."
OPTIONS = {
    "-V, --version": "Show the version and exit.",
    "--debug": "Show tracebacks of errors.",
    "-h, --help": "Show this message and exit.",
}
EPILOG = """\
Examples:
  triage demo
  triage diagnose model.onnx --target openvino:precision=bf16 --inputs real.npz
  triage run model.onnx --target onnxruntime --onnx-outputs mark all
  triage report triage-case --format markdown

Exit codes: 0 fine, 1 a problem was found, 2 usage or bad input, 3 an engine cannot be
used here, 4 inconclusive, 130 interrupted (state is kept).
"""
WIDEST, NARROWEST = 110, 50
"""Bounds of the width of help pages, in characters; two columns of the terminal are left free."""


def show_overview() -> int:
    """Print the page until the reader closes the pipe, and return the exit code."""
    try:
        sys.stdout.buffer.write(overview().encode(sys.stdout.encoding, errors="backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    return 0


def overview() -> str:
    """Return the page, in the width of the terminal."""
    from tensortriage.engines.cpu_features import where_it_runs

    width = max(min(shutil.get_terminal_size().columns, WIDEST) - 2, NARROWEST)
    others = {name: point.summary() for name, point in registered(GROUP).items() if name not in COMMANDS}
    commands = {name: text for name, (_, text) in COMMANDS.items()} | others
    purpose = textwrap.fill(PURPOSE, width, initial_indent="  ", subsequent_indent="  ")
    head = f"Usage: triage [OPTIONS] COMMAND [ARGS]...\n\n{purpose}\n"
    return "\n".join(
        [
            head,
            _section("Options", OPTIONS, width),
            _section("Commands", commands, width),
            textwrap.indent(where_it_runs(EPILOG), "  "),
        ]
    )


def _section(heading: str, rows: dict[str, str], width: int) -> str:
    left = max(map(len, rows)) + 4
    lines = [f"{heading}:"]
    for name, text in rows.items():
        first, *others = textwrap.wrap(text, max(width - left, 10)) or [""]
        lines += [f"  {name}".ljust(left) + first, *(" " * left + other for other in others)]
    return "\n".join([*lines, ""])
