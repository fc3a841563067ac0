"""``--check-average``: the mean of each number over all feeds is judged, instead of every feed by itself."""

import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tensortriage.cli.dialect import dialect
from tensortriage.cli.documents import print_document
from tensortriage.cli.inspect.accuracy_table import accuracy_document, accuracy_lines
from tensortriage.compare.judgement.tolerance import ErrorStat, PolygraphyTolerance, ThresholdTolerance, Tolerance
from tensortriage.errors import UsageError
from tensortriage.inputs.files.accuracy_results import AVERAGE
from tensortriage.report.run_result import CompareResult
from tensortriage.report.terminal.lines import show
from tensortriage.workflows.comparison.rejudge import rejudge
from tensortriage.workflows.comparison.saved_accuracy import SavedAccuracy, accuracy_of, as_judged


def check(tolerances: Sequence[Tolerance]) -> None:
    """Refuse limits that are for elements.

    Raises:
        UsageError: With an alternative (``average-of-elements``).
    """
    cure = "add --check-error-stat max, mean, median or quantile, or --compare l2, cosine_similarity or snr"
    for tolerance in tolerances or [PolygraphyTolerance()]:
        if isinstance(tolerance, PolygraphyTolerance):
            stats = tolerance.check_error_stat
            words = list(stats.values()) if isinstance(stats, Mapping) else [stats]
            if ErrorStat.ELEMWISE not in (words or [ErrorStat.ELEMWISE]):
                continue
            message = "--check-average is not supported with check_error_stat='elemwise': elements have no mean"
        elif isinstance(tolerance, ThresholdTolerance):
            continue
        else:
            message = "--check-average: this comparison function does not produce averageable metrics"
        raise UsageError(message, slug="average-of-elements", cure=cure)


def show_and_exit(
    result: CompareResult, tolerances: Sequence[Tolerance], names: Mapping[str, str], *, as_json: bool
) -> NoReturn:
    """Judge the means, show them and exit with the code.

    Args:
        result: The comparison, feed by feed.
        tolerances: The limits of the means.
        names: Other names of the runners, where a dialect has them.
        as_json: Whether stdout is for one document.
    """
    measured = as_judged(result, tolerances, names) if names else accuracy_of(result)
    judged = rejudge(SavedAccuracy(measured, measured), tolerances, aggregation=AVERAGE)
    if as_json:
        print_document(accuracy_document(judged))
    elif not dialect().tell_rejudged(judged):
        show(accuracy_lines(judged))
    failed = any(not outcome.ok for outcome in result.outcomes.values()) or bool(result.invalid)
    sys.exit(0 if judged.passed and not failed else 1)
