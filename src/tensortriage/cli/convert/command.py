"""``triage convert``: a model in fp16 or bf16, of a later opset, or with its weights elsewhere."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.cli.convert.eight_bits import Conversion, conversion
from tensortriage.cli.declared import command
from tensortriage.cli.dialect import dialect
from tensortriage.cli.options import model_type_option, own_inference
from tensortriage.cli.tensorrt_options import TensorrtOptions
from tensortriage.errors import UsageError
from tensortriage.values.options import flag, option, part
from tensortriage.values.options import request as request_class
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.requests import FILES, FORMAT, SHAPES

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
TARGETS = ("onnx", "trt", "onnx-like-trt-network")


@request_class
class WantedFormat:
    """What is written, as far as it is not for the workflow to know."""

    # fmt: off
    precision: str = option(
        "--precision -p", "FORMAT", "fp16 or bf16; int8 or fp8e4m3 with Q/DQ pairs. --fp16, --bf16, --int8 and --fp8 "
        "do the same.", default="", group=FORMAT)
    to_fp16: bool = flag("--fp-to-fp16", "The same as --precision fp16.", rare=True, group=FORMAT)
    convert_to: str | None = option(
        "--convert-to", "", "onnx, or trt for an engine that is built but not run  [default: trt if OUT ends in "
        ".engine or .plan, else onnx].", default=None, choices=TARGETS, rare=True, group=FORMAT)
    # fmt: on


@command(epilog=EPILOG, accepted=[own_inference(SHAPES), model_type_option(FILES)])
def convert(
    request: ConvertRequest,
    eight_bits: Conversion = part(factory=conversion()),
    tensorrt: TensorrtOptions = part(factory=TensorrtOptions),
    wanted: WantedFormat = part(factory=WantedFormat),
    *,
    as_json: bool,
) -> None:
    """Write MODEL in another number format, of a later opset, or with its weights elsewhere.

    Shape computations, sizes of Resize and quantizers are never lowered; a value computed beyond the range of the
    format becomes an infinity, a constant beyond it, such as a mask of -1e9, is brought into it. The result is run
    against MODEL before it is written: its outputs may move by the rounding of the format, and no more.
    """
    from tensortriage.cli.convert.show import show_edit
    from tensortriage.workflows.edits.convert import convert

    word = wanted.precision or ("fp16" if wanted.to_fp16 else "")
    kind = wanted.convert_to or wanted_by(request.target.path)
    if kind == "trt":
        from tensortriage.cli.convert.engine_file import build_and_show

        build_and_show(request, tensorrt, word, as_json=as_json)
        return
    if kind != "onnx":
        raise UsageError(
            f"converting to '{kind}' is not offered",
            slug="convert-target-unknown",
            cure="use onnx or trt",
        )
    found = _precision([wanted.precision, *tensorrt.formats(), *["fp16"] * wanted.to_fp16])
    request = dataclasses.replace(request, precision=found)
    if not eight_bits.converted(request, as_json=as_json):
        show_edit(convert(request), as_json=as_json)


def wanted_by(output: Path) -> str:
    """Return the kind of file that the name of the result implies; a dialect may refuse a name that implies none."""
    if output.suffix in (".engine", ".plan"):
        return "trt"
    dialect().check_output(output)
    return "onnx"


def _precision(words: list[str]) -> "Precision | None":
    """Return the requested format, given by name or by a flag of its own.

    Raises:
        UsageError: When a format is unknown, or two are requested (``convert-formats-many``).
    """
    from tensortriage.values.dtype import Precision

    found = list(dict.fromkeys(Precision.parse(word) for word in words if word))
    if len(found) > 1:
        raise UsageError(
            f"several formats are named for one model: {', '.join(one.value for one in found)}",
            slug="convert-formats-many",
            cure="name one; only an engine (--convert-to trt) can choose among several",
        )
    return found[0] if found else None
