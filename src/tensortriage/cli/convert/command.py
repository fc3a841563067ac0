"""``triage convert``: a model in fp16 or bf16, of a later opset, or with its weights elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tensortriage.cli import tensorrt_options
from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.convert import quantize_options
from tensortriage.cli.options import READ, GuideCommand, common, option, shapes_option, together
from tensortriage.cli.surgeon.edit_values import ConvertValues
from tensortriage.cli.surgeon.options import (
    FEED_LISTS,
    INFER_SHAPES,
    OWN_INFERENCE,
    PROOF,
    SHAPES,
    feed_option,
    feeding_of,
    file_options,
    layout_of,
    proof_options,
    source_of,
    verify_of,
)
from tensortriage.errors import UsageError

if TYPE_CHECKING:
    from tensortriage.values.dtype import Precision

EPILOG = """\b
Examples:
  triage convert model.onnx --precision fp16 -o model_fp16.onnx
  triage convert model.onnx --precision bf16 --keep-op-types LayerNormalization Softmax -o mixed.onnx
  triage convert model.onnx --precision fp16 --keep-scopes encoder.layer.0 --load-inputs real.npz -o mixed.onnx
  triage convert model.onnx --opset 19 -o newer.onnx
  triage convert model.onnx --convert-to trt --fp16 -o model.engine
  triage convert model.onnx --save-external-data -o light.onnx
  triage convert model.onnx --int8 --inputs samples.npz -o model_int8.onnx
