"""The outcome of ``--fix`` in words, and the questions of the steps that explain it."""

from pathlib import Path

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Remedy, VerdictKind

REMEDY = "is there a change that makes the target right?"
RECALIBRATED = "does another quantization make the target right?"
"""Questions of the steps that try changes."""


def fix_words(inv: Investigation, conclusion: Conclusion, remedy: Remedy | None, fix: Path | None) -> str:
    """Return what ``--fix`` wrote, or that it wrote nothing and why; nothing where it was not requested.

    Args:
        inv: The investigation.
        conclusion: Its result.
        remedy: The change that helps; None where none was found, or none was looked for.
        fix: Where a model was to be written.
    """
    if fix is None:
        return ""
    if remedy is not None and remedy.file:
        return f"{fix} is written: {remedy.summary}" + (f"; {remedy.note}" if remedy.note else "")
    tried = [step.answer for step in inv.record.steps if step.question in (REMEDY, RECALIBRATED)]
    why = remedy.note if remedy is not None else tried[-1] if tried else ""
    reasons = {
        VerdictKind.MATCH: "nothing is wrong",
        VerdictKind.ROUNDING: "no op is wrong, the format rounds; triage debug precision writes a model in more bits",
    }
    reason = why or reasons.get(conclusion.kind, f"a verdict of {conclusion.kind.value} has no fix that could be tried")
    return f"nothing is written to {fix}: {reason}"
