"""``triage debug build``: build again and again, sort good from bad, name the choice that makes the difference."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.cluster.option import WHOLE, cluster_option
from tensortriage.cli.debug.check_options import (
    CHECK_LISTS,
    CheckingCommand,
    artifact_options,
    check_options,
    check_words,
)
from tensortriage.cli.option_values import BuildValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    TOLERANCE_LISTS,
    WRITTEN_FILE,
    case_option,
    common,
    data_options,
    external_data_option,
    inference_accepted,
    limit_options,
    model_type_option,
    option,
    reference_option,
    samples_option,
    together,
    tolerance_options,
)
from tensortriage.cli.tensorrt_options import LISTS as TENSORRT_LISTS
from tensortriage.cli.tensorrt_options import tensorrt_flags

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
LISTS = (*DATA_LISTS, *CHECK_LISTS, *TENSORRT_LISTS, *TOLERANCE_LISTS)
ENGINES, STOPPING, RESULT = "Engines", "Stopping", "Result"


stopping_options = together(
    option("--until", default="sure", show_default=True, metavar="WHEN", heading=STOPPING,
           help="When to stop. good or bad: at the first such build; N: after N builds; sure: when enough is known."),
    option("--rate", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.2, show_default=True,
           metavar="SHARE", heading=STOPPING,
           help="For --until sure, when all builds are alike: stop once a share of other builds of this size is "
                "excluded with 95 % confidence."),
    option("--max-builds", type=click.IntRange(1), default=50, show_default=True, metavar="N",
           heading=STOPPING, help="Largest number of builds with free choice of tactics, whatever --until says."),
    option("--budget", type=click.FloatRange(0), metavar="SECONDS", heading=STOPPING,
           help="Time after which no new build begins."),
    option("--no-tactics", is_flag=True, heading=STOPPING,
           help="Build exactly as deployed: recording tactics may change what an engine builds."),
    option("--no-pin", is_flag=True, heading=STOPPING,
           help="Do not search for the guilty tactic by giving tactics to builds."),
    cluster_option(STOPPING, WHOLE),
)  # fmt: skip
"""When enough is known."""


engine_options = together(
    option("--target", "-t", metavar="ENGINE", heading=ENGINES, help="Engine to build, NAME[:key=value,...]."),
    reference_option(ENGINES, "Engine taken as right (without --check)."),
    tolerance_options(ENGINES, "Absolute tolerance instead of the noise floor."),
    samples_option(ENGINES, 2, "Largest number of feeds to run every build on."),
    model_type_option(ENGINES),
    inference_accepted(ENGINES),
    external_data_option(ENGINES),
)  # fmt: skip
"""Which engines, and what is good enough."""


result_options = together(
    option("--output", "-o", type=WRITTEN_FILE, metavar="FILE", heading=RESULT,
           help="File for the good engine, which can be built again."),
    case_option(),
    artifact_options(RESULT, "polygraphy_debug.engine", "File in which the check finds the engine to judge."),
)  # fmt: skip
"""Where things go."""


@click.command(cls=CheckingCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@engine_options
@stopping_options
@check_options
@result_options
@tensorrt_flags
@data_options
@limit_options
@common
def debug_build(model: Path, target: str | None, as_json: bool, **given: Unpack[BuildValues]) -> None:
    """Build MODEL again and again, sort good builds from bad ones, and find the choice that makes the difference.

    A build is judged by its outputs, against the reference, or by the command of --check. Where the engine reports its
    tactics and accepts given ones, the guilty tactic is found by giving it to a good build, and a good build is
    reproduced.

    Without --target, Polygraphy's TensorRT flags say what is built. --save-tactics FILE holds the tactics of the build
    that the check judges, and in the end those of a good build; every build is given the tactics of --load-tactics
    FILE.
    """
    from tensortriage.cli.debug.build_request import build_and_show, target_of

    words = check_words()
    engine = target_of(model, target, words, given)
    if given["cluster"]:
        from tensortriage.cli.cluster.elsewhere import go_elsewhere

        go_elsewhere(given["cluster"], engine, as_json=as_json)
    build_and_show(model, engine, words, given, as_json=as_json)
