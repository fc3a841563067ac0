"""A self-check as text: one line per question, then the findings."""

from collections.abc import Iterator, Sequence

from tensortriage.diagnose.consistency.self_check import ClaimOutcome, SelfAnswer
from tensortriage.values.printable import printable
from tensortriage.values.text import count

_BAD = (ClaimOutcome.BROKEN.value, ClaimOutcome.REFUSED.value)


def answer_lines(answers: Sequence[SelfAnswer]) -> Iterator[tuple[str, bool]]:
    """Yield a line per question, and whether it is bad news."""
    for answer in answers:
        yield f"{answer.question} {printable(answer.answer)}", answer.outcome in _BAD


def closing_line(answers: Sequence[SelfAnswer], unasked: Sequence[str], *, rows: int, made_up: int) -> str:
    """Return what was found, on how many rows, and what was not asked."""
    bad = [answer for answer in answers if answer.outcome in _BAD]
    held = sum(answer.outcome == ClaimOutcome.HOLDS.value for answer in answers)
    nodes = dict.fromkeys(f"{answer.op_type} '{answer.node}'" for answer in bad if answer.node)
    places = f", in {', '.join(map(printable, nodes))}" if nodes else ""
    told = f"the engine contradicts itself{places}" if bad else f"no contradiction in {count(held, 'question')}"
    data = f"{count(rows, 'row')}{f' ({made_up} made up)' if made_up else ''}; " if rows else ""
    left = "".join(f"\nnot asked: {printable(reason)}" for reason in unasked)
    return f"{data}{told}{left}"
