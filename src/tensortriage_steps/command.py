"""``triage steps``: decoders with caches and recurrent networks, step by step; which step is wrong first, and why."""

from tensortriage.sdk import command
from tensortriage_steps.request import StepsRequest

EPILOG = """\b
Examples:
  triage steps decoder.onnx --target openvino:precision=bf16 --steps 32 --inputs prompt.npz
  triage steps decoder.onnx --target tensorrt:precision=fp16 --carry 'present.*=past_key_values.*'
  triage steps decoder.onnx --target onnxruntime --free-running
  triage steps unet.onnx --target openvino --between scheduler.py:next_feed --steps 20

\b
Exit codes: 0 every step is right, and drift is as predicted; 1 a step is wrong, or drifts further; 2 usage or bad
input; 3 an engine cannot be used here; 4 a step is beyond its limit, and its diagnosis finds nothing wrong, or the
reference stops early, and no step before that is wrong.
"""


@command(epilog=EPILOG)
def steps(request: StepsRequest, as_json: bool) -> None:
    """Run decoders and recurrent models step by step: which step is wrong?

    Both get the reference's states and tokens at every step of MODEL, so that no step inherits an error: first wrong is
    where the fault is. Beside it the target runs on its own states; how far it may drift is predicted. The first wrong
    step is diagnosed.
    """
    from tensortriage_steps.answer import show

    show(request, as_json=as_json)
