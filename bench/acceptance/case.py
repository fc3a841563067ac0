"""One check: how it is asked, and the right answer, which was written down before it was asked."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

FINE = ("match", "rounding")
Ask = Callable[[Path], Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A question and its right answer.

    Attributes:
        name: Its name; SHA-1 of it decides which half is held out.
        point: The point of the issue whose sentences it is made of.
        ask: Writes its files into an empty folder, and returns the words behind `triage diagnose`.
        verdicts: The verdicts that are right.
        code: The right exit code; None where both 0 and 1 are.
        words: Patterns, all of which the printed answer has; `a|b` for either.
        never: Patterns, none of which the printed answer has.
        culprit: Pattern of the first culprit's node, value or operator.
        same_as_run: Whether `triage run` of the same words ends in failure exactly where `diagnose` does.
        without_vnni: Whether it is asked as on a processor without VNNI.
    """

    name: str
    point: int
    ask: Ask
    verdicts: Sequence[str]
    code: int | None
    words: Sequence[str] = ()
    never: Sequence[str] = ()
    culprit: str = ""
    same_as_run: bool = True
    without_vnni: bool = False


def fine(name: str, point: int, ask: Ask, **rest: object) -> Case:
    """Return the check of something that nothing is wrong with."""
    return Case(name, point, ask, FINE, 0, **rest)  # type: ignore[arg-type] # fields of a case
