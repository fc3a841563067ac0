"""``triage polygraphy run``: Polygraphy's order of runners, their names, and the lines that scripts look for."""

import logging
import time
from collections.abc import Mapping, Sequence

from tensortriage.cli.logs import FINISHED
from tensortriage.cli.run.options import RunOptions
from tensortriage.compare.comparison import Row
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.report.run_result import CompareResult
from tensortriage.workflows.comparison.participants import Saved
from tensortriage.workflows.comparison.rejudge import Rejudged, RejudgedRow

_logger = logging.getLogger(__name__)
_PREFIXES = {"onnxruntime": "onnxrt", "tensorrt": "trt", "float64": "pluginref"}


def check_words(words: Sequence[str]) -> None:
    """Refuse what Polygraphy refuses.

    Raises:
        UsageError: For options that it takes with another one only (``option-needs-another``).
    """
    for name in ("--use-subprocess", "--warm-up"):
        given = any(word.partition("=")[0] == name for word in words)
        if given and "--sequential-runners" not in words:
            raise UsageError(
                f"{name} requires --sequential-runners", slug="option-needs-another",
                cure="add it; 'triage run' does not require it, only 'triage polygraphy run' does",
            )  # fmt: skip


def asks_nothing(given: RunOptions) -> bool:
    """Whether neither an engine nor a saved result is named: Polygraphy says so and ends with 0."""
    named = given.runners or given.targets or given.reference or given.load_outputs
    if named:
        return False
    _logger.warning("No runners have been selected. Inference will not be run!")
    return True


def ordered(
    runners: Sequence[EngineSpec], saved: Sequence[Saved]
) -> tuple[EngineSpec | None, list[EngineSpec], list[Saved]]:
    """Return the reference engine, the targets, and saved results in the order of a comparison.

    There every runner is compared with the one behind it, which counts as right; loaded outputs come last. So the last
    of all is the reference here; with more than two, each is compared with that one instead of its neighbour.
    """
    if saved:
        return None, [*runners], [saved[-1], *saved[:-1]]
    if len(runners) < 2:
        return None, [*runners], []
    return runners[-1], [*runners[:-1]], []


def runner_names(participants: Sequence[str]) -> Mapping[str, str]:
    """Return Polygraphy's names of runners, by ours, in the order given: ``onnxrt-runner-N0-11/22/26-10:20:30``."""
    counts: dict[str, int] = {}
    now, names = time.strftime("%x-%X"), {}
    for name in participants:
        engine = name.partition(":")[0].partition(" ")[0]
        if " in " in name:
            names[name] = name.rpartition(" in ")[0]
            continue
        prefix = _PREFIXES.get(engine, engine)
        number = counts.get(prefix, 0)
        counts[prefix] = number + 1
        names[name] = f"{prefix}-runner-N{number}-{now}"
    return names


def tell(result: CompareResult, names: Mapping[str, str]) -> None:
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


def tell_rejudged(rejudged: Rejudged) -> None:
    """Log in its words what was judged again from numbers."""
    groups: dict[tuple[str, tuple[str, str]], list[RejudgedRow]] = {}
    for row in rejudged.rows:
        groups.setdefault((row.compare, row.runners), []).append(row)
    for (_, runners), rows in groups.items():
        average = rows[0].iteration is None
        wrong = [row for row in rows if not row.judgement.within]
        for row in wrong:
            _logger.error("    FAILED | Output: '%s' | %s", row.output, row.judgement.limit)
        total = len(rows) if average else len({row.iteration for row in rows})
        passed = total - (len(wrong) if average else len({row.iteration for row in wrong}))
        rate = "" if average else f" | Pass Rate: {100 * passed / total:.2f}%"
        _logger.info("Accuracy Summary | %s vs. %s | Passed: %d/%d %s%s", *runners, passed, total,
                     "outputs" if average else "iterations", rate)  # fmt: skip


def tell_validation(result: CompareResult, names: Mapping[str, str]) -> None:
    """Log whether outputs are finite."""
    _logger.info("Output Validation | Runners: %s", list(names.values()))
    for found in result.invalid:
        _logger.error("    FAILED | Output: '%s' of %s | %d NaN, %d Inf", found.output,
                      names.get(found.participant, found.participant), found.nan, found.inf)  # fmt: skip
    if result.invalid:
        _logger.error("FAILED | Output Validation")
    else:
        _logger.log(FINISHED, "PASSED | Output Validation")


def _tell_row(row: Row) -> None:
    metrics, judgement = row.metrics, row.judgement
    _logger.info("    Comparing Output: '%s' with '%s'", row.value, row.value)
    _logger.info("        Tolerance: %s", judgement.limit)
    _logger.info("            Minimum Required Tolerance: elemwise error | [abs=%.5g] OR [rel=%.5g]",
                 metrics.max_abs_error, metrics.max_rel_error)  # fmt: skip
    if judgement.within:
        _logger.info("        PASSED | Output: '%s' | Difference is within tolerance (%s)", row.value, judgement.limit)
    else:
        _logger.error("        FAILED | Output: '%s' | Difference exceeds tolerance (%s)", row.value, judgement.limit)
