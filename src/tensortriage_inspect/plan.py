"""``triage inspect plan``: the regions that an engine really runs for a model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import LimitOptions, answer, argument, command, external_data_field, flag, part, target_field

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Limits

EPILOG = """\b
Examples:
  triage inspect plan model.onnx --target openvino:precision=fp16
  triage inspect plan model.onnx --target onnxruntime --json
  triage inspect plan model.onnx --target openvino --findings

\b
Exit codes: 0 every region computes in the requested format on the requested device; 1 some do not.
"""


@command(epilog=EPILOG)
def inspect_plan(
    model: Path = argument("MODEL"),
    findings: bool = flag("--findings", "Show only the regions that differ from the request.", group="What to show"),
    target: str = target_field("Engine to inspect, NAME[:key=value,...].", group="Engine"),
    external_data_dir: Path | None = external_data_field(),
    limits: "Limits" = part(factory=LimitOptions),
    *,
    as_json: bool,
) -> None:
    """Show what an engine really runs for MODEL: fused regions, their ONNX nodes, implementations, precision.

    The requested precision is that of the engine's options, else the types of the model. A region that computes in
    another one (fp32 where fp16 was requested, bf16 where nothing was), or that runs on another provider than
    requested, is a finding, marked with "!".
    """
    from tensortriage_inspect import engine_plan
    from tensortriage_inspect.plan_text import closing_lines, region_lines

    found = engine_plan.inspect_plan(model, target, limits=limits, external_data_dir=external_data_dir)
    regions = region_lines(found, found.findings if findings else found.regions)
    answer(found, (*regions, *closing_lines(found)), as_json=as_json)
    sys.exit(1 if found.findings else 0)
