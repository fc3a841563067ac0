"""``triage steps``: decoders with caches and recurrent networks, step by step; which step is wrong first, and why."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.option_values import StepsValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    GuideCommand,
    case_option,
    common,
    data_options,
    external_data_option,
    limit_options,
    option,
    reference_option,
    together,
)

EPILOG = """\b
Examples:
  triage steps decoder.onnx --target openvino:precision=bf16 --steps 32 --inputs prompt.npz
  triage steps decoder.onnx --target tensorrt:precision=fp16 --carry 'present.*=past_key_values.*'
  triage steps decoder.onnx --target onnxruntime --free-running
  triage steps unet.onnx --target openvino --between scheduler.py:next_feed --steps 20

\b
Exit codes: 0 every step is right, and drift is as predicted; 1 a step is wrong, or drifts farther; 2 usage or bad
input; 3 an engine cannot be used here; 4 a step is beyond its limit, and its diagnosis finds nothing wrong, or the
reference stops before the last step, and none until then is wrong.
"""
ENGINES, STEPS = "Engines", "Steps"


options = together(
    option("--target", "-t", metavar="ENGINE", heading=ENGINES,
           help="Engine under suspicion, NAME[:key=value,...]."),
    reference_option(ENGINES),
    external_data_option(ENGINES),
    option("--steps", type=click.IntRange(1), metavar="N", heading=STEPS,
           help="Number of steps  [default: one per sample of --inputs; 16 if there is one or none]."),
    option("--carry", multiple=True, metavar="OUTPUT=INPUT", heading=STEPS,
           help="Output that is an input of the next step, with one * on both sides for several; repeatable; 'none' "
           "for nothing  [default: found by name]."),
    option("--between", default="", metavar="FILE.py[:FUNCTION]", heading=STEPS,
           help="next_feed(outputs, feed, step) -> inputs of the next step, such as a diffusion scheduler."),
    option("--logits", default="", metavar="OUTPUT", heading=STEPS,
           help="Output of scores over the vocabulary  [default: the one called logits]."),
    option("--free-running", is_flag=True, heading=STEPS,
           help="Also let both engines generate alone, and judge the first token that differs."),
    option("--self-check", is_flag=True, heading=STEPS,
           help="Hold the target's steps against its own run of the whole sequence; no reference is asked."),
    option("--no-drift", is_flag=True, heading=STEPS, rare=True,
           help="Do not run the target on its own states as well."),
    option("--no-diagnosis", is_flag=True, heading=STEPS, rare=True,
           help="Do not diagnose the first wrong step; print the command that would."),
)  # fmt: skip
"""The options of ``steps``, apart from what many commands have."""


@click.command(cls=GuideCommand, value_lists=DATA_LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@options
@data_options
@case_option("--output", "-o")
@limit_options
@common
def steps(model: Path, target: str | None, as_json: bool, **given: Unpack[StepsValues]) -> None:
    """Run MODEL step by step on a reference and a target: which step is wrong first, and which op there?

    Both get the reference's states and tokens at every step, so that no step inherits an error. Beside it the target
    runs on its own states; how far it may drift is predicted. The first wrong step is diagnosed.
    """
    from tensortriage.cli.steps.request import no_target_here, request_of, show

    if not target:
        raise no_target_here(model)
    show(request_of(model, target, given), as_json=as_json)
