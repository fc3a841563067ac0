"""Turns a command line of ``triage convert --convert-to trt`` into an engine file."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.surgeon.edit_values import ConvertValues
from tensortriage.cli.tensorrt_options import any_given, tensorrt_words
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_json
from tensortriage.workflows.engines.calibration_feeds import with_calibration
from tensortriage.workflows.engines.engine_files import build_engine
from tensortriage.workflows.engines.tactic_files import with_tactics

ONNX_ONLY = ("opset", "embed_weights", "external_location", "mark", "exclude", "by_type", "infer_shapes")


def build_and_show(model: Path, given: ConvertValues, feeding: FeedRequest, *, as_json: bool) -> None:
    """Build an engine, calibrated with the feeds where it needs them; print what was built, and how to repeat it.

    Raises:
        UsageError: With an option that edits the model (``engine-not-edited``).
        EngineError: When the engine does not build.
    """
    values: Mapping[str, object] = given
    if any(values[name] for name in ONNX_ONLY):
        raise UsageError(
            "--convert-to trt builds an engine from the model as it is, without edits", slug="engine-not-edited",
            cure="edit the model first: triage convert MODEL -o edited.onnx",
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        spec = EngineSpec("tensorrt", _words(given))
        spec = with_tactics(with_calibration(spec, model, feeding, Path(folder)), Path(folder))
        built = build_engine(model, given["output"], spec.options)
    if as_json:
        print_document(to_json(built))
        return
    click.echo(
        f"wrote {built.output}: TensorRT {built.version}, {built.precision}, {built.bytes} bytes, {built.seconds} s"
    )
    for kind, found in built.findings.items():
        click.echo(f"  {kind}: {found['count']}x, e.g. {printable(found['lines'][0])}")
    click.echo(f"built as: {printable(built.command)}")


def _words(given: ConvertValues) -> dict[str, str]:
    words = tensorrt_words(given)
    word = given["precision"] or ("fp16" if given["to_fp16"] else "")
    if word:
        words["precision"] = word
    elif not any_given(given):
        del words["precision"]  # as the model is typed
    kept = [*given["keep_nodes"], *filter(None, [words.get("kept", "")])]
    return {**words, "kept": "+".join(kept)} if kept else words
