"""The options of ``triage run``: a comparison, the engines in Polygraphy's words, and the files that are written."""

from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.cli.engine_flags import EngineFlags, engine_flags
from tensortriage.cli.onnxruntime_options import OnnxRuntimeOptions
from tensortriage.cli.options import GroupedOption, accepted_option, model_type_option, own_inference
from tensortriage.cli.run.judgement import JudgementOptions
from tensortriage.values.options import flag, option, part, request
from tensortriage.values.output_files import Place
from tensortriage.workflows.comparison.compare_request import ENGINES, OUTPUTS, RUNS, CompareRequest
from tensortriage.workflows.edits.requests import LayoutOptions

if TYPE_CHECKING:
    from tensortriage.model.model import ExternalData, ExternalLayout
    from tensortriage.report.terminal.run_text import Shown

FILES, MODEL = "Files", "Model"
RUNNERS = {
    "--onnxrt": "Shorthand for ONNX Runtime; among shorthands it is the reference.",
    "--pluginref": "Shorthand for the engine 'float64', which computes every operator in float64.",
    "--openvino": "Shorthand for OpenVINO.",
    "--trt": "Shorthand for TensorRT, with the flags under the heading TensorRT.",
}
ACCEPTED = [
    *(GroupedOption([name], is_flag=True, expose_value=False, heading=ENGINES, help=text, rare=name == "--pluginref")
      for name, text in RUNNERS.items()),
    model_type_option(MODEL),
    own_inference(MODEL),
    accepted_option("--sequential-runners", heading=RUNS, text="runners always run one after the other."),
    accepted_option("--use-subprocess", heading=RUNS, text="untrusted engines always run in a subprocess."),
]  # fmt: skip


@request
class TensorrtOutputs:
    """Polygraphy's TensorRT flags that choose the tensors to compare."""

    # fmt: off
    outputs: tuple[str, ...] = option(
        "--trt-outputs", "NAME...", "The same as --onnx-outputs.", default=(), rare=True, group="TensorRT")
    excluded: tuple[str, ...] = option(
        "--trt-exclude-outputs", "NAME...", "The same as --onnx-exclude-outputs.", default=(), rare=True)
    debug: tuple[str, ...] = option(
        "--mark-debug", "NAME...", "The same as --onnx-outputs; a tensor that the debug listener can show is read "
        "from it.", default=(), rare=True)
    # fmt: on


@request
class RunOptions:
    """The options of a command line of ``triage run``."""

    # fmt: off
    targets: tuple[str, ...] = option(
        "--target -t", "ENGINE", "Engine to compare with the reference, NAME[:key=value,...]; repeatable.",
        default=(), group=ENGINES)
    reference: str | None = option(
        "--reference -r", "ENGINE", "Engine assumed right [default: onnxruntime:optimization=none].", default=None)
    runners: tuple[str, ...] = option("--runner", "NAME", "", default=(), hidden=True)
    onnxruntime: OnnxRuntimeOptions = part(factory=OnnxRuntimeOptions)
    request: CompareRequest = part(factory=CompareRequest)
    judgement: JudgementOptions = part(factory=JudgementOptions)
    infer_shapes: bool = flag(
        "--shape-inference --do-shape-inference", "Declare inferred shapes in the model that --save-onnx writes; they "
        "change no result.", rare=True, group=MODEL)
    to_fp16: bool = flag(
        "--fp-to-fp16", "Convert the model to fp16 first, except its inputs and outputs; every engine runs the result.",
        rare=True)
    save_onnx: Path | None = option(
        "--save-onnx", "FILE", "Write the model that is run, with the tensors to compare as its outputs.",
        default=None, writes=Place.FILE, rare=True)
    layout: "ExternalData | ExternalLayout" = part(factory=LayoutOptions)
    save_inputs: Path | None = option(
        "--save-inputs --save-input-data", "PATH", "Save the feeds: Polygraphy JSON, or a directory of them when PATH "
        "has no extension.", default=None, writes=Place.EITHER, group=FILES)
    save_outputs: Path | None = option(
        "--save-outputs --save-results", "PATH", "Save the outputs: .json as Polygraphy writes it, .store, .npz, "
        ".safetensors, or a directory of JSON.", default=None, writes=Place.EITHER)
    save_worst: Path | None = option(
        "--save-worst", "PATH", "Save the feeds that lose most by --metric, up to 8, for triage diagnose "
        "--inputs PATH.", default=None, writes=Place.EITHER)
    save_input_blob: Path | None = option(
        "--save-input-blob", "[DIR]", "Save every input as raw bytes: DIR/NUMBER/INPUT.bin.",
        default=None, empty=".", writes=Place.FOLDER, rare=True)
    load_outputs: tuple[Path, ...] = option(
        "--load-outputs --load-results", "PATH...", "Saved outputs; the first is the reference unless --reference is "
        "given.", default=())
    save_accuracy_results: Path | None = option(
        "--save-accuracy-results", "PATH", "Save metrics and verdicts as JSON for 'check accuracy'.",
        default=None, writes=Place.FILE, rare=True)
    shown: "Shown" = part(
        factory="tensortriage.report.terminal.run_text:Shown", group=OUTPUTS,
        order=option("--order", "ORDER", "Order of tensors in the table: error, the worst first, or graph, from the "
                     "first beyond its limit.", default="error", choices=("error", "graph")),
        everything=flag("--all", "Show every tensor in the table."))
    tensorrt: EngineFlags = part(factory=engine_flags())
    marked: TensorrtOutputs = part(factory=TensorrtOutputs)
    # fmt: on
