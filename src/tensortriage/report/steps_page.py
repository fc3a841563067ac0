"""The steps of a model as one page: what was found, and a table of every step.

As safe as the report of a case: every expression is escaped, and the page may run no script at all.
"""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from tensortriage.report.html_page import asset, policy, template
from tensortriage.report.terminal.steps_text import StepLine
from tensortriage.values.text import magnitude

MOST_ROWS = 2000
"""Steps in the table; of more, which no reader goes through, ``steps.json`` holds all."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StepsPage:
    """What the page shows.

    Attributes:
        model: The file.
        reference: The engine taken as right; empty where the target was held against itself.
        target: The engine under suspicion.
        inputs: ``real`` or ``random``.
        carried: ``OUTPUT=INPUT``.
        verdict: Word of the finding.
        summary: One sentence.
        exit_code: 0 for right, 4 for not certain, else wrong.
        lines: The table.
        remarks: More sentences.
        next: Commands to run next.
        report: Page of the diagnosis, from the page's folder; empty without one.
        format: Version of the data.
    """

    model: str
    reference: str
    target: str
    inputs: str
    carried: Sequence[str]
    verdict: str
    summary: str
    exit_code: int
    lines: Sequence[StepLine]
    remarks: Sequence[str]
    next: Sequence[str]
    report: str
    format: str

    @property
    def tone(self) -> str:
        """How the finding is coloured."""
        return {0: "good", 4: "unsure"}.get(self.exit_code, "problem")

    @property
    def scored(self) -> bool:
        """Whether there are figures of logits."""
        return any(line.divergence is not None for line in self.lines)

    @property
    def drifts(self) -> bool:
        """Whether there are figures on own states."""
        return any(line.drift is not None for line in self.lines)


def render_steps(page: StepsPage) -> str:
    """Return a self-contained page."""
    style = asset("report.css")
    return template("steps.html.j2", figure=magnitude).render(
        page=page, most_rows=MOST_ROWS, policy=policy(style), style=Markup(style)
    )
