"""``triage run``: run a model on one or more engines and compare every target with the reference."""

from collections.abc import Mapping
from typing import Any

from tensortriage.cli.declared import command
from tensortriage.cli.diagnose.blas_threads import few_blas_threads
from tensortriage.cli.diagnose.cycle_collector import rare_collections
from tensortriage.cli.run.options import ACCEPTED, RunOptions

EPILOG = """\b
Examples:
  triage run model.onnx --target openvino --inputs real.npz
  triage run model.onnx --onnxrt --openvino --onnx-outputs mark all
  triage run model.onnx --target onnxruntime:precision=fp16 --target openvino:precision=bf16
  triage run model.onnx --onnxrt --trt --fp16 --save-engine model.engine
  triage run model.onnx --onnxrt --save-inputs in.json --save-outputs golden.json
  triage run model.onnx --openvino --load-inputs in.json --load-outputs golden.json --atol 1e-3

\b
Exit codes: 0 every output is within its limit; 1 one is not, is NaN or Inf (--validate), or an engine failed;
2 usage or bad input; 3 an engine cannot be used here.
"""


def import_comparison(_: Mapping[str, Any]) -> None:
    """Import the modules of a comparison, with few threads and collections, as in a diagnosis."""
    with rare_collections():
        with few_blas_threads():
            import numpy as np  # noqa: F401 - imported for its threads, under this setting
        import tensortriage.cli.run.answer
        import tensortriage.engines.onnxruntime.engine  # noqa: F401 - the default reference


@command(epilog=EPILOG, accepted=ACCEPTED, before=import_comparison)
def run(given: RunOptions, as_json: bool) -> None:
    """Run MODEL on one or more engines, compare every target with the reference, validate.

    Judges by the noise floor of each output's number format, or by the tolerances given. Marking outputs changes what
    engines execute: the result says whether it changed the model's own outputs.
    """
    from tensortriage.cli.run.answer import run_and_show

    run_and_show(given, as_json=as_json)
