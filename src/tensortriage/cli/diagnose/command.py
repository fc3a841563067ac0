"""``triage diagnose``: walk the whole guide and end with one verdict."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tensortriage.cli.declared import command
from tensortriage.values.options import argument, flag, option, part
from tensortriage.workflows.requests import ENGINES, DiagnoseRequest

EPILOG = """\b
Examples:
  triage diagnose model.onnx --target openvino:precision=bf16 --inputs real.npz
  triage diagnose model.onnx --target emulate:precision=fp16 --inputs test_data_set_0
  triage diagnose model.onnx --target onnxruntime --target-model optimized.onnx
  triage diagnose model.onnx --target openvino --against openvino:worker=old/bin/python
  triage diagnose --torch network.py:make --target openvino:precision=bf16
  triage diagnose model.onnx --target script:my_engine.py:MyEngine --case study

\b
Exit codes: 0 match, rounding that the format explains, or input-sensitive; 1 a fault was found; 2 usage or bad
input; 3 the engine cannot be used here; 4 inconclusive; 130 interrupted (run again to resume).
"""


def import_diagnosis(given: Mapping[str, Any]) -> None:
    """Import the modules of a diagnosis, with few threads and collections, while the target's process starts."""
    from tensortriage.cli.diagnose.blas_threads import few_blas_threads
    from tensortriage.cli.diagnose.cycle_collector import rare_collections

    with rare_collections():
        with few_blas_threads():
            import numpy as np  # noqa: F401 - imported for its threads, under this setting
        from tensortriage.runs.engine_specs import ask_ahead

        if given.get("target") and not (given.get("timeout") or given.get("memory_limit")):
            ask_ahead(given["target"])  # within the default limits
        import tensortriage.cli.diagnose.answer  # noqa: F401 - imported for what it imports


@command(epilog=EPILOG, before=import_diagnosis)
def diagnose(
    request: DiagnoseRequest = part(factory=DiagnoseRequest, model=argument("MODEL", default=Path())),
    exporter: str = option(
        "--exporter", "", "Which of PyTorch's exporters writes the model.", default="dynamo",
        choices=("dynamo", "legacy"), rare=True, group=ENGINES),
    real_examples: bool = flag(
        "--real-examples", "The example inputs of --torch are real data; they count as random.", rare=True),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Find out why MODEL gives wrong numbers on an engine: one verdict, the culprit, the next command.

    Runs MODEL on a reference and on the target, then asks the questions of the guide in order of cost, until one
    answer is decisive. Everything is kept in the case directory; report.html in it shows where the error originates.
    """
    from tensortriage.cli.diagnose.answer import diagnose_and_show, exported_first

    if request.model == Path() and not request.network:
        raise click.UsageError("Missing argument 'MODEL', or --torch FILE.py:FUNCTION.")
    began = time.perf_counter()
    complete = exported_first(request, exporter, real=real_examples) if request.model == Path() else request
    diagnose_and_show(complete, as_json=as_json, began=began)
