"""``triage surgeon extract``: cut a part out of a model, with the data that lead to it if wanted."""

import dataclasses

import click

from tensortriage.sdk import FILES, SHAPES, GroupedOption, command, model_type_option, option, own_inference
from tensortriage_surgeon.requests import CUT, ExtractRequest

EPILOG = """\b
Examples:
  triage surgeon extract model.onnx --inputs hidden:auto:auto --outputs logits:auto -o head.onnx
  triage surgeon extract model.onnx --scope encoder.layer.3 -o layer3.onnx
  triage surgeon extract model.onnx --nodes '/norm/*' --with-inputs real.npz -o norm/model.onnx
  triage surgeon extract model.onnx --node-range conv1 relu4 -o front.onnx
  triage surgeon extract model.onnx --body loop -o turn.onnx
"""
ACCEPTED = [
    GroupedOption(["--no-shape-inference"], is_flag=True, expose_value=False, hidden=True),
    own_inference(SHAPES),
    model_type_option(FILES),
]


@command(epilog=EPILOG, accepted=ACCEPTED)
def extract(
    request: ExtractRequest,
    with_inputs: tuple[str, ...] = option(
        "--with-inputs", "PATH...", "Run MODEL on these feeds ('random' for random ones), and write the inputs and "
        "the expected outputs of the cut as test_data_set_0 beside it.", default=(), group=CUT),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write a part of MODEL as a model of its own: between values, or chosen nodes, or the body of a loop.

    Types come from the model, from shape inference or from a run. A branch that enters the cut from elsewhere is an
    error that names it. The cut is run against MODEL before it is written.
    """
    from tensortriage.sdk import show_edit
    from tensortriage_surgeon.extract import extract

    if with_inputs:
        if request.feeding.paths:
            raise click.UsageError("--with-inputs and --load-inputs both name the feeds; give one of them")
        feeding = dataclasses.replace(request.feeding, paths=() if with_inputs == ("random",) else with_inputs)
        request = dataclasses.replace(request, feeding=feeding, keep_data=True)
    show_edit(extract(request), as_json=as_json)
