"""``triage debug reduce``: the smallest piece of a model that still fails."""

from pathlib import Path
from typing import Any

import click

from tensortriage.cli.checking import CHECK_LISTS, CheckingCommand, check_options, check_words
from tensortriage.cli.options import DATA_LISTS, common, data_options, limit_options, option

EPILOG = """\b
Examples:
  triage debug reduce model.onnx -o reduced.onnx --target openvino:precision=bf16 --inputs real.npz
  triage debug reduce model.onnx -o reduced.onnx --check triage run polygraphy_debug.onnx --target openvino
  triage debug reduce model.onnx -o reduced.onnx --jobs 2 --check "./build.sh && ./compare.sh"
  triage debug reduce model.onnx -o reduced.onnx            (asks you)

\b
Exit codes: 0 the result is written and was seen to fail again, 2 usage or nothing to reduce,
4 the result did not fail again, 130 interrupted (the smallest so far is written; run again to go on).
"""
LISTS = (
    *DATA_LISTS,
    *CHECK_LISTS,
    "--model-input-shapes",
    "--model-inputs",
    "--atol",
    "--abs-tol",
    "--rtol",
    "--rel-tol",
)
RESULT, ENGINES, SEARCH, SHAPES = "Result", "Engines (instead of --check)", "Search", "Shapes"


def result_options(function: Any) -> Any:
    """Add the options that say where results go."""
    for add in reversed(
        (
            option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", heading=RESULT,
                   help="The smallest piece that fails."),
            option("--min-good", "--minimal-good", "min_good", type=click.Path(path_type=Path), metavar="FILE",
                   heading=RESULT, help="A passing piece of about that size."),
            option("--case", type=click.Path(path_type=Path), default="triage-case", show_default=True, metavar="DIR",
                   heading=RESULT, help="Directory of the case; an earlier one is resumed."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


def engine_options(function: Any) -> Any:
    """Add the options of the way that asks engines."""
    for add in reversed(
        (
            option("--target", "-t", default="", metavar="ENGINE", heading=ENGINES,
                   help="Engine that fails, NAME[:key=value,...]; pieces are fed with golden values."),
            option("--reference", "-r", default="onnxruntime:optimization=none", show_default=True, metavar="ENGINE",
                   heading=ENGINES, help="Engine taken as right."),
            option("--atol", "--abs-tol", "atol", multiple=True, metavar="[OUT:]NUMBER...", heading=ENGINES,
                   help="Absolute tolerance of the model's outputs instead of the noise floor."),
            option("--rtol", "--rel-tol", "rtol", multiple=True, metavar="[OUT:]NUMBER...", heading=ENGINES,
                   help="Relative tolerance, of |reference|."),
            option("--samples", type=click.IntRange(1), default=8, show_default=True, heading=ENGINES,
                   help="Most feeds to use."),
            option("--shrink-budget", type=click.FloatRange(0), metavar="SECONDS", heading=ENGINES,
                   help="Time for making sizes, inputs and weights smaller as well; 60, and 0 with --check, where it "
                   "takes a check for every step, and inputs are the check's own."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


def search_options(function: Any) -> Any:
    """Add the options that steer the search."""
    for add in reversed(
        (
            option("--mode", type=click.Choice(["auto", "blocks", "bisect", "linear"]), default="auto",
                   show_default=True, heading=SEARCH,
                   help="auto: no node can be left out; blocks: no block of them; bisect, linear: Polygraphy's."),
            option("--no-reduce-inputs", is_flag=True, heading=SEARCH, help="Keep the inputs; cut at the end only."),
            option("--no-reduce-outputs", is_flag=True, heading=SEARCH,
                   help="Keep the outputs; cut at the beginning only."),
            option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, metavar="N", heading=SEARCH,
                   help="Checks at once; commands each in a folder of its own."),
            option("--premise", type=click.IntRange(1), default=3, show_default=True, metavar="N", heading=SEARCH,
                   help="Runs of the whole before the search; more for a fault that seldom shows."),
            option("--max-checks", type=click.IntRange(1), metavar="N", heading=SEARCH,
                   help="End with the smallest so far after N checks."),
            option("--budget", type=click.FloatRange(0), metavar="SECONDS", heading=SEARCH,
                   help="End with the smallest so far after this time."),
            option("--iter-artifact", "--intermediate-artifact", "iter_artifact", type=click.Path(path_type=Path),
                   default="polygraphy_debug.onnx", show_default=True, metavar="FILE", heading=SEARCH,
                   help="The piece that the check, or you, are to judge."),
            option("--no-remove-intermediate", is_flag=True, heading=SEARCH, rare=True,
                   help="Leave the last piece there."),
            option("--model-input-shapes", "--model-inputs", "model_input_shapes", multiple=True,
                   metavar="NAME:SHAPE...", heading=SHAPES, help="Shapes that the model's inputs get."),
            option("--force-fallback-shape-inference", is_flag=True, heading=SHAPES, rare=True,
                   help="Take shapes from running the model in ONNX Runtime; nothing stays dynamic."),
            option("--no-shape-inference", is_flag=True, heading=SHAPES, rare=True,
                   help="Use only the shapes that the model declares."),
            option("--external-data-dir", "--load-external-data", "--ext", "external_data_dir",
                   type=click.Path(path_type=Path), metavar="DIR", heading=SHAPES, rare=True,
                   help="Where external data are when not beside the model."),
        )
    ):  # fmt: skip
        function = add(function)
    return function


@click.command(cls=CheckingCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@result_options
@engine_options
@check_options
@search_options
@data_options
@limit_options
@common
def debug_reduce(model: Path, as_json: bool, **given: Any) -> None:
    """Find the smallest piece of MODEL that still fails the same way, and write it with inputs and expected outputs.

    Who says what fails: an engine (--target), a command (--check), or you.
    """
    from tensortriage.cli.reducing import reduce_and_show

    reduce_and_show(model, check_words(), given, as_json=as_json)
