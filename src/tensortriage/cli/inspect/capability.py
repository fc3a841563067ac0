"""``triage inspect capability``: which parts of a model an engine can build."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer
from tensortriage.cli.options import inference_accepted
from tensortriage.runs.request_fields import LimitOptions, external_data_field, target_field
from tensortriage.values.options import argument, flag, option, part
from tensortriage.values.output_files import Place

if TYPE_CHECKING:
    from tensortriage.engines.base import Limits

EPILOG = """\b
Examples:
  triage inspect capability model.onnx --target openvino
  triage inspect capability model.onnx --target onnxruntime:providers=cuda --with-partitioning
  triage inspect capability model.onnx --target openvino -o pieces --timeout 30
  triage inspect capability model.onnx --target tensorrt

\b
Exit codes: 0 the engine builds the whole model, 1 it does not.
"""


@command(epilog=EPILOG, accepted=inference_accepted("Pieces"))
def inspect_capability(
    model: Path = argument("MODEL"),
    target: str = target_field("Engine to ask, NAME[:key=value,...].", group="Engine"),
    external_data_dir: Path | None = external_data_field(),
    limits: "Limits" = part(factory=LimitOptions),
    output: Path | None = option(
        "--output -o", "DIR", "Directory for the pieces that build and those that do not, one ONNX file each, with "
        "results.json.", default=None, writes=Place.FOLDER, group="Pieces"),
    partition: bool = flag(
        "--with-partitioning", "Find the largest ranges of nodes that build as one model; implied by -o."),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Find out which nodes of MODEL an engine can build, why it refuses others, and the largest pieces it can build.

    When the whole model builds, all nodes do. A crash or a hang of the engine counts as an answer. Of TensorRT only the
    parser is asked, which proves less: a node that it accepts may still lack a kernel.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.report.terminal.capability_text import capability_lines
    from tensortriage.workflows.engines import engine_inspection

    with contextlib.closing(Teller(err=as_json)) as teller:
        found = engine_inspection.inspect_capability(
            model,
            target,
            partition=partition,
            output=output,
            limits=limits,
            external_data_dir=external_data_dir,
            say=teller.progress,
        )
    answer(found, capability_lines(found, folder=str(output or "")), as_json=as_json)
    sys.exit(1 if found.answers else 0)
