"""``triage debug reduce``: the smallest piece of a model that still fails."""

from tensortriage.cli.declared import command
from tensortriage.cli.options import own_inference
from tensortriage.reduce.request import SHAPES, ReduceRequest

EPILOG = """\b
Examples:
  triage debug reduce model.onnx -o reduced.onnx --target openvino:precision=bf16 --inputs real.npz
  triage debug reduce model.onnx -o reduced.onnx --check triage run polygraphy_debug.onnx --target openvino
  triage debug reduce model.onnx -o reduced.onnx --jobs 2 --check "./build.sh && ./compare.sh"
  triage debug reduce model.onnx -o reduced.onnx            (asks you)

\b
Exit codes: 0 the result is written and was seen to fail again, 2 usage or nothing to reduce,
4 the result did not fail again, 130 interrupted (the smallest so far is written; run again to resume).
"""


@command(epilog=EPILOG, accepted=[own_inference(SHAPES)])
def debug_reduce(request: ReduceRequest, as_json: bool) -> None:
    """Find the smallest piece of MODEL that still fails the same way, and write it with inputs and expected outputs.

    Where it fails with other numbers too, its weights become random ones and its inputs plain ones: to hand on.
    What counts as a failure is decided by an engine (--target), by a command (--check), or by you.
    """
    from tensortriage.cli.debug.reduce_answer import reduce_and_show

    reduce_and_show(request, as_json=as_json)
