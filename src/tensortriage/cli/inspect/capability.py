"""``triage inspect capability``: which parts of a model an engine can build."""

import contextlib
import sys
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.inspect.engine_arguments import engine_options, required_target
from tensortriage.cli.options import READ, WRITTEN_FOLDER, GuideCommand, common, inference_accepted, option

EPILOG = """\b
Examples:
  triage inspect capability model.onnx --target openvino
  triage inspect capability model.onnx --target onnxruntime:providers=cuda --with-partitioning
  triage inspect capability model.onnx --target openvino -o pieces --timeout 30
  triage inspect capability model.onnx --target tensorrt

\b
Exit codes: 0 the engine builds the whole model, 1 it does not.
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("model", type=READ)
@engine_options
@inference_accepted("Pieces")
@option("--output", "-o", type=WRITTEN_FOLDER, metavar="DIR", heading="Pieces",
        help="Directory for the pieces that build and those that do not, one ONNX file each, with "
             "results.json.")  # fmt: skip
@option("--with-partitioning", "partition", is_flag=True, heading="Pieces",
        help="Find the largest ranges of nodes that build as one model; implied by -o.")  # fmt: skip
@common
def inspect_capability(
    model: Path,
    target: str | None,
    external_data_dir: Path | None,
    timeout: float | None,
    memory_limit: str,
    output: Path | None,
    partition: bool,
    as_json: bool,
) -> None:
    """Find out which nodes of MODEL an engine can build, why it refuses others, and the largest pieces it can build.

    When the whole model builds, all nodes do. A crash or a hang of the engine counts as an answer. Of TensorRT only the
    parser is asked, which proves less: a node that it accepts may still lack a kernel.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.cli.requests import limits_of
    from tensortriage.workflows.engines import engine_inspection

    with contextlib.closing(Teller(err=as_json)) as teller:
        found = engine_inspection.inspect_capability(
            model,
            required_target(target, "inspect capability", model),
            partition=partition,
            output=output,
            limits=limits_of(timeout, memory_limit),
            external_data_dir=external_data_dir,
            say=teller.progress,
        )
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
    else:
        from tensortriage.report.terminal.capability_text import capability_lines

        for line in capability_lines(found, folder=str(output or "")):
            click.echo(line)
    sys.exit(1 if found.answers else 0)
