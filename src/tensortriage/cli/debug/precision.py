"""``triage debug precision``: the fewest nodes to keep in higher precision, and the mixed-precision model."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.cluster.option import cluster_option
from tensortriage.cli.debug.check_options import (
    CHECK_LISTS,
    CheckingCommand,
    artifact_options,
    check_options,
    check_words,
)
from tensortriage.cli.option_values import PrecisionValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    TOLERANCE_LISTS,
    WRITTEN_FILE,
    case_option,
    common,
    data_options,
    external_data_option,
    inference_accepted,
    limit_options,
    model_type_option,
    option,
    reference_option,
    samples_option,
    together,
    tolerance_options,
)

EPILOG = """\b
Examples:
  triage debug precision model.onnx --target openvino:precision=bf16 --inputs real.npz -o mixed.onnx
  triage debug precision model.onnx --target emulate:precision=fp16 --inputs real.npz --sqnr 40 -o mixed.onnx
  triage debug precision model.onnx --target tensorrt:precision=fp16 --inputs real.npz -o mixed.onnx \\
      --metric accuracy.py --metric-min 0.98 --latency
  triage debug precision model.onnx --target onnxruntime --int8 --inputs real.npz --sqnr 30 -o mixed.onnx
  triage debug precision model.onnx --fp16 -o mixed.onnx --check "./build.sh polygraphy_debug.onnx && ./compare.sh"
  triage debug precision model.onnx --fp16 --mode bisect --direction reverse --check ./check.sh

\b
Exit codes: 0 the outputs are good enough with the nodes found, 2 usage or bad input, 4 not even with every
node in fp32 (the fault is not precision), 130 interrupted (run again to go on).
"""
LISTS = (*DATA_LISTS, *CHECK_LISTS, *TOLERANCE_LISTS)
RESULT, ENGINES, GOAL, SEARCH = "Result", "Engines (instead of --check)", "Good enough", "Search"


result_options = together(
    option("--output", "-o", type=WRITTEN_FILE, metavar="FILE", heading=RESULT,
           help="File for the mixed-precision model; precision.json is written beside it."),
    case_option(),
    option("--latency", is_flag=True, heading=RESULT,
           help="Also measure the latency of the engine at every point of the curve."),
    option("--remedies", is_flag=True, heading=RESULT,
           help="Also try fixes other than fp32, such as equivalent rewrites and other formats."),
)  # fmt: skip
"""Where results go."""


engine_options = together(
    option("--target", "-t", default="", metavar="ENGINE", heading=ENGINES,
           help="Engine that computes in the lower format, NAME:precision=FORMAT[,key=value...]."),
    reference_option(ENGINES),
    option("--fp16", "low", flag_value="fp16", heading=SEARCH,
           help="Compute in fp16, if --target names no format."),
    option("--bf16", "low", flag_value="bf16", heading=SEARCH, help="Compute in bf16, likewise."),
    option("--int8", "low", flag_value="int8", heading=SEARCH,
           help="Compute in int8, with Q/DQ pairs that are calibrated on the feeds; needs --sqnr, --atol, --metric "
                "or --check."),
    option("--fp8", "low", flag_value="fp8e4m3", heading=SEARCH, help="Compute in fp8, likewise."),
    option("--precision", "-p", "higher", type=click.Choice(["float32", "fp32"]), default="float32",
           show_default=True, heading=SEARCH, rare=True, help="The higher precision."),
)  # fmt: skip
"""Which engines and formats."""


goal_options = together(
    tolerance_options(GOAL, "Absolute tolerance of the outputs  [default: 10 roundings to the format]."),
    option("--sqnr", type=float, metavar="DB", heading=GOAL,
           help="Signal-to-noise ratio that every output must reach, in dB."),
    option("--floor-factor", type=click.FloatRange(0, min_open=True), metavar="N", heading=GOAL,
           help="Largest error, as a multiple of the fp32 noise floor."),
    option("--metric", "--metric-script", "metric", default="", metavar="FILE.py[:FN]", heading=GOAL,
           help="Task metric FN(outputs, feed) -> number, higher is better; its mean over the samples is judged."),
    option("--metric-min", type=float, metavar="X", heading=GOAL,
           help="Smallest mean of the metric  [default: that of the reference]."),
    samples_option(GOAL, 8),
)  # fmt: skip
"""What is asked of the outputs."""


search_options = together(
    option("--mode", type=click.Choice(["auto", "bisect", "linear"]), default="auto", show_default=True,
           heading=SEARCH, help="auto: as few nodes as possible; bisect, linear: the first N nodes, as Polygraphy "
                                "does."),
    option("--direction", "--dir", "direction", type=click.Choice(["forward", "reverse"]), default="forward",
           show_default=True, heading=SEARCH, help="For bisect and linear: the first nodes, or the last."),
    option("--max-builds", type=click.IntRange(1), default=10, show_default=True, metavar="N", heading=SEARCH,
           help="Number of builds after which the result is no longer improved."),
    option("--budget", type=click.FloatRange(0), default=300.0, show_default=True, metavar="SECONDS",
           heading=SEARCH,
           help="Time for measuring the influence of each node, in emulation."),
    cluster_option(SEARCH, "Run checks of --check there, or, with --target, this command: "),
    artifact_options(SEARCH, "polygraphy_debug.onnx", "File in which the check finds the typed model to judge."),
    model_type_option(ENGINES),
    inference_accepted(ENGINES),
    external_data_option(SEARCH),
)  # fmt: skip
"""What steers the search."""


@click.command(cls=CheckingCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@result_options
@engine_options
@goal_options
@search_options
@check_options
@data_options
@limit_options
@common
def debug_precision(model: Path, as_json: bool, **given: Unpack[PrecisionValues]) -> None:
    """Find the fewest nodes of MODEL to keep in fp32 so that its outputs are good enough in a lower format.

    What the format does to the outputs is measured in emulation, node by node, without building an engine; then the
    target (--target) or a command (--check) confirms the nodes found, in few builds.
    """
    from tensortriage.cli.debug.precision_request import search_and_show

    words = check_words()
    if given["cluster"] and given["target"] and words is None:
        from tensortriage.cli.cluster.elsewhere import go_elsewhere

        go_elsewhere(given["cluster"], given["target"], as_json=as_json)
    search_and_show(model, words, given, as_json=as_json)
