"""The finding of a run step by step, as one sentence."""

from tensortriage.api import VerdictKind
from tensortriage.sdk import count, error_size, magnitude
from tensortriage_steps.steps_report import HANDED_ON, StepRow, StepsReport


def summary_of(report: StepsReport) -> str:
    """Return the finding of a report as a sentence."""
    if report.first is not None and report.verdict in ("fault", "inconclusive"):
        return _fault(report)
    if report.stopped and report.verdict == "inconclusive":
        right = "step 0 is" if len(report.rows) == 1 else f"the first {len(report.rows):,} steps are"
        return f"{right} right, and then the reference stops: {report.stopped}"
    steps = count(len(report.rows), "step")
    if report.verdict == "drift-beyond":
        row = next(row for row in report.rows if any(not value.within for value in row.drifted))
        value = max((value for value in row.drifted if not value.within), key=lambda value: value.part == HANDED_ON)
        right = "every step is right on the reference's states; on its own"
        if value.part == HANDED_ON:
            return (
                f"{right} the target does not carry its states over unchanged: it changes '{value.value}' "
                f"at step {row.step} by {error_size(value.error)}"
            )
        return (
            f"{right} the target drifts further than healthy engines at step {row.step}: '{value.value}' is off by "
            f"{error_size(value.error)}, {magnitude(value.ratio)} times their limit{_grown(report)}"
        )
    if report.verdict == "tokens" and report.free is not None and report.free.first is not None:
        return (
            f"all {steps} are right, but generating on its own the target chooses another token at step "
            f"{report.free.first}, which is no tie within the drift of healthy engines"
        )
    if report.verdict == "drift":
        return (
            f"all {steps} are right; on its own states the target drifts no more than healthy engines{_grown(report)}"
        )
    return f"all {steps} are right"


def _fault(report: StepsReport) -> str:
    assert report.first is not None
    row = report.rows[report.first]
    wrong = [each for each in report.rows if each.outside]
    bad = row.outside[0]
    when = _when(report, wrong)
    if row.failure:
        text = f"step {row.step} fails: {row.failure}{when}"
    else:
        text = (
            f"step {row.step} is wrong: '{bad.value}' is off by {error_size(bad.error)}, {magnitude(bad.ratio)} times "
            f"its limit{when}"
        )
    found = report.diagnosis
    if not report.again:
        return (
            f"{text}. The same feed is right in a new session, so that it depends on earlier runs of the session: "
            "buffers that persist, or kernels chosen for other lengths"
        )
    if found is None:
        return text
    if found.verdict in (VerdictKind.MATCH.value, VerdictKind.ROUNDING.value):
        return f"{text}; the diagnosis of the step finds nothing but {found.verdict}"
    place = f": {found.op_type} '{found.node}'" if found.node else ""
    module = f" of {found.module}" if found.module else ""
    body = f" in {found.body}" if found.body else ""
    return f"{text}. {found.verdict}{place}{module}{body}"


def _when(report: StepsReport, wrong: list[StepRow]) -> str:
    """Return a clause on other wrong steps: one alone points at a length, all at the op itself."""
    after = len(report.rows) - wrong[0].step
    if len(wrong) == 1 and after > 1:
        return ", and no other step is"
    if len(wrong) == after and wrong[0].step == 0 and after > 1:
        return ", and so is every other"
    if len(wrong) == after and after > 1:
        return ", and so is every later one"
    if len(wrong) > 1:
        return f", and {count(len(wrong) - 1, 'later step')} as well"
    return ""


def _grown(report: StepsReport) -> str:
    """Return how the error grew, by the output whose drift is nearest to its limit at the last step."""
    last = [value for value in report.rows[-1].drifted if value.part != HANDED_ON]
    if not last:
        return ""
    worst = max(last, key=lambda value: value.ratio)
    first = next((value for value in report.rows[0].drifted if value.value == worst.value), None)
    start = f"from {error_size(first.error)} " if first is not None else ""
    share = f"{worst.ratio:.2f} of the prediction"
    return f" (nearest to its limit: '{worst.value}', {start}to {error_size(worst.error)}, {share})"
