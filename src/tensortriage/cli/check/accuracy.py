"""``triage check accuracy``: judge saved accuracy results by other limits."""

import sys
from pathlib import Path
from typing import Any

from tensortriage.cli.declared import command
from tensortriage.cli.dialect import dialect
from tensortriage.cli.documents import print_document
from tensortriage.cli.options import accepted_option
from tensortriage.cli.run.judgement import JUDGE, THRESHOLDS, JudgementOptions, threshold_field
from tensortriage.values.options import argument, option, part
from tensortriage.values.output_files import Place

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
ACCEPTED = [
    accepted_option(name, heading=JUDGE, text="nothing is run here.") for name in ("--fail-fast", "--no-shape-check")
]
SHOWN: dict[str, Any] = {kind: threshold_field(kind, rare=False) for kind in THRESHOLDS}


@command(epilog=EPILOG, accepted=ACCEPTED)
def check_accuracy(
    path: Path = argument("PATH"),
    judgement: JudgementOptions = part(factory=JudgementOptions, functions=option(
        "--compare --compare-func", "FUNC...", "simple, l2, cosine_similarity, psnr, snr, distance_metrics, "
        "quality_metrics  [default: those that limits are given for, else all, as saved].", default=(), group=JUDGE),
        **SHOWN),
    save_accuracy_results: Path | None = option(
        "--save-accuracy-results", "PATH", "Save the results with the new limits.", default=None, writes=Place.FILE,
        group="Files"),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Judge PATH, saved by --save-accuracy-results or 'triage run --json', by other limits. Exit code 1 if it fails."""
    from tensortriage.cli.inspect.accuracy_table import accuracy_document, accuracy_lines
    from tensortriage.engines.base import Limits
    from tensortriage.inputs.files.accuracy_results import AVERAGE, PER_SAMPLE, write_accuracy
    from tensortriage.report.terminal.lines import show
    from tensortriage.workflows.comparison.rejudge import rejudge
    from tensortriage.workflows.comparison.saved_accuracy import load_accuracy

    tolerances = judgement.tolerances(Limits())
    saved = load_accuracy(path, infinities_equal=judgement.infinities_compare_equal)
    # As in Polygraphy, new limits apply to every iteration unless averages are requested; else nothing changes.
    aggregation = AVERAGE if judgement.check_average else PER_SAMPLE if tolerances else None
    rejudged = rejudge(saved, tolerances, aggregation=aggregation)
    if save_accuracy_results is not None:
        write_accuracy(save_accuracy_results, rejudged.results)
    if as_json:
        print_document(accuracy_document(rejudged))
    elif not dialect().tell_rejudged(rejudged):
        show(accuracy_lines(rejudged))
    sys.exit(0 if rejudged.passed else 1)
