"""``triage debug reduce``: the smallest piece of a model that still fails."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.cluster.option import cluster_option
from tensortriage.cli.debug.check_options import (
    CHECK_LISTS,
    CheckingCommand,
    artifact_options,
    check_options,
    check_words,
)
from tensortriage.cli.option_values import ReduceValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    TOLERANCE_LISTS,
    WRITTEN_FILE,
    case_option,
    common,
    data_options,
    external_data_option,
    limit_options,
    option,
    own_inference,
    reference_option,
    samples_option,
    together,
    tolerance_options,
)

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
    *TOLERANCE_LISTS,
)
RESULT, ENGINES, SEARCH, SHAPES = "Result", "Engines (instead of --check)", "Search", "Shapes"


result_options = together(
    option("--output", "-o", type=WRITTEN_FILE, metavar="FILE", heading=RESULT,
           help="ONNX file for the smallest piece that fails."),
    option("--min-good", "--minimal-good", "min_good", type=WRITTEN_FILE, metavar="FILE",
           heading=RESULT, help="ONNX file for a passing piece of about that size."),
    case_option(),
)  # fmt: skip
"""Where results go."""


engine_options = together(
    option("--target", "-t", default="", metavar="ENGINE", heading=ENGINES,
           help="Engine that fails, NAME[:key=value,...]; pieces are fed with golden values."),
    reference_option(ENGINES),
    tolerance_options(ENGINES, "Absolute tolerance of the model's outputs instead of the noise floor."),
    samples_option(ENGINES, 8),
    option("--shrink-budget", type=click.FloatRange(0), metavar="SECONDS", heading=ENGINES,
           help="Time for shrinking sizes, inputs and weights as well  [default: 60; with --check 0, because every "
                "step takes a check and the inputs belong to the check]."),
)  # fmt: skip
"""The way that asks engines."""


search_options = together(
    option("--mode", type=click.Choice(["auto", "blocks", "bisect", "linear"]), default="auto",
           show_default=True, heading=SEARCH,
           help="auto: until no single node can be left out; blocks: until no block of nodes can; bisect, linear: as "
                "Polygraphy does."),
    option("--no-reduce-inputs", is_flag=True, heading=SEARCH, help="Keep the inputs; cut at the end only."),
    option("--no-reduce-outputs", is_flag=True, heading=SEARCH,
           help="Keep the outputs; cut at the beginning only."),
    option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, metavar="N", heading=SEARCH,
           help="Number of checks at once; each command then runs in a folder of its own."),
    cluster_option(SEARCH),
    option("--premise", type=click.IntRange(1), default=3, show_default=True, metavar="N", heading=SEARCH,
           help="Runs of the whole model before the search; give more for a fault that shows seldom."),
    option("--max-checks", type=click.IntRange(1), metavar="N", heading=SEARCH,
           help="End after N checks, with the smallest piece so far."),
    option("--budget", type=click.FloatRange(0), metavar="SECONDS", heading=SEARCH,
           help="End after this time, with the smallest piece so far."),
    artifact_options(SEARCH, "polygraphy_debug.onnx", "File in which the check, or you, find the piece to judge."),
    option("--model-input-shapes", "--model-inputs", "model_input_shapes", multiple=True,
           metavar="NAME:SHAPE...", heading=SHAPES, help="Shapes to give to the model's inputs."),
    option("--force-fallback-shape-inference", is_flag=True, heading=SHAPES, rare=True,
           help="Take shapes from running the model in ONNX Runtime; nothing stays dynamic."),
    option("--no-shape-inference", is_flag=True, heading=SHAPES, rare=True,
           help="Use only the shapes that the model declares."),
    own_inference(SHAPES),
    external_data_option(SHAPES),
)  # fmt: skip
"""What steers the search."""


@click.command(cls=CheckingCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@result_options
@engine_options
@check_options
@search_options
@data_options
@limit_options
@common
def debug_reduce(model: Path, as_json: bool, **given: Unpack[ReduceValues]) -> None:
    """Find the smallest piece of MODEL that still fails the same way, and write it with inputs and expected outputs.

    What counts as a failure is decided by an engine (--target), by a command (--check), or by you.
    """
    from tensortriage.cli.debug.reduce_request import reduce_and_show

    reduce_and_show(model, check_words(), given, as_json=as_json)
