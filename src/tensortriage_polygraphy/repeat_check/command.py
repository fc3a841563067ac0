"""``triage debug repeat``: run a check again and again, and report how often it fails."""

from pathlib import Path

from tensortriage.sdk import CheckOptions, command, load_replay_field, save_replay_field
from tensortriage_polygraphy.repeat_check.repeat import RepeatGoal

EPILOG = """\b
Examples:
  triage debug repeat --check triage run model.onnx --target openvino --inputs real.npz
  triage debug repeat --until bad --artifacts model.engine --check ./build_and_compare.sh
  triage debug repeat --until 20 --check "trtexec --onnx=model.onnx | grep -q PASSED"

\b
Exit codes: 0 every run passed, 1 a run failed, 4 no run failed, but some neither passed nor failed.
"""


@command(epilog=EPILOG)
def debug_repeat(
    goal: RepeatGoal,
    check: CheckOptions,
    save_replay: Path | None = save_replay_field(),
    load_replay: Path | None = load_replay_field(),
    *,
    as_json: bool,
) -> None:
    """Run a check repeatedly, sort its artifacts, and report its failure rate with a confidence interval.

    Stops when the failure rate is known well enough, unless --until says otherwise. Without --check you are asked
    whether each run passed.
    """
    from tensortriage_polygraphy.repeat_check.answer import repeat_and_show

    repeat_and_show(goal, check.spec(), save_replay, load_replay, as_json=as_json)
