"""``triage check lint``: known problems of a model, found before a search for lost accuracy begins."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import OnnxRuntimeOptions, Place, answer, command, dialect, flag, option, part, write_text
from tensortriage_polygraphy.dialect import PolygraphyDialect
from tensortriage_polygraphy.lint.request import ENGINE, LintRequest

if TYPE_CHECKING:
    from tensortriage.sdk import Line
    from tensortriage_polygraphy.lint.linter import LintReport

EPILOG = """\b
Examples:
  triage check lint model.onnx
  triage check lint model.onnx --precision fp16
  triage check lint model.onnx --target openvino:precision=bf16
  triage check lint model.onnx --no-engine --json

\b
Exit codes: 0 nothing, or hints only; 1 a problem, or a check that refuses the model.
"""


@command(epilog=EPILOG)
def check_lint(
    request: LintRequest,
    no_engine: bool = flag("--no-engine", "Run no engine: only the rules and onnx.checker.", group=ENGINE),
    onnxruntime: OnnxRuntimeOptions = part(factory=OnnxRuntimeOptions),
    output: Path | None = option(
        "--output -o",
        "FILE",
        "File for the report, in Polygraphy's JSON.",
        default=None,
        writes=Place.FILE,
        group="Files",
    ),
    *,
    as_json: bool,
) -> None:
    """Find known problems of MODEL: by onnx.checker, by every node alone on an engine, and by rules for common traps.

    Traps of a number format are hints, or problems if the model is meant for that format (--precision, or the
    target's).
    """
    from tensortriage.sdk import Teller
    from tensortriage_polygraphy.lint.linter import lint_model

    if no_engine:
        request = dataclasses.replace(request, target=None)
    elif onnxruntime != OnnxRuntimeOptions() and request.target == LintRequest(model=request.model).target:
        request = dataclasses.replace(request, target=str(onnxruntime.engine()))
    if not as_json and isinstance(dialect(), PolygraphyDialect):
        from tensortriage_polygraphy.lint.lint_report import lint

        sys.exit(0 if lint(request, output) else 1)
    with contextlib.closing(Teller(err=as_json)) as teller:
        report = lint_model(request, say=teller.progress)
    if output is not None:
        from tensortriage_polygraphy.lint.lint_text import polygraphy_report

        text = polygraphy_report(report.findings, passing=report.passing, failing=report.failing)
        write_text(output, text + "\n")
    answer(report, lines(report), as_json=as_json)
    sys.exit(0 if report.passed else 1)


def lines(report: "LintReport") -> Iterator["Line"]:
    """Yield the findings, the worst first, and the counts last."""
    from tensortriage_polygraphy.lint.lint_text import closing_line, finding_lines

    yield from finding_lines(report.findings)
    yield closing_line(
        report.findings,
        target=report.target,
        formats=report.formats,
        passing=len(report.passing),
        failing=len(report.failing),
        skipped=len(report.skipped),
    )
