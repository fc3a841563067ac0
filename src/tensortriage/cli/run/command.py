"""``triage run``: run a model on one or more engines and compare every target with the reference."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli import tensorrt_options
from tensortriage.cli.option_values import RunValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    WRITTEN,
    WRITTEN_FILE,
    WRITTEN_FOLDER,
    GuideCommand,
    common,
    data_options,
    external_data_option,
    limit_options,
    model_type_option,
    option,
    own_inference,
    together,
)
from tensortriage.cli.run.judgement_options import JUDGEMENT_LISTS, judgement_options
from tensortriage.cli.surgeon.options import layout_options
from tensortriage.cli.tensorrt_options import tensorrt_flags, tensorrt_outputs

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

LISTS = (
    *DATA_LISTS,
    *tensorrt_options.LISTS,
    "--onnx-outputs",
    "--onnx-exclude-outputs",
    "--onnx-outputs-by-type",
    "--load-outputs",
    "--load-results",
    *JUDGEMENT_LISTS,
    "--providers",
    "--execution-providers",
)
ENGINES, MODEL, OUTPUTS, FILES, RUNS = "Engines", "Model", "Outputs", "Files", "Runs"


options = together(
    option(
        "--target",
        "-t",
        "targets",
        multiple=True,
        metavar="ENGINE",
        heading=ENGINES,
        help="Engine to compare with the reference, NAME[:key=value,...]; repeatable.",
    ),
    option(
        "--reference",
        "-r",
        "reference",
        metavar="ENGINE",
        heading=ENGINES,
        help="Engine taken as right  [default: onnxruntime:optimization=none].",
    ),
    option(
        "--target-model",
        type=READ,
        metavar="FILE",
        heading=ENGINES,
        help="ONNX file that the targets run, if it is not MODEL.",
    ),
    option("--runner", "runners", multiple=True, hidden=True, heading=ENGINES),
    option(
        "--onnxrt",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        help="Shorthand for ONNX Runtime; among shorthands it is the reference.",
    ),
    option(
        "--pluginref",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        rare=True,
        help="Shorthand for the engine 'reference', which computes every operator in float64.",
    ),
    option("--openvino", is_flag=True, expose_value=False, heading=ENGINES, help="Shorthand for OpenVINO."),
    option(
        "--trt",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        help="Shorthand for TensorRT, with the flags under the heading TensorRT.",
    ),
    option(
        "--providers",
        "--execution-providers",
        "providers",
        multiple=True,
        metavar="NAME...",
        heading=ENGINES,
        rare=True,
        help="Execution providers of --onnxrt runners.",
    ),
    option(
        "--graph-optimization-level",
        default="",
        metavar="LEVEL",
        heading=ENGINES,
        rare=True,
        help="Optimization level of --onnxrt runners, e.g. ORT_DISABLE_ALL.",
    ),
    external_data_option(ENGINES),
    model_type_option(MODEL),
    option(
        "--shape-inference",
        "--do-shape-inference",
        "infer_shapes",
        is_flag=True,
        heading=MODEL,
        rare=True,
        help="Declare inferred shapes in the model that --save-onnx writes; they change no result.",
    ),
    own_inference(MODEL),
    option(
        "--fp-to-fp16",
        "to_fp16",
        is_flag=True,
        heading=MODEL,
        rare=True,
        help="Convert the model to fp16 first, except its inputs and outputs; every engine runs the result.",
    ),
    option(
        "--save-onnx",
        type=WRITTEN_FILE,
        metavar="FILE",
        heading=MODEL,
        rare=True,
        help="Write the model that is run, with the tensors to compare as its outputs.",
    ),
    layout_options(MODEL),
    option(
        "--onnx-outputs",
        "mark",
        multiple=True,
        metavar="NAME...",
        heading=OUTPUTS,
        help="Tensors to compare instead of the model's outputs: names, modules, patterns, '*' or 'mark all'.",
    ),
    option(
        "--onnx-exclude-outputs",
        "exclude",
        multiple=True,
        metavar="NAME...",
        heading=OUTPUTS,
        help="Tensors to leave out.",
    ),
    option(
        "--onnx-outputs-by-type",
        "by_type",
        multiple=True,
        metavar="OP...",
        heading=OUTPUTS,
        help="Compare the results of every node of these op types.",
    ),
    judgement_options,
    option("--fail-fast", is_flag=True, heading=RUNS, rare=True, help="Stop at the first failing comparison."),
    option(
        "--warm-up",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        heading=RUNS,
        rare=True,
        help="Warm-up runs before the run that counts.",
    ),
    option(
        "--sequential-runners",
        is_flag=True,
        expose_value=False,
        heading=RUNS,
        rare=True,
        help="Accepted; runners always run one after the other.",
    ),
    option(
        "--use-subprocess",
        is_flag=True,
        expose_value=False,
        heading=RUNS,
        rare=True,
        help="Accepted; untrusted engines always run in a subprocess.",
    ),
    option("--low-memory", is_flag=True, heading=RUNS, help="Capture and compare tensors in small batches."),
    option(
        "--save-inputs",
        "--save-input-data",
        "save_inputs",
        type=WRITTEN,
        metavar="PATH",
        heading=FILES,
        help="Save the feeds: Polygraphy JSON, or a directory of them when PATH has no extension.",
    ),
    option(
        "--save-outputs",
        "--save-results",
        "save_outputs",
        type=WRITTEN,
        metavar="PATH",
        heading=FILES,
        help="Save the outputs: .json as Polygraphy writes it, .store, .npz, .safetensors, or a directory of JSON.",
    ),
    option(
        "--save-worst",
        type=WRITTEN,
        metavar="PATH",
        heading=FILES,
        help="Save the feeds that lose most by --metric-script, up to 8, for triage diagnose --inputs PATH.",
    ),
    option(
        "--save-input-blob",
        type=WRITTEN_FOLDER,
        is_flag=False,
        flag_value=".",
        metavar="[DIR]",
        heading=FILES,
        rare=True,
        help="Save every input as raw bytes: DIR/NUMBER/INPUT.bin.",
    ),
    option(
        "--load-outputs",
        "--load-results",
        "load_outputs",
        multiple=True,
        type=READ,
        metavar="PATH...",
        heading=FILES,
        help="Saved outputs; the first is the reference unless --reference is given.",
    ),
    option(
        "--gen-script",
        "--gen",
        "gen_script",
        type=WRITTEN_FILE,
        metavar="FILE",
        heading=FILES,
        rare=True,
        help="Write a Python script that does what this command line does, and run nothing; - prints it.",
    ),
    option(
        "--save-accuracy-results",
        type=WRITTEN_FILE,
        metavar="PATH",
        heading=FILES,
        rare=True,
        help="Save metrics and verdicts as JSON for 'check accuracy'.",
    ),
)
"""The options of ``run``."""


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ, required=False, metavar="MODEL")
@options
@tensorrt_flags
@tensorrt_outputs
@data_options
@limit_options
@common
def run(model: Path | None, as_json: bool, **given: Unpack[RunValues]) -> None:
    """Run MODEL on one or more engines, compare every target with the reference, validate.

    Judges by the noise floor of each output's number format, or by the tolerances given. Marking outputs changes what
    engines execute: the result says whether it changed the model's own outputs.
    """
    from tensortriage.cli.run.request import run_and_show

    run_and_show(model, given, as_json=as_json)
