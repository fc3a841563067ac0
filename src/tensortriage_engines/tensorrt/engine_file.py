"""Engine files that ``triage convert --convert-to trt`` builds from a model, and the account of each build."""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tensortriage.engines.sdk import BuildsFiles, EngineMissing, EngineSpec, UsageError, create
from tensortriage.sdk import (
    ConvertRequest,
    EngineFlags,
    ExternalData,
    OutputChoice,
    print_document,
    printable,
    to_json,
    with_calibration,
    with_tactics,
)


@dataclasses.dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine file.

    Attributes:
        model: The ONNX file it was built from.
        output: The file.
        version: Version of TensorRT.
        precision: The requested precision; ``mixed`` for the types of the model.
        bytes: Size of the file.
        sha256: Digest of the file.
        seconds: Time that the build took.
        command: The trtexec command line that builds the same.
        findings: Findings in the builder's log, by kind: ``count`` and a few ``lines``.
    """

    model: str
    output: str
    version: str
    precision: str
    bytes: int
    sha256: str
    seconds: float
    command: str
    findings: Mapping[str, Any]
    format: str = "tensortriage.engine/1"


def build_engine(model: Path, output: Path, options: Mapping[str, str]) -> BuiltEngine:
    """Build a TensorRT engine and write it; TensorRT-RTX does this without a GPU.

    Args:
        model: ONNX file.
        output: File to write.
        options: Options of the engine ``tensorrt``.

    Raises:
        EngineMissing: When TensorRT is not installed.
        UsageError: For an option or a value that is not understood.
        EngineError: When the build fails, crashes, hangs or runs out of memory.
    """
    engine = create(EngineSpec("tensorrt"))
    available = engine.availability()
    if not isinstance(engine, BuildsFiles) or (not available.version and "worker" not in options):
        raise EngineMissing(
            f"engine 'tensorrt' cannot be used here: {available.reason}", slug="engine-missing", cure=available.cure
        )
    info = engine.build_only(model, engine.saving(options, output))
    return BuiltEngine(
        model=str(model),
        output=str(output),
        version=info["version"],
        precision=info["precision"],
        bytes=info["plan_bytes"],
        sha256=info["plan_sha256"],
        seconds=round(info["build_seconds"], 3),
        command=info["trtexec"],
        findings=info["log"]["findings"],
    )


def build_and_show(request: ConvertRequest, tensorrt: EngineFlags, precision: str, *, as_json: bool) -> None:
    """Build an engine, calibrated with the feeds where it needs them; print the result, and how to repeat it.

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


def _words(request: ConvertRequest, tensorrt: EngineFlags, precision: str) -> dict[str, str]:
    words = tensorrt.words()
    if precision:
        words["precision"] = precision
    elif not tensorrt.any_given():
        del words["precision"]  # as the model is typed
    kept = [*request.kept.names, *filter(None, [words.get("kept", "")])]
    return {**words, "kept": "+".join(kept)} if kept else words
