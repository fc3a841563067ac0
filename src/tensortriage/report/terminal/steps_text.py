"""Steps as text: what is carried, a table of steps, what was found, what to do next."""

import dataclasses
from collections.abc import Iterator, Sequence

from tensortriage.values.printable import printable
from tensortriage.values.text import magnitude, percent, shorten

MOST_STEPS = 12
"""Steps that are listed; the others are as good as those shown."""
_NAME = 28


@dataclasses.dataclass(frozen=True, slots=True)
class StepLine:
    """What the table shows of one step.

    Attributes:
        step: Its number.
        length: Positions so far; 0 for none.
        worst: The output nearest to, or farthest beyond, its limit.
        error: Its error.
        ratio: Error over limit.
        divergence: KL divergence of the next token, in nats; None without logits.
        agreement: Share of the likeliest tokens that are the same.
        margin: Lead of the first token over what may move.
        drift: The largest ratio of an output on own states; None where not asked.
        wrong: Whether the step is wrong.
    """

    step: int
    length: int
    worst: str
    error: float
    ratio: float
    divergence: float | None
    agreement: float | None
    margin: float | None
    drift: float | None
    wrong: bool


def step_lines(cells: Sequence[StepLine]) -> Iterator[tuple[str, bool]]:
    """Yield the table, and whether a line is bad news; of many steps those that say most."""
    shown = _shown(cells)
    scored = any(cell.divergence is not None for cell in cells)
    drifts = any(cell.drift is not None for cell in cells)
    titles = f"{'step':>4} {'length':>6}  {'worst output':<{_NAME}} {'rel rms':>9} {'of limit':>8}"
    titles += f" {'KL nats':>9} {'top-5':>6} {'margin':>7}" if scored else ""
    titles += f" {'own states':>10}" if drifts else ""
    yield titles, False
    for cell in shown:
        line = f"{cell.step:>4} {cell.length or '-':>6}  {shorten(printable(cell.worst), _NAME):<{_NAME}}"
        line += f" {magnitude(cell.error):>9} {magnitude(cell.ratio):>8}"
        if scored:
            line += f" {magnitude(cell.divergence):>9} {percent(cell.agreement):>6} {magnitude(cell.margin):>7}"
        if drifts:
            line += f" {magnitude(cell.drift):>10}"
        yield line, cell.wrong
    if len(shown) < len(cells):
        yield f"     ... {len(cells) - len(shown)} other steps are right", False


def _shown(cells: Sequence[StepLine]) -> list[StepLine]:
    """Return the wrong steps, the first and the last, and of the others those nearest to their limits."""
    if len(cells) <= MOST_STEPS:
        return list(cells)
    wrong = [cell for cell in cells if cell.wrong][: MOST_STEPS - 2]
    always = {cells[0].step, cells[-1].step, *(cell.step for cell in wrong)}
    rest = sorted((cell for cell in cells if not cell.wrong), key=lambda cell: (-cell.ratio, cell.step))
    for cell in rest:
        if len(always) >= MOST_STEPS:
            break
        always.add(cell.step)
    return [cell for cell in cells if cell.step in always]
