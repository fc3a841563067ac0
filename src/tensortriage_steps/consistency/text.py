"""A self-check as text: one line per question, then the findings."""

from collections.abc import Iterator, Sequence

from tensortriage.sdk import Line, count
from tensortriage_steps.consistency.self_check import ClaimOutcome, SelfAnswer

_BAD = (ClaimOutcome.BROKEN.value, ClaimOutcome.REFUSED.value)


def consistency_lines(
    answers: Sequence[SelfAnswer], unasked: Sequence[str], *, rows: int, made_up: int
) -> Iterator[Line]:
    """Yield a line per question, then the findings by number of rows, and the skipped relations."""
    for answer in answers:
        yield [(f"{answer.question} {answer.answer}", "red" if answer.outcome in _BAD else "")]
    bad = [answer for answer in answers if answer.outcome in _BAD]
    held = sum(answer.outcome == ClaimOutcome.HOLDS.value for answer in answers)
    nodes = dict.fromkeys(f"{answer.op_type} '{answer.node}'" for answer in bad if answer.node)
    places = f", in {', '.join(nodes)}" if nodes else ""
    found = f"the engine contradicts itself{places}" if bad else f"no contradiction in {count(held, 'question')}"
    data = f"{count(rows, 'row')}{f' ({made_up} made up)' if made_up else ''}; " if rows else ""
    yield f"{data}{found}"
    yield from (f"not asked: {reason}" for reason in unasked)
