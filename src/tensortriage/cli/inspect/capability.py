"""``triage inspect capability``: which parts of a model an engine can build."""

import contextlib
import sys

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer
from tensortriage.cli.options import inference_accepted
from tensortriage.workflows.requests import CapabilityRequest

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
def inspect_capability(request: CapabilityRequest, *, as_json: bool) -> None:
    """Find out which nodes of MODEL an engine can build, why it refuses others, and the largest pieces it can build.

    When the whole model builds, all nodes do. A crash or a hang of the engine counts as an answer. Of TensorRT only the
    parser is asked, which proves less: a node that it accepts may still lack a kernel.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.report.terminal.capability_text import capability_lines
    from tensortriage.workflows.engines import engine_inspection

    with contextlib.closing(Teller(err=as_json)) as teller:
        found = engine_inspection.inspect_capability(request, teller.progress)
    answer(found, capability_lines(found, folder=str(request.output or "")), as_json=as_json)
    sys.exit(1 if found.answers else 0)
