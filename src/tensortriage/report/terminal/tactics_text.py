"""Recorded tactics as text: one line per layer, and the tactics of bad builds that good builds lack."""

from collections.abc import Iterator

from tensortriage.builds.study_result import SuspectChoice, TacticDiff
from tensortriage.report.terminal.model_text import table
from tensortriage.runs.tactics import TacticRecord
from tensortriage.values.printable import printable
from tensortriage.values.text import count

MOST_SHOWN = 30


def record_lines(record: TacticRecord) -> Iterator[str]:
    """Yield the lines of one record."""
    rows = [
        (
            printable(choice.layer),
            printable(choice.implementation) or "-",
            printable(choice.tactic),
            "-" if choice.milliseconds is None else f"{choice.milliseconds:.4f}",
            " ".join(map(printable, choice.inputs)) or "-",
            " ".join(map(printable, choice.outputs)) or "-",
        )
        for choice in record.choices
    ]
    if rows:
        yield from table([("layer", "implementation", "tactic", "ms", "inputs", "outputs"), *rows], indent="")
    yield f"{printable(record.engine)}: {count(len(record.choices), 'choice')}"


def diff_lines(diff: TacticDiff) -> Iterator[str]:
    """Yield the lines of a comparison of good and bad builds."""
    yield f"{count(len(diff.good), 'good build')}, {count(len(diff.bad), 'bad build')}"
    if not diff.suspects:
        yield "no choice is more frequent in bad builds than in good ones"
        return
    yield f"choices that no good build made: {len(diff.only_bad) or 'none'}"
    telling = [one for one in diff.suspects if one.factor > 1.0]
    rows = [_row(one) for one in telling[:MOST_SHOWN]]
    head = ("", "layer", "choice", "bad/good with", "bad/good without", "factor", "chance")
    yield from table([head, *rows], indent="")
    if len(telling) > MOST_SHOWN:
        yield f"... and {len(telling) - MOST_SHOWN} more"
    yield "! no good build made this choice; chance: of being the cause, if at most one choice is"


def _row(one: SuspectChoice) -> tuple[str, ...]:
    return (
        "" if one.good_with else "!",
        printable(one.layer),
        printable(one.choice),
        f"{one.bad_with}/{one.good_with}",
        f"{one.bad_without}/{one.good_without}",
        f"{one.factor:.3g}",
        f"{one.probability:.0%}",
    )
