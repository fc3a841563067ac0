"""``triage debug repeat``: run a check again and again, and say how often it fails."""

from typing import Unpack

import click

from tensortriage.cli.debug.check_options import CHECK_LISTS, CheckingCommand, check_options, check_words
from tensortriage.cli.option_values import RepeatValues
from tensortriage.cli.options import common, option

EPILOG = """\b
Examples:
  triage debug repeat --check triage run model.onnx --target openvino --inputs real.npz
  triage debug repeat --until bad --artifacts model.engine --check ./build_and_compare.sh
  triage debug repeat --until 20 --check "trtexec --onnx=model.onnx | grep -q PASSED"

\b
Exit codes: 0 every run passed, 1 a run failed, 4 no run failed, but some neither passed nor failed.
"""
STOPPING = "Stopping"


@click.command(cls=CheckingCommand, value_lists=CHECK_LISTS, epilog=EPILOG)
@option("--until", default="sure", show_default=True, metavar="WHEN", heading=STOPPING,
        help="When to stop. good or bad: at the first run that passes or fails; N: after N runs; sure: when the "
             "failure rate is known.",
        )  # fmt: skip
@option("--width", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.2, show_default=True,
        metavar="SHARE", heading=STOPPING, help="Width of the 95 % interval at which the failure rate counts as known.",
        )  # fmt: skip
@option("--max-runs", type=click.IntRange(1), default=1000, show_default=True, metavar="N", heading=STOPPING,
        help="Largest number of runs, whatever --until says.")  # fmt: skip
@option("--budget", type=click.FloatRange(0), metavar="SECONDS", heading=STOPPING,
        help="Time after which no new run begins.")  # fmt: skip
@check_options
@common
def debug_repeat(as_json: bool, **given: Unpack[RepeatValues]) -> None:
    """Run a check repeatedly, sort its artifacts, and say how often it fails, with a confidence interval.

    Stops when the failure rate is known well enough, unless --until says otherwise. Without --check you are asked
    whether each run passed.
    """
    from tensortriage.cli.debug.repeat_request import repeat_and_show

    repeat_and_show(check_words(), given, as_json=as_json)
