"""``triage inspect plan``: what an engine really runs for a model."""

import sys
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.inspect.engine_arguments import engine_options, required_target
from tensortriage.cli.options import READ, GuideCommand, common, option

EPILOG = """\b
Examples:
  triage inspect plan model.onnx --target openvino:precision=fp16
  triage inspect plan model.onnx --target onnxruntime --json
  triage inspect plan model.onnx --target openvino --findings

\b
Exit codes: 0 every region computes in what was asked for, where it was asked to; 1 some do not.
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("model", type=READ)
@option("--findings", is_flag=True, heading="What to show",
        help="Show only the regions that are not what was asked for.")  # fmt: skip
@engine_options
@common
def inspect_plan(
    model: Path,
    target: str | None,
    findings: bool,
    external_data_dir: Path | None,
    timeout: float | None,
    memory_limit: str,
    as_json: bool,
) -> None:
    """Show what an engine really runs for MODEL: fused regions, their ONNX nodes, implementations, precision.

    The precision asked for is that of the engine's options, else the types of the model. A region that computes in
    another one (fp32 where fp16 was asked for, bf16 where nobody asked for it), or that runs elsewhere than on the
    provider that was asked for, is a finding, marked with "!".
    """
    from tensortriage.cli.requests import limits_of
    from tensortriage.workflows.engines import engine_inspection

    spec = required_target(target, "inspect plan", model)
    limits = limits_of(timeout, memory_limit)
    found = engine_inspection.inspect_plan(model, spec, limits=limits, external_data_dir=external_data_dir)
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
    else:
        from tensortriage.report.terminal.plan_text import MARK, closing_lines, region_lines

        for line in region_lines(found, found.findings if findings else found.regions):
            click.echo(click.style(line, fg="red") if line.startswith(MARK) else line)
        for line in closing_lines(found):
            click.echo(click.style(line, fg="red") if line.startswith(MARK) else line)
    sys.exit(1 if found.findings else 0)
