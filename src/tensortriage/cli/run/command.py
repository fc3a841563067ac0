"""``triage run``: run a model on one or more engines and compare every target with the reference."""

from pathlib import Path
from typing import Any

import click

from tensortriage.cli import tensorrt_options
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    TOLERANCE_LISTS,
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
    tolerance_options,
)
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
    *TOLERANCE_LISTS,
    "--check-error-stat",
    "--error-quantile",
    "--compare",
    "--compare-func",
    "--postprocess",
    "--postprocess-func",
    "--providers",
    "--execution-providers",
    "--l2-threshold",
    "--l2-tolerance",
    "--cosine-similarity-threshold",
    "--psnr-threshold",
    "--psnr-tolerance",
    "--snr-threshold",
    "--snr-tolerance",
    "--index-tolerance",
)
ENGINES, MODEL, OUTPUTS, JUDGE, FILES, RUNS = "Engines", "Model", "Outputs", "Judgement", "Files", "Runs"
NUMBERS = "[OUT:]NUMBER..."


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
        help="ONNX file that the targets run, when it is another.",
    ),
    option("--runner", "runners", multiple=True, hidden=True, heading=ENGINES),
    option(
        "--onnxrt",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        help="Shorthand: ONNX Runtime; the reference among shorthands.",
    ),
    option(
        "--pluginref",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        rare=True,
        help="Shorthand: the engine 'reference', which computes every operator in float64.",
    ),
    option("--openvino", is_flag=True, expose_value=False, heading=ENGINES, help="Shorthand: OpenVINO."),
    option(
        "--trt",
        is_flag=True,
        expose_value=False,
        heading=ENGINES,
        help="Shorthand: TensorRT, with the flags under TensorRT.",
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
        help="Convert the model to fp16 first, inputs and outputs apart; every engine runs that.",
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
        help="Tensors to compare instead of the model's outputs: names, patterns, '*' or 'mark all'.",
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
    tolerance_options(
        JUDGE, "Absolute tolerance; an element passes within either tolerance. Without any: the noise floor."
    ),
    option(
        "--check-error-stat",
        "error_stat",
        multiple=True,
        metavar="[OUT:]STAT...",
        heading=JUDGE,
        help="Judge elemwise, max, mean, median or quantile.",
    ),
    option(
        "--error-quantile",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Quantile of that statistic (0.99).",
    ),
    option(
        "--compare",
        "--compare-func",
        "functions",
        multiple=True,
        metavar="FUNC...",
        heading=JUDGE,
        help="simple, indices, l2, cosine_similarity, psnr, snr, distance_metrics, quality_metrics.",
    ),
    option(
        "--l2-threshold",
        "--l2-tolerance",
        "l2",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Largest L2 norm of the error.",
    ),
    option(
        "--cosine-similarity-threshold",
        "cosine",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest cosine similarity.",
    ),
    option(
        "--psnr-threshold",
        "--psnr-tolerance",
        "psnr",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest PSNR in dB.",
    ),
    option(
        "--snr-threshold",
        "--snr-tolerance",
        "snr",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest SNR in dB.",
    ),
    option(
        "--infinities-compare-equal",
        is_flag=True,
        heading=JUDGE,
        rare=True,
        help="Equal infinities are no error.",
    ),
    option(
        "--compare-func-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        rare=True,
        help="compare_outputs(name, reference, target) -> bool; replaces other judgements.",
    ),
    option(
        "--metric-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        help="Task metric: metric(outputs, feed) -> float, larger is better; reported per engine.",
    ),
    option("--validate", is_flag=True, heading=JUDGE, help="NaN or Inf in any output is a failure."),
    option(
        "--postprocess",
        "--postprocess-func",
        "postprocess",
        multiple=True,
        metavar="[OUT:]top-K[,axis=A]...",
        heading=JUDGE,
        rare=True,
        help="Replace outputs by the indices of their K largest.",
    ),
    option(
        "--postprocess-func-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        rare=True,
        help="postprocess_outputs(outputs) -> outputs, for every engine.",
    ),
    option(
        "--no-shape-check",
        is_flag=True,
        heading=JUDGE,
        rare=True,
        help="Compare equal-sized outputs of other shape, flattened.",
    ),
    option(
        "--index-tolerance",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="How far apart equal indices may lie, for --compare indices.",
    ),
    option("--fail-fast", is_flag=True, heading=RUNS, rare=True, help="Stop at the first failing comparison."),
    option(
        "--warm-up",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        heading=RUNS,
        rare=True,
        help="Runs before the one that counts.",
    ),
    option(
        "--sequential-runners",
        is_flag=True,
        expose_value=False,
        heading=RUNS,
        rare=True,
        help="Accepted; runners never overlap in time.",
    ),
    option(
        "--use-subprocess",
        is_flag=True,
        expose_value=False,
        heading=RUNS,
        rare=True,
        help="Accepted; untrusted engines always run in one.",
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
        help="Save the outputs: .json as Polygraphy, .store, .npz, .safetensors, or a directory of JSON.",
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
        help="Write a Python script that does the same, and run nothing; - prints it.",
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
@click.argument("model", type=READ)
@options
@tensorrt_flags
@tensorrt_outputs
@data_options
@limit_options
@common
def run(model: Path, as_json: bool, **given: Any) -> None:
    """Run MODEL on one or more engines, compare every target with the reference, validate.

    Judges by the noise floor of each output's number format, or by the tolerances given. Marking outputs changes what
    engines execute: the result says whether it changed the model's own outputs.
    """
    from tensortriage.cli.run.request import run_and_show

    run_and_show(model, given, as_json=as_json)
