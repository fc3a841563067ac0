"""Baselines as lines for people: each model on each target, and a summary."""

import shlex
from collections.abc import Iterator, Mapping

from tensortriage.sdk import count, duration, printable
from tensortriage_fleet.baseline.request import FOLDER
from tensortriage_fleet.baseline.result import BaselineEntry, BaselineResult, EntryOutcome

WORDS: Mapping[EntryOutcome, str] = {
    EntryOutcome.SAME: "ok",
    EntryOutcome.CHANGED: "CHANGED",
    EntryOutcome.NEW: "NEW",
    EntryOutcome.GONE: "GONE",
    EntryOutcome.SAVED: "saved",
    EntryOutcome.REMOVED: "removed",
    EntryOutcome.UNJUDGED: "unjudged",
    EntryOutcome.NOT_CHECKED: "not run",
}
CURES: Mapping[EntryOutcome, str] = {
    EntryOutcome.CHANGED: "accept with: triage baseline update{} --yes",
    EntryOutcome.NEW: "triage baseline save{} FOLDER_OR_FILES --targets ENGINE",
    EntryOutcome.GONE: "remove its baseline with: triage baseline update{} --yes",
}


def entry_lines(entry: BaselineEntry, case: str) -> Iterator[str]:
    """Yield the lines of a model on a target.

    Args:
        entry: Its result.
        case: The case, for the path of its report.
    """
    words = entry.reason
    if entry.outcome is EntryOutcome.SAVED and entry.verdict is not None:
        words = entry.verdict.verdict + (f" at {entry.verdict.culprits[0]}" if entry.verdict.culprits else "")
    elif not words and not entry.changes:
        words = "as it was"
    wide = len(entry.changes) > 1 or entry.outcome in (EntryOutcome.CHANGED, EntryOutcome.SAVED)
    if entry.changes and not wide:
        words = "; ".join(filter(None, (words, *(f"{each.what}: {each.sentence}" for each in entry.changes))))
    words += ", on made-up data" if entry.made_up and entry.outcome is EntryOutcome.SAVED else ""
    yield printable(f"{WORDS[entry.outcome]:<8} {entry.model} on {entry.target}: {words}".removesuffix(": "))
    for change in entry.changes if wide else ():
        yield printable(f"           {change.what}: {change.sentence}")
    if entry.outcome is EntryOutcome.CHANGED and entry.report:
        yield printable(f"           report: {case}/{entry.report}")


def closing_lines(result: BaselineResult) -> Iterator[str]:
    """Yield the summary and the next steps."""
    counts = ", ".join(
        f"{result.count_of(outcome)} {word}" for outcome, word in WORDS.items() if result.count_of(outcome)
    )
    kept = sum(entry.kept for entry in result.entries)
    models = len({entry.model for entry in result.entries})
    folder = "" if result.folder == str(FOLDER) else f" --baseline {shlex.quote(result.folder)}"
    known = f", {kept} known from earlier" if kept else ""
    targets = count(len({entry.target for entry in result.entries}), "target")
    yield f"{count(models, 'model')}, {targets}: {counts}; {duration(result.seconds)}{known}"
    for outcome, cure in CURES.items():
        if result.count_of(outcome):
            yield f"  {WORDS[outcome]}: {cure.format(folder)}"
