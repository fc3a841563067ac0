"""``triage diagnose``: walk the whole guide and end with one verdict."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.cluster.option import WHOLE, cluster_option
from tensortriage.cli.option_values import DiagnoseValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    TOLERANCE_LISTS,
    WRITTEN_FILE,
    GuideCommand,
    case_option,
    common,
    data_options,
    external_data_option,
    limit_options,
    option,
    reference_option,
    samples_option,
    tolerance_options,
)

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
input; 3 the engine cannot be used here; 4 inconclusive; 130 interrupted (run again to go on).
"""


@click.command(cls=GuideCommand, value_lists=(*DATA_LISTS, *TOLERANCE_LISTS), epilog=EPILOG)
@click.argument("model", type=READ, required=False)
@option("--target", "-t", metavar="ENGINE", heading="Engines", help="Engine under suspicion, NAME[:key=value,...].")
@option(
    "--against",
    default="",
    metavar="ENGINE",
    heading="Engines",
    help="A second version, precision or engine: where do the two diverge first, and which of them is wrong?",
)
@reference_option("Engines")
@option(
    "--target-model",
    type=READ,
    metavar="FILE",
    heading="Engines",
    help="ONNX file that the target runs, if it is not MODEL.",
)
@option(
    "--torch",
    default="",
    metavar="FILE.py:FUNCTION",
    heading="Engines",
    help="PyTorch network that MODEL was exported from, to tell a fault of the export from one of the engine. Without "
    "MODEL, the network is exported first.",
)
@option(
    "--exporter",
    type=click.Choice(["dynamo", "legacy"]),
    default="dynamo",
    show_default=True,
    heading="Engines",
    rare=True,
    help="Which of PyTorch's exporters writes the model.",
)
@external_data_option("Engines")
@data_options
@samples_option("Inputs", 8, "Largest number of feeds to run.")
@option(
    "--sweep",
    multiple=True,
    metavar="DIM=SIZE,SIZE...",
    heading="Inputs",
    help="Sizes of a dynamic dimension to run as well, to learn at which shapes the target fails, e.g. batch=1,2,8.",
)
@option(
    "--no-random-data",
    is_flag=True,
    heading="Inputs",
    rare=True,
    help="Do not try random data when real data pass.",
)
@case_option("--output", "-o")
@option(
    "--emit-breakers",
    type=WRITTEN_FILE,
    metavar="FILE",
    heading="Result",
    help="Write the model with the extra outputs that keep the engine from fusing, if they cure the fault.",
)
@tolerance_options("Judgement", "Absolute tolerance instead of the noise floor.")
@option(
    "--builds",
    type=click.IntRange(0),
    metavar="N",
    heading="Judgement",
    help="How often to build the target again; default: 1 if it fails or its builds may differ (2 if cheap).",
)
@option(
    "--fix",
    type=WRITTEN_FILE,
    metavar="FILE",
    heading="Result",
    help="Write the model with a fix that was verified on the target.",
)
@option(
    "--no-repro", is_flag=True, heading="Result", rare=True, help="Do not write the culprit as a reproducer of its own."
)
@limit_options
@option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    heading="Limits",
    help="Time limit of the whole diagnosis; questions that are left out for lack of time are listed.",
)
@cluster_option("Limits", WHOLE)
@option("--low-memory", is_flag=True, heading="Limits", help="Capture tensors in small batches.")
@common
def diagnose(model: Path | None, target: str | None, as_json: bool, **given: Unpack[DiagnoseValues]) -> None:
    """Find out why MODEL gives wrong numbers on an engine: one verdict, the culprit, the next command.

    Runs MODEL on a reference and on the target, then asks the questions of the guide in order of cost, until one
    answer is decisive. Everything is kept in the case directory; report.html in it shows where the error is born.
    """
    from tensortriage.cli.diagnose.blas_threads import few_blas_threads
    from tensortriage.cli.diagnose.cycle_collector import rare_collections

    with few_blas_threads(), rare_collections():
        from tensortriage.cli.diagnose.request import diagnose_and_show, exported_first, no_target, request_of

    if model is None and not given["torch"]:
        raise click.UsageError("Missing argument 'MODEL', or --torch FILE.py:FUNCTION.")
    if not target:
        raise no_target(model or Path("MODEL"))
    if given["cluster"]:
        from tensortriage.cli.cluster.elsewhere import go_elsewhere

        go_elsewhere(given["cluster"], target, as_json=as_json)
    request = request_of(model or Path(), target, given)
    diagnose_and_show(exported_first(request, given["exporter"]) if model is None else request, as_json=as_json)
