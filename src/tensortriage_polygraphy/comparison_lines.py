"""The lines of a comparison that scripts look for."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensortriage.sdk import FINISHED, grouped

if TYPE_CHECKING:
    from tensortriage.api import CompareResult
    from tensortriage.sdk import Rejudged, Row

_logger = logging.getLogger("tensortriage.polygraphy")


def tell(result: "CompareResult", names: Mapping[str, str]) -> None:
    """Log a comparison in Polygraphy's words."""
    reference = names.get(result.reference, result.reference)
    for target in result.targets if result.reference else ():
        pair = f"{names.get(target, target)} vs. {reference}"
        mine = [item.comparison for item in result.comparisons if item.comparison.target == target]
        _logger.info("Accuracy Comparison | %s", pair)
        passed = 0
        for number, comparison in enumerate(mine):
            _logger.info("Iteration: %d", number)
            for row in comparison.rows:
                _tell_row(row)
            wrong = [row.value for row in comparison.rows if not row.judgement.within]
            if wrong:
                _logger.error("    FAILED | Mismatched outputs: %s", wrong)
            else:
                passed += 1
                _logger.info("    PASSED | All outputs matched | Outputs: %s", [row.value for row in comparison.rows])
        if mine:
            rate = 100.0 * passed / len(mine)
            _logger.info("Accuracy Summary | %s | Passed: %d/%d iterations | Pass Rate: %.2f%%", pair, passed,
                         len(mine), rate)  # fmt: skip
    for name, outcome in result.outcomes.items():
        if not outcome.ok:
            _logger.error("%s | %s", names.get(name, name), outcome.message)


def tell_rejudged(rejudged: "Rejudged") -> None:
    """Log, in Polygraphy's words, the results of judging saved numbers again."""
    for (_, runners), rows in grouped(((row.compare, row.runners), row) for row in rejudged.rows).items():
        average = rows[0].iteration is None
        wrong = [row for row in rows if not row.judgement.within]
        for row in wrong:
            _logger.error("    FAILED | Output: '%s' | %s", row.output, row.judgement.limit)
        total = len(rows) if average else len({row.iteration for row in rows})
        passed = total - (len(wrong) if average else len({row.iteration for row in wrong}))
        rate = "" if average else f" | Pass Rate: {100 * passed / total:.2f}%"
        _logger.info("Accuracy Summary | %s vs. %s | Passed: %d/%d %s%s", *runners, passed, total,
                     "outputs" if average else "iterations", rate)  # fmt: skip


def tell_validation(result: "CompareResult", names: Mapping[str, str]) -> None:
    """Log whether outputs are finite."""
    _logger.info("Output Validation | Runners: %s", list(names.values()))
    for found in result.invalid:
        _logger.error("    FAILED | Output: '%s' of %s | %d NaN, %d Inf", found.output,
                      names.get(found.participant, found.participant), found.nan, found.inf)  # fmt: skip
    if result.invalid:
        _logger.error("FAILED | Output Validation")
    else:
        _logger.log(FINISHED, "PASSED | Output Validation")


def _tell_row(row: "Row") -> None:
    metrics, judgement = row.metrics, row.judgement
    _logger.info("    Comparing Output: '%s' with '%s'", row.value, row.value)
    _logger.info("        Tolerance: %s", judgement.limit)
    _logger.info("            Minimum Required Tolerance: elemwise error | [abs=%.5g] OR [rel=%.5g]",
                 metrics.max_abs_error, metrics.max_rel_error)  # fmt: skip
    if judgement.within:
        _logger.info("        PASSED | Output: '%s' | Difference is within tolerance (%s)", row.value, judgement.limit)
    else:
        _logger.error("        FAILED | Output: '%s' | Difference exceeds tolerance (%s)", row.value, judgement.limit)
