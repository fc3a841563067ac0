"""``triage debug precision``: the fewest nodes to keep in higher precision, and the mixed-precision model."""

import click

from tensortriage.cli.declared import command
from tensortriage.cli.options import GroupedOption, inference_accepted, model_type_option
from tensortriage.precision.search.request import ENGINES, SEARCH, PrecisionRequest

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
node in fp32 (the fault is not precision), or the written file misses the goal, 130 interrupted (run again to go on).
"""
HIGHER = GroupedOption(["--precision", "-p"], type=click.Choice(["float32", "fp32"]), default="float32",
                       show_default=True, expose_value=False, heading=SEARCH, rare=True,
                       help="The higher precision.")  # fmt: skip


@command(epilog=EPILOG, accepted=[HIGHER, model_type_option(ENGINES), *inference_accepted(ENGINES)])
def debug_precision(request: PrecisionRequest, as_json: bool) -> None:
    """Find the fewest nodes of MODEL to keep in fp32 so that its outputs are good enough in a lower format.

    What the format does to the outputs is measured in emulation, node by node, without building an engine; then the
    target (--target) or a command (--check) confirms the nodes found, in few builds.
    """
    from tensortriage.cli.debug.precision_answer import search_and_show

    search_and_show(request, as_json=as_json)
