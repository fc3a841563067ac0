"""``triage debug build``: build again and again, sort good from bad, name the choice that makes the difference."""

from pathlib import Path
from typing import Any

import click

from tensortriage.cli.checking import CHECK_LISTS, CheckingCommand, check_options, check_words
from tensortriage.cli.options import DATA_LISTS, common, data_options, limit_options, option
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
LISTS = (*DATA_LISTS, *CHECK_LISTS, *TENSORRT_LISTS, "--atol", "--abs-tol", "--rtol", "--rel-tol")
ENGINES, STOPPING, RESULT = "Engines", "Stopping", "Result"


def stopping_options(function: Any) -> Any:
    """Add the options that say when enough is known."""
    for add in reversed(
        (
            option("--until", default="sure", show_default=True, metavar="WHEN", heading=STOPPING,
                   help="good or bad: the first such build; N: that many builds; sure: enough is known."),
            option("--rate", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.2, show_default=True,
                   metavar="SHARE", heading=STOPPING,
                   help="sure, with all builds alike: the share of other builds to exclude with 95 % confidence."),
            option("--max-builds", type=click.IntRange(1), default=50, show_default=True, metavar="N",
                   heading=STOPPING, help="Most builds that choose freely, whatever --until says."),
            option("--budget", type=click.FloatRange(0), metavar="SECONDS", heading=STOPPING,
                   help="Time after which no new build begins."),
            option("--no-tactics", is_flag=True, heading=STOPPING,
                   help="Build exactly as deployed: recording tactics may change what an engine builds."),
            option("--no-pin", is_flag=True, heading=STOPPING,
                   help="Do not look for the guilty choice by giving tactics to builds."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


def engine_options(function: Any) -> Any:
    """Add the options that name engines and say what is good enough."""
    for add in reversed(
        (
            option("--target", "-t", metavar="ENGINE", heading=ENGINES, help="Engine to build, NAME[:key=value,...]."),
            option("--reference", "-r", default="onnxruntime:optimization=none", show_default=True, metavar="ENGINE",
                   heading=ENGINES, help="Engine taken as right (without --check)."),
            option("--atol", "--abs-tol", "atol", multiple=True, metavar="[OUT:]NUMBER...", heading=ENGINES,
                   help="Absolute tolerance instead of the noise floor."),
            option("--rtol", "--rel-tol", "rtol", multiple=True, metavar="[OUT:]NUMBER...", heading=ENGINES,
                   help="Relative tolerance, of |reference|."),
            option("--samples", type=click.IntRange(1), default=2, show_default=True, heading=ENGINES,
                   help="Most feeds to run every build on."),
            option("--external-data-dir", "--load-external-data", "--ext", "external_data_dir",
                   type=click.Path(path_type=Path), metavar="DIR", heading=ENGINES, rare=True,
                   help="Where external data are when not beside the model."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


def result_options(function: Any) -> Any:
    """Add the options that say where things go."""
    for add in reversed(
        (
            option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", heading=RESULT,
                   help="The good engine that can be built again."),
            option("--case", type=click.Path(path_type=Path), default="triage-case", show_default=True, metavar="DIR",
                   heading=RESULT, help="Directory of the case; an earlier one is resumed."),
            option("--iter-artifact", "--intermediate-artifact", "iter_artifact", type=click.Path(path_type=Path),
                   default="polygraphy_debug.engine", show_default=True, metavar="FILE", heading=RESULT,
                   help="The engine that the check is to judge."),
            option("--no-remove-intermediate", is_flag=True, heading=RESULT, rare=True,
                   help="Leave the last engine there."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


@click.command(cls=CheckingCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@engine_options
@stopping_options
@check_options
@result_options
@tensorrt_flags
@data_options
@limit_options
@common
def debug_build(model: Path, target: str | None, as_json: bool, **given: Any) -> None:
    """Build MODEL again and again, sort good builds from bad ones, and find the choice that makes the difference.

    A build is judged by what it computes, against the reference; with --check by a command. Where the engine tells its
    tactics and takes them back, the guilty one is found by giving it to a good build, and a good build is made again.

    Without --target, Polygraphy's TensorRT flags say what is built. --save-tactics FILE tells the check the tactics of
    the build before it, and ends as those of a good one; every build is given those of --load-tactics FILE.
    """
    from tensortriage.cli.building import build_and_show, target_of

    words = check_words()
    build_and_show(model, target_of(model, target, words, given), words, given, as_json=as_json)
