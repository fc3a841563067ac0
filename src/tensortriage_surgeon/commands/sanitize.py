"""``triage surgeon sanitize``: fold constants, choose outputs and input shapes, infer shapes, clean up."""

import dataclasses

import click

from tensortriage.sdk import (
    FILES,
    SHAPES,
    GroupedOption,
    accepted_option,
    command,
    dialect,
    model_type_option,
    own_inference,
)
from tensortriage_surgeon.requests import EDITS, FOLDING, SanitizeRequest

EPILOG = """\b
Examples:
  triage surgeon sanitize model.onnx --fold-constants -o folded.onnx
  triage surgeon sanitize model.onnx --fold-constants --load-inputs real.npz -o folded.onnx
  triage surgeon sanitize model.onnx --override-input-shapes x:[1,3,224,224] --cleanup -o static.onnx
  triage surgeon sanitize model.onnx --outputs hidden logits --cleanup -o cut.onnx
"""
# What scripts look for in the log; the inference is our own.
ACCEPTED = [
    GroupedOption(["--partitioning"], type=click.Choice(["basic", "recursive"]), expose_value=False, heading=FOLDING,
                  rare=True, help="Accepted; a node that cannot be folded never keeps another from being folded."),
    accepted_option("--toposort", heading=EDITS, text="nodes are always sorted."),
    own_inference(SHAPES),
    model_type_option(FILES),
]  # fmt: skip


@command(epilog=EPILOG, accepted=ACCEPTED)
def sanitize(request: SanitizeRequest, as_json: bool) -> None:
    """Write MODEL cleaner than it was: constants folded, shapes inferred, other outputs or input shapes.

    The result is run against MODEL before it is written; an edit that moves an output is refused by name.
    """
    from tensortriage.sdk import show_edit
    from tensortriage_surgeon.sanitize import sanitize

    spoken = dialect()
    outputs = dataclasses.replace(request.outputs, strict=spoken.strict)
    result = sanitize(dataclasses.replace(request, outputs=outputs, strict=spoken.strict))
    if request.infer_shapes and not click.get_current_context().meta.get("--no-onnxruntime-shape-inference"):
        spoken.shapes_inferred()
    show_edit(result, as_json=as_json)
