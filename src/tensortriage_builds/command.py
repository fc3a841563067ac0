"""``triage debug build``: build again and again, sort good from bad, name the choice that makes the difference."""

from tensortriage.sdk import (
    ARTIFACTS,
    ENGINES,
    GroupedOption,
    TensorrtOptions,
    Written,
    command,
    inference_accepted,
    model_type_option,
)
from tensortriage_builds.request import BuildRequest

EPILOG = """\b
Examples:
  triage debug build model.onnx --target tensorrt:precision=fp16 --inputs real.npz
  triage debug build model.onnx --fp16 --until 10 --save-tactics replay.json --artifacts replay.json \\
      --check ./run_engine.sh polygraphy_debug.engine
  triage debug build model.onnx --target tensorrt:precision=fp16 --inputs real.npz -o pinned.engine

\b
Exit codes: 0 what --until asks for was reached, 4 it was not, 2 usage, 3 the engine cannot be used here,
130 interrupted (run again to go on).
"""
KEPT = "Accepted; the case records every build."
REPLAYS = [
    GroupedOption(["--save-debug-replay"], type=Written(read_too=True), metavar="FILE", heading=ARTIFACTS, rare=True,
                  help=KEPT),
    GroupedOption(["--load-debug-replay"], metavar="FILE", heading=ARTIFACTS, rare=True, help=KEPT),
]  # fmt: skip


@command(epilog=EPILOG, accepted=[model_type_option(ENGINES), *inference_accepted(ENGINES), *REPLAYS])
def debug_build(
    request: BuildRequest,
    tensorrt: TensorrtOptions,
    *,
    as_json: bool,
) -> None:
    """Build MODEL again and again, sort good builds from bad ones, and find the choice that makes the difference.

    A build is judged by its outputs, against the reference, or by the command of --check. Where the engine reports its
    tactics and accepts given ones, the guilty tactic is found by giving it to a good build, and a good build is
    reproduced.

    Without --target, Polygraphy's TensorRT flags say what is built. --save-tactics FILE holds the tactics of the build
    that the check judges, and in the end those of a good build; every build is given the tactics of --load-tactics
    FILE.
    """
    from tensortriage_builds.answer import build_and_show, with_target

    request = with_target(request, tensorrt)
    build_and_show(request, as_json=as_json)
