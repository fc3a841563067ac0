"""``triage check lint``: known problems of a model, found before a search for lost accuracy begins."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import LintValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    WRITTEN_FILE,
    GuideCommand,
    common,
    data_options,
    external_data_option,
    limit_options,
    option,
    together,
)
from tensortriage.values.files import write_text

if TYPE_CHECKING:
    from tensortriage.workflows.lint import LintReport, LintRequest

EPILOG = """\b
Examples:
  triage check lint model.onnx
  triage check lint model.onnx --precision fp16
  triage check lint model.onnx --target openvino:precision=bf16
  triage check lint model.onnx --no-engine --json

\b
Exit codes: 0 nothing, or hints only; 1 a problem, or a check that refuses the model.
"""
ENGINE, AIMS, FILES = "Engine", "Aims", "Files"


options = together(
    option("--target", "-t", metavar="ENGINE", heading=ENGINE,
           help="Engine on which every node is tried alone  [default: onnxruntime]."),
    option("--no-engine", is_flag=True, heading=ENGINE, help="Run no engine: only the rules and onnx.checker."),
    option("--providers", "--execution-providers", "providers", multiple=True, metavar="NAME...", heading=ENGINE,
           rare=True, help="Execution providers of ONNX Runtime, when no --target is given."),
    option("--graph-optimization-level", default="", metavar="LEVEL", heading=ENGINE, rare=True,
           help="Optimization level of ONNX Runtime, e.g. ORT_DISABLE_ALL, when no --target is given."),
    option("--precision", "precisions", multiple=True, metavar="WORD...", heading=AIMS,
           help="Formats that the model is meant for (fp16, bf16, ...); their traps are problems, not hints."),
    option("--output", "-o", type=WRITTEN_FILE, metavar="FILE", heading=FILES,
           help="File for the report, in Polygraphy's JSON."),
    external_data_option(FILES),
)  # fmt: skip
"""The options of ``check lint``."""


@click.command(
    cls=GuideCommand, value_lists=(*DATA_LISTS, "--precision", "--providers", "--execution-providers"), epilog=EPILOG
)
@click.argument("model", type=READ)
@options
@data_options
@limit_options
@common
@click.pass_context
def check_lint(
    context: click.Context, /, model: Path, as_json: bool, output: Path | None, **given: Unpack[LintValues]
) -> None:
    """Find known problems of MODEL: by onnx.checker, by every node alone on an engine, and by rules for common traps.

    Traps of a number format are hints, or problems if the model is meant for that format (--precision, or the
    target's).
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.workflows.lint import lint_model

    if context.meta.get(COMPATIBLE) and not as_json:
        as_polygraphy(model, output, given)
    with contextlib.closing(Teller(err=as_json)) as teller:
        report = lint_model(request_of(model, given), say=teller.progress)
    if output is not None:
        from tensortriage.report.terminal.lint_text import polygraphy_report

        text = polygraphy_report(report.findings, passing=report.passing, failing=report.failing)
        write_text(output, text + "\n")
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(report))
    else:
        tell(report)
    sys.exit(0 if report.passed else 1)


def as_polygraphy(model: Path, output: Path | None, given: LintValues) -> NoReturn:
    """Lint, tell it as Polygraphy does, and exit."""
    from tensortriage.cli.check.polygraphy_lint import report, report_unreadable
    from tensortriage.errors import ModelError
    from tensortriage.workflows.lint import lint_model

    request = request_of(model, given)
    try:
        found = lint_model(request)
    except ModelError as error:
        if error.slug != "model-unreadable":
            raise
        report_unreadable(error, output)
        sys.exit(1)
    sys.exit(0 if report(found, model, request.external_data_dir, output) else 1)


def request_of(model: Path, given: LintValues) -> "LintRequest":
    """Return the request that a command line stands for."""
    from tensortriage.cli.requests import feed_request, limits_of
    from tensortriage.cli.run.request import onnxruntime
    from tensortriage.values.dtype import Precision
    from tensortriage.workflows.lint import LintRequest

    limits = limits_of(given["timeout"], given["memory_limit"])
    target = None if given["no_engine"] else given["target"] or str(onnxruntime(given))
    return LintRequest(
        model=model,
        target=target,
        formats=tuple(map(Precision.parse, given["precisions"])),
        feeding=feed_request(given, most=1, limits=limits),
        limits=limits,
        external_data_dir=given["external_data_dir"],
    )


def tell(report: "LintReport") -> None:
    """Print what was found, the worst first, and the numbers last."""
    from tensortriage.model.lint.finding import Severity
    from tensortriage.report.terminal.lint_text import closing_line, finding_lines

    colours = {Severity.EXCEPTION: "red", Severity.PROBLEM: "red", Severity.HINT: "cyan"}
    for severity, line in finding_lines(report.findings):
        click.echo(click.style(line, fg=colours[severity]) if not line.startswith(" ") else line)
    click.echo(
        closing_line(
            report.findings,
            target=report.target,
            formats=report.formats,
            passing=len(report.passing),
            failing=len(report.failing),
            skipped=len(report.skipped),
        )
    )
