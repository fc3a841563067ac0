"""``triage diagnose``: walk the whole guide and end with one verdict."""

from pathlib import Path
from typing import Any

import click

from tensortriage.cli.options import DATA_LISTS, GuideCommand, common, data_options, limit_options, option, parse_bytes

EPILOG = """\b
Examples:
  triage diagnose model.onnx --target openvino:precision=bf16 --inputs real.npz
  triage diagnose model.onnx --target emulate:precision=fp16 --inputs test_data_set_0
  triage diagnose model.onnx --target onnxruntime --target-model optimized.onnx
  triage diagnose model.onnx --target script:my_engine.py:MyEngine --case study
"""


@click.command(cls=GuideCommand, value_lists=DATA_LISTS, epilog=EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@option("--target", "-t", metavar="ENGINE", heading="Engines", help="Engine under suspicion, NAME[:key=value,...].")
@option(
    "--reference",
    "-r",
    default="onnxruntime:optimization=none",
    show_default=True,
    metavar="ENGINE",
    heading="Engines",
    help="Engine taken as right.",
)
@option(
    "--target-model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    heading="Engines",
    help="ONNX file that the target runs, when it is another.",
)
@option(
    "--external-data-dir",
    "--ext",
    type=click.Path(path_type=Path),
    metavar="DIR",
    heading="Engines",
    rare=True,
    help="Where external data are when they are not beside the model.",
)
@data_options
@option(
    "--samples", type=click.IntRange(1), default=8, show_default=True, heading="Inputs", help="Most feeds to look at."
)
@option(
    "--sweep",
    multiple=True,
    metavar="DIM=SIZE,SIZE...",
    heading="Inputs",
    help="At which shapes does it fail? Sizes of an open dimension, e.g. batch=1,2,8.",
)
@option(
    "--no-random-data",
    is_flag=True,
    heading="Inputs",
    rare=True,
    help="Leave random data alone when real data pass.",
)
@option(
    "--case",
    "--output",
    "-o",
    "case",
    type=click.Path(path_type=Path),
    default="triage-case",
    show_default=True,
    metavar="DIR",
    heading="Result",
    help="Directory of the case; an earlier one is resumed.",
)
@option(
    "--emit-breakers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    heading="Result",
    help="Write the model whose fusion breakers are outputs, when that cures it.",
)
@option(
    "--atol",
    "--abs-tol",
    "atol",
    multiple=True,
    metavar="[OUT:]NUMBER",
    heading="Judgement",
    help="Absolute tolerance instead of the noise floor.",
)
@option(
    "--rtol",
    "--rel-tol",
    "rtol",
    multiple=True,
    metavar="[OUT:]NUMBER",
    heading="Judgement",
    help="Relative tolerance instead of the noise floor.",
)
@option(
    "--builds",
    type=click.IntRange(0),
    metavar="N",
    heading="Judgement",
    help="How often to build the target again; default: 1 (2 if it fails) where the engine's builds may differ.",
)
@option(
    "--fix",
    type=click.Path(path_type=Path),
    metavar="FILE",
    heading="Result",
    help="Write the model with a remedy that was seen to work on the target.",
)
@option(
    "--no-repro", is_flag=True, heading="Result", rare=True, help="Do not cut the culprit out as a case of its own."
)
@limit_options
@option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    heading="Limits",
    help="Time the whole may take; what is not asked for lack of it is said.",
)
@option("--low-memory", is_flag=True, heading="Limits", help="Capture tensors in small batches.")
@common
def diagnose(model: Path, target: str | None, as_json: bool, **given: Any) -> None:
    """Find out why MODEL gives wrong numbers on an engine: one verdict, the culprit, the next command.

    Runs MODEL on a reference and on the target, then asks the questions of the guide in order of cost, until one
    answer is decisive. Everything is kept in the case directory; report.html in it shows where the error is born.
    """
    from tensortriage.cli.diagnosing import diagnose_and_show, no_target, request_of

    if not target:
        raise no_target(model)
    request = request_of(model, target, parse_bytes(given.pop("memory_limit")), **given)
    diagnose_and_show(request, as_json=as_json)
