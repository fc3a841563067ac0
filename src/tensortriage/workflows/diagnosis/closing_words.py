"""What a verdict says first and what it asks for last: its headline, and the commands in the order to type them."""

import dataclasses
import shlex
from pathlib import Path

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.report.verdict_words import headline


def with_closing_words(verdict: Verdict, case: Path) -> Verdict:
    """Return a verdict with its headline; a repro that was confirmed comes first of what to do, then its report.

    A repro of one op cannot be reduced any more, so that is not suggested.

    Args:
        verdict: The verdict.
        case: The directory of its case.
    """
    repro, steps = verdict.repro, list(verdict.next)
    if repro is not None and repro.confirmed:
        scripts = [step for step in steps if step.endswith(("repro.py", "repro.py'"))]
        others = [step for step in steps if step not in scripts]
        if len(repro.nodes) == 1:
            others = [step for step in others if not step.startswith("triage debug reduce ")]
        steps = [*scripts, f"triage report {shlex.quote(str(case))} --format markdown -o issue.md", *others]
    return dataclasses.replace(verdict, headline=headline(verdict), next=tuple(steps))
