"""Turns a command line of ``triage convert --convert-to trt`` into an engine file."""

import tempfile
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.tensorrt_options import TensorrtOptions
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.model.model import ExternalData
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_json
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.engines.calibration_feeds import with_calibration
from tensortriage.workflows.engines.engine_files import build_engine
from tensortriage.workflows.engines.tactic_files import with_tactics


def build_and_show(request: ConvertRequest, tensorrt: TensorrtOptions, precision: str, *, as_json: bool) -> None:
    """Build an engine, calibrated with the feeds if needed; print the result and the command that repeats it.

    Args:
        request: The model, the file to write, and the nodes to keep.
        tensorrt: Polygraphy's flags.
        precision: The format requested by name; may be empty.
        as_json: Whether stdout is for one document.

    Raises:
        UsageError: With an option that edits the model (``engine-not-edited``).
        EngineError: When the engine does not build.
    """
    written = request.target.external_data is not ExternalData.LEAVE
    if request.opset or written or request.infer_shapes or request.outputs != OutputChoice():
        raise UsageError(
            "--convert-to trt builds an engine from the model as it is, without edits", slug="engine-not-edited",
            cure="edit the model first: triage convert MODEL -o edited.onnx",
        )  # fmt: skip
    model, feeding = request.source.path, request.proof.feeding
    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        spec = EngineSpec("tensorrt", _words(request, tensorrt, precision))
        spec = with_tactics(with_calibration(spec, model, feeding, Path(folder)), Path(folder))
        built = build_engine(model, request.target.path, spec.options)
    if as_json:
        print_document(to_json(built))
        return
    click.echo(
        f"wrote {built.output}: TensorRT {built.version}, {built.precision}, {built.bytes} bytes, {built.seconds} s"
    )
    for kind, found in built.findings.items():
        click.echo(f"  {kind}: {found['count']}x, e.g. {printable(found['lines'][0])}")
    click.echo(f"built as: {printable(built.command)}")


def _words(request: ConvertRequest, tensorrt: TensorrtOptions, precision: str) -> dict[str, str]:
    words = tensorrt.words()
    if precision:
        words["precision"] = precision
    elif not tensorrt.any_given():
        del words["precision"]  # as the model is typed
    kept = [*request.kept.names, *filter(None, [words.get("kept", "")])]
    return {**words, "kept": "+".join(kept)} if kept else words