"""
FORMAT, OUTPUTS = "Format", "Outputs"
LISTS = (
    *FEED_LISTS, "--inputs", "--input-shapes", "--keep-nodes", "--keep-op-types", "--keep-scopes", "--onnx-outputs",
    "--onnx-exclude-outputs", "--onnx-outputs-by-type", *tensorrt_options.LISTS,
    *quantize_options.LISTS,
)  # fmt: skip
TARGETS = ("onnx", "trt", "onnx-like-trt-network")


options = together(
    option(
        "--precision",
        "-p",
        default="",
        metavar="FORMAT",
        heading=FORMAT,
        help="fp16 or bf16; int8 or fp8e4m3 with Q/DQ pairs. --fp16, --bf16, --int8 and --fp8 do the same.",
    ),
    option("--fp-to-fp16", "to_fp16", is_flag=True, heading=FORMAT, rare=True, help="The same as --precision fp16."),
    option(
        "--keep-nodes",
        multiple=True,
        metavar="NAME...",
        heading=FORMAT,
        help="Nodes that stay fp32: names and patterns of nodes or modules.",
    ),
    option("--keep-op-types", multiple=True, metavar="OP...", heading=FORMAT, help="Op types that stay fp32."),
    option(
        "--keep-scopes",
        multiple=True,
        metavar="MODULE...",
        heading=FORMAT,
        help="Modules of the network that stay fp32, e.g. encoder.layer.3.",
    ),
    option(
        "--convert-io-types",
        is_flag=True,
        heading=FORMAT,
        help="Inputs and outputs get the format too  [default: they stay fp32].",
    ),
    option("--opset", type=click.IntRange(1), metavar="N", heading=FORMAT, help="Raise the opset of the model."),
    option(
        "--embed-weights",
        is_flag=True,
        heading=FORMAT,
        help="Move the weights of external data files into the model file.",
    ),
    option(
        "--convert-to",
        type=click.Choice(TARGETS),
        heading=FORMAT,
        rare=True,
        help="onnx, or trt for an engine that is built but not run  [default: trt if OUT ends in .engine or .plan, "
        "else onnx].",
    ),
    option(
        "--onnx-outputs",
        "mark",
        multiple=True,
        metavar="NAME...",
        heading=OUTPUTS,
        rare=True,
        help="New outputs, instead of the model's own: names, patterns, '*' or 'mark all'.",
    ),
    option(
        "--onnx-exclude-outputs",
        "exclude",
        multiple=True,
        metavar="NAME...",
        heading=OUTPUTS,
        rare=True,
        help="Outputs to leave out.",
    ),
    option(
        "--onnx-outputs-by-type",
        "by_type",
        multiple=True,
        metavar="OP...",
        heading=OUTPUTS,
        rare=True,
        help="Results of every node of these op types become outputs.",
    ),
    INFER_SHAPES,
    OWN_INFERENCE,
    shapes_option("--input-shapes", heading=SHAPES),
)
"""The options of ``convert``."""


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@options
@quantize_options.quantize_options
@tensorrt_options.tensorrt_flags
@file_options
@proof_options
@feed_option()
@option("--inputs", "mixed", multiple=True, metavar="PATH...", heading=PROOF,
        help="The same as --load-inputs; Polygraphy's NAME:[SHAPE] is understood as --input-shapes.")  # fmt: skip
@common
def convert(model: Path, as_json: bool, **given: Unpack[ConvertValues]) -> None:
    """Write MODEL in another number format, of a later opset, or with its weights elsewhere.

    Shape computations, sizes of Resize and quantizers are never lowered; a value beyond the range of the format becomes
    an infinity, not the nearest number. The result is run against MODEL before it is written: its outputs may move by
    the rounding of the format, and no more.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.model.cutting.node_selection import NodeChoice
    from tensortriage.model.model import ExternalData
    from tensortriage.values.dtype import Precision
    from tensortriage.workflows.common.output_selection import OutputChoice
    from tensortriage.workflows.edits.convert import ConvertRequest, convert
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.verify_edit import ProofRequest

    shapes = tuple(word for word in given["mixed"] if word.endswith("]") and ":[" in word)
    paths = (*given["feeds"], *(word for word in given["mixed"] if word not in shapes))
    feeding = feeding_of(given, paths, shapes=given["input_shapes"] + shapes)
    kind = given["convert_to"] or wanted_by(given["output"])
    if kind == "trt":
        from tensortriage.cli.convert.engine_file import build_and_show

        build_and_show(model, given, feeding, as_json=as_json)
        return
    if kind != "onnx":
        raise UsageError(
            f"converting to '{kind}' is not offered",
            slug="convert-target-unknown",
            cure="use onnx or trt",
        )
    if given["embed_weights"] and given["external_location"] is not None:
        raise click.UsageError("--embed-weights and --save-external-data contradict each other")
    precision = _precision(given)
    quantize_options.check_options(given, precision)
    if precision in (Precision.INT8, Precision.FP8E4M3):
        quantize_options.quantize_and_show(model, given, precision, feeding, as_json=as_json)
        return
    result = convert(
        ConvertRequest(
            source=source_of(model, given),
            target=Target(
                given["output"],
                layout_of(given, ExternalData.AUTO if given["embed_weights"] else ExternalData.LEAVE),
            ),
            outputs=OutputChoice(given["mark"], given["exclude"], given["by_type"]),
            opset=given["opset"],
            precision=precision,
            kept=NodeChoice(names=given["keep_nodes"], op_types=given["keep_op_types"], scopes=given["keep_scopes"]),
            keep_io_types=not given["convert_io_types"],
            infer_shapes=given["infer_shapes"],
            proof=ProofRequest(verify=verify_of(given["verify"]), feeding=feeding),
        )
    )
    show(result, as_json=as_json)


def wanted_by(output: Path) -> str:
    """Return what the name of the result asks for.

    Raises:
        UsageError: For a name that says nothing, where Polygraphy would not know either (``convert-target-unknown``).
    """
    if output.suffix in (".engine", ".plan"):
        return "trt"
    if output.suffix != ".onnx" and click.get_current_context().meta.get(COMPATIBLE):
        raise UsageError(
            f"{output} does not show which kind of file to write",
            slug="convert-target-unknown",
            cure="add --convert-to onnx",
        )
    return "onnx"


def _precision(given: ConvertValues) -> "Precision | None":
    """Return the format asked for, by name or by a flag of its own.

    Raises:
        UsageError: When a format is unknown, or two are asked for (``convert-formats-many``).
    """
    from tensortriage.values.dtype import Precision

    words = tensorrt_options.formats_of(given) + ["fp16"] * given["to_fp16"]
    found = list(dict.fromkeys(Precision.parse(word) for word in [given["precision"], *words] if word))
    if len(found) > 1:
        raise UsageError(
            f"several formats are named for one model: {', '.join(one.value for one in found)}",
            slug="convert-formats-many",
            cure="name one; only an engine (--convert-to trt) can choose among several",
        )
    return found[0] if found else None
