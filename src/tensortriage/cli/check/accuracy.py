"""``triage check accuracy``: judge saved accuracy results by other limits."""

import sys
from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import JudgementValues
from tensortriage.cli.options import READ, WRITTEN_FILE, GuideCommand, common, option, together

EPILOG = """\b
Examples:
  triage check accuracy results.json                                   the verdicts as saved
  triage check accuracy results.json --check-error-stat max --atol 1e-3
  triage check accuracy results.json --compare l2 --l2-threshold 0.1 logits:0.5
  triage check accuracy results.json --compare snr --check-average
  triage run model.onnx --target openvino --json > run.json; triage check accuracy run.json --atol 1e-3

\b
Saved numbers cannot tell elements apart: without --check-error-stat the largest error is
judged, which is at least as strict as judging every element.
"""
LISTS = (
    "--atol", "--abs-tol", "--rtol", "--rel-tol", "--check-error-stat", "--error-quantile", "--compare",
    "--compare-func", "--l2-threshold", "--l2-tolerance", "--cosine-similarity-threshold", "--psnr-threshold",
    "--psnr-tolerance", "--snr-threshold", "--snr-tolerance", "--index-tolerance",
)  # fmt: skip
JUDGE, FILES, NUMBERS = "Judgement", "Files", "[OUT:]NUMBER..."


options = together(
    option("--compare", "--compare-func", "functions", multiple=True, metavar="FUNC...", heading=JUDGE,
           help="simple, l2, cosine_similarity, psnr, snr, distance_metrics, quality_metrics  [default: those "
           "that limits are given for, else all, as saved]"),
    option("--atol", "--abs-tol", "atol", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Absolute tolerance; an output passes within either tolerance."),
    option("--rtol", "--rel-tol", "rtol", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Relative tolerance."),
    option("--check-error-stat", "error_stat", multiple=True, metavar="[OUT:]STAT...", heading=JUDGE,
           help="Error statistic that is judged: max, mean, median or quantile."),
    option("--l2-threshold", "--l2-tolerance", "l2", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Largest L2 norm of the error."),
    option("--cosine-similarity-threshold", "cosine", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Smallest cosine similarity."),
    option("--psnr-threshold", "--psnr-tolerance", "psnr", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Smallest PSNR in dB."),
    option("--snr-threshold", "--snr-tolerance", "snr", multiple=True, metavar=NUMBERS, heading=JUDGE,
           help="Smallest SNR in dB."),
    option("--index-tolerance", multiple=True, metavar=NUMBERS, heading=JUDGE, rare=True,
           help="Refused: --compare indices needs the values, which are not saved."),
    option("--check-average", is_flag=True, heading=JUDGE,
           help="Judge the mean of each metric over the iterations."),
    option("--infinities-compare-equal", is_flag=True, heading=JUDGE, rare=True,
           help="Infinities of the same sign are equal (in documents of 'triage run --json')."),
    option("--error-quantile", multiple=True, metavar=NUMBERS, heading=JUDGE, rare=True, hidden=True),
    option("--compare-func-script", default="", metavar="FILE.py[:FUNC]", heading=JUDGE, rare=True, hidden=True),
    option("--fail-fast", is_flag=True, expose_value=False, heading=JUDGE, rare=True,
           help="Accepted for Polygraphy's sake; nothing is run here."),
    option("--no-shape-check", is_flag=True, expose_value=False, heading=JUDGE, rare=True,
           help="Accepted for Polygraphy's sake; nothing is run here."),
    option("--save-accuracy-results", type=WRITTEN_FILE, metavar="PATH", heading=FILES,
           help="Save the results with the new limits."),
)  # fmt: skip
"""The options, which are those of ``triage run``."""


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("path", type=READ)
@options
@common
@click.pass_context
def check_accuracy(
    context: click.Context,
    /,
    path: Path,
    as_json: bool,
    save_accuracy_results: Path | None,
    **given: Unpack[JudgementValues],
) -> None:
    """Judge PATH, saved by --save-accuracy-results or 'triage run --json', by other limits. Exit code 1 if it fails."""
    from tensortriage.cli.inspect.accuracy_table import show, to_document
    from tensortriage.cli.run.compatible import tell_rejudged
    from tensortriage.cli.run.tolerance_options import tolerances_of
    from tensortriage.engines.base import Limits
    from tensortriage.inputs.files.accuracy_results import AVERAGE, PER_SAMPLE, write_accuracy
    from tensortriage.workflows.comparison.rejudge import rejudge
    from tensortriage.workflows.comparison.saved_accuracy import load_accuracy

    tolerances = tolerances_of(given, Limits())
    saved = load_accuracy(path, infinities_equal=given["infinities_compare_equal"])
    # As in Polygraphy new limits are for every iteration unless averages are asked for; without limits nothing changes.
    aggregation = AVERAGE if given["check_average"] else PER_SAMPLE if tolerances else None
    rejudged = rejudge(saved, tolerances, aggregation=aggregation)
    if save_accuracy_results is not None:
        write_accuracy(save_accuracy_results, rejudged.results)
    if as_json:
        print_document(to_document(rejudged))
    elif context.meta.get(COMPATIBLE):
        tell_rejudged(rejudged)
    else:
        show(rejudged, sys.stdout)
    sys.exit(0 if rejudged.passed else 1)
