"""Saves, checks and updates baselines.

Every model is measured on every target. Where something has changed, and only there, a diagnosis decides whether that
is healthy, and at which op it begins.
"""

import dataclasses
import datetime
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from tensortriage.sdk import UsageError, versions
from tensortriage_fleet.baseline.baseline_file import Baseline, BaselineFolder, SavedOutput, SavedTarget, SavedVerdict
from tensortriage_fleet.baseline.changes import (
    Change,
    acquitted,
    changed_outputs,
    changed_premises,
    changed_verdict,
)
from tensortriage_fleet.baseline.figures import KeptTensor, distance
from tensortriage_fleet.baseline.measured import Allowed, BaselineData, Envelope, MeasuredTarget
from tensortriage_fleet.baseline.questions import DIAGNOSE, ENVELOPE, MEASURE, Answered, BaselineQuestions
from tensortriage_fleet.baseline.request import BaselineRequest
from tensortriage_fleet.baseline.result import BaselineEntry, BaselineResult, EntryOutcome
from tensortriage_fleet.baseline.subjects import BaselineSubject, subjects

RESULT = "baseline.json"
SAVE, CHECK, UPDATE = "save", "check", "update"
PREMISES = ("model", "data")
"""The sources of outputs: if one changed, outputs may change as well."""
UNJUDGED_CODE = 4
DIGITS = 4
"""Significant digits of an error that is kept."""


def run_baselines(
    command: str,
    request: BaselineRequest,
    *,
    accept: bool = False,
    observe: Callable[[BaselineEntry], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> BaselineResult:
    """Save, check or update baselines, and write the result into the case.

    Args:
        command: ``save``, ``check`` or ``update``.
        request: Models, targets, and where their baselines are.
        accept: Whether an update is written.
        observe: Receives every model on every target.
        tell: Receives progress lines.

    Raises:
        TriageError: For bad input.
    """
    started = time.monotonic()
    folder = BaselineFolder(request.folder)
    about = subjects(request, folder, saving=command == SAVE)
    with BaselineQuestions(request, folder.root, tell) as questions:
        study = _Study(command, request, folder, questions)
        entries = tuple(study.entries(about, accept=accept))
        for entry in entries:
            observe(entry)
        ended = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        seconds = time.monotonic() - started
        result = BaselineResult(command, str(request.folder), entries, seconds, ended, versions())
        questions.case.write(RESULT, result)
    return result


class _Study:
    """One command.

    Args:
        command: ``save``, ``check`` or ``update``.
        request: Its request.
        folder: The baselines.
        questions: Runs models and engines.
    """

    def __init__(
        self, command: str, request: BaselineRequest, folder: BaselineFolder, questions: BaselineQuestions
    ) -> None:
        self._command, self._request, self._folder = command, request, folder
        self._questions = questions
        self._measured: Mapping[BaselineSubject, Answered] = {}
        self._diagnosed: Mapping[BaselineSubject, Answered] = {}
        self._changes: dict[BaselineSubject, tuple[Change, ...]] = {}

    def entries(self, about: Sequence[BaselineSubject], *, accept: bool) -> Iterator[BaselineEntry]:
        """Yield the outcomes of models on targets, after all files are written."""
        there = [subject for subject in about if (self._folder.root / subject.path).exists()]
        self._measured = self._questions.ask(MEASURE, there)
        answered = [subject for subject in there if self._measured[subject].said]
        self._changes = {subject: tuple(_changes(subject, self._measured[subject].measured)) for subject in answered}
        self._diagnosed = self._questions.ask(DIAGNOSE, [subject for subject in answered if self._doubted(subject)])
        found = {subject: self._entry(subject) if subject in there else _gone(subject) for subject in about}
        wanted = [EntryOutcome.NEW] if self._command == SAVE else [*EntryOutcome] if self._command == UPDATE else []
        if self._command == SAVE or accept:
            found |= self._write({s: entry for s, entry in found.items() if entry.outcome in wanted})
        yield from found.values()

    def _doubted(self, subject: BaselineSubject) -> bool:
        """Whether a model on a target needs a new diagnosis."""
        if subject.is_new:
            return self._command != CHECK
        return any(change.what in ("output", *PREMISES) for change in self._changes[subject])

    def _entry(self, subject: BaselineSubject) -> BaselineEntry:
        answers = [each[subject] for each in (self._measured, self._diagnosed) if subject in each]
        kept = all(answered.kept for answered in answers)
        report, verdict = answers[-1].report, answers[-1].verdict if len(answers) > 1 else None
        unsaid = next((answered for answered in answers if not answered.said), None)
        if unsaid is not None:
            outcome, ending = EntryOutcome.NOT_CHECKED, unsaid.ending
            return BaselineEntry(subject.model, subject.target, outcome, (), None, ending.summary, ending.code, report)
        changes, reason = self._changes[subject], ""
        outcome = EntryOutcome.NEW
        if subject.is_new:
            reason = "no baseline"
            if self._command == CHECK and "missing" not in self._request.fail:
                outcome = EntryOutcome.SAME
        else:
            changes, reason = _judged(subject, changes, verdict)
            failing = any(change.what in self._request.fail for change in changes)
            outcome = EntryOutcome.CHANGED if failing else EntryOutcome.UNJUDGED if reason else EntryOutcome.SAME
        return BaselineEntry(subject.model, subject.target, outcome, changes, verdict, reason, report=report, kept=kept)

    def _write(self, entries: Mapping[BaselineSubject, BaselineEntry]) -> dict[BaselineSubject, BaselineEntry]:
        """Write new and changed results into the files of their models; return the written entries."""
        found = {}
        wanted = [s for s, entry in entries.items() if entry.outcome is not EntryOutcome.NOT_CHECKED]
        gone = [s for s in wanted if entries[s].outcome is EntryOutcome.GONE]
        written = [s for s in wanted if s not in gone and (s.is_new or entries[s].changes)]
        undiagnosed = [s for s in written if s not in self._diagnosed]
        diagnosed = {**self._diagnosed, **self._questions.ask(DIAGNOSE, undiagnosed)}
        envelopes = self._questions.ask(ENVELOPE, written)
        with self._folder.locked():
            for subject in written:
                self._put(subject, diagnosed[subject].verdict, envelopes[subject].envelope)
                found[subject] = _with_outcome(entries[subject], EntryOutcome.SAVED, diagnosed[subject].verdict)
            for subject in gone:
                self._folder.file(subject.model).unlink(missing_ok=True)
                self._folder.arrays(subject.model, subject.key).unlink(missing_ok=True)
                found[subject] = _with_outcome(entries[subject], EntryOutcome.REMOVED, None)
        return found

    def _put(self, subject: BaselineSubject, verdict: SavedVerdict, envelope: Envelope) -> None:
        now = self._measured[subject].measured
        outputs = {
            feed: {name: _saved(envelope, feed, name, figures) for name, figures in found.items()}
            for feed, found in now.outputs.items()
        }
        target = SavedTarget(now.engine, now.versions, verdict, outputs, now.problem, envelope.problem)
        saved = self._folder.read(subject.model)
        data = BaselineData(subject.inputs, now.data.feeds)
        same = saved is not None and (saved.model.sha256, saved.data.feeds) == (now.model.sha256, now.data.feeds)
        others = {key: kept for key, kept in saved.targets.items() if key != subject.key} if saved else {}
        if others and not same and self._request.alone:
            others = {}
        elif others and not same and not self._renewed(subject, others):
            raise UsageError(
                f"{subject.model} or its data changed, and its baselines on {', '.join(others)} are of the old version",
                slug="baseline-targets",
                cure="update it on all of its targets: leave --targets out",
            )
        golden = {**(saved.golden if saved and same else {}), **envelope.golden}
        facts = dataclasses.replace(now.model, path="" if self._request.name else subject.path)
        arrays, kept = self._measured[subject].arrays, self._folder.arrays(subject.model, subject.key)
        if arrays is not None and (self._request.arrays or kept.exists()):
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(arrays, kept)
        self._folder.write(subject.model, Baseline(facts, data, golden, {**others, subject.key: target}))

    def _renewed(self, subject: BaselineSubject, others: Mapping[str, object]) -> bool:
        """Whether a model's other baselines are written by this command as well."""
        about = {other.key for other in self._measured if other.model == subject.model}
        return about >= others.keys()


def _changes(subject: BaselineSubject, now: MeasuredTarget) -> Iterator[Change]:
    if subject.saved is None or subject.is_new:
        return
    target = subject.saved.targets[subject.key]
    premises = list(changed_premises(subject.saved, target, now))
    yield from premises
    if not any(change.what == "data" for change in premises):  # of other data outputs are other ones
        yield from changed_outputs(subject.saved, target, now)


def _judged(
    subject: BaselineSubject, changes: Sequence[Change], verdict: SavedVerdict | None
) -> tuple[tuple[Change, ...], str]:
    """Return the changes that stay after a diagnosis, and why they cannot be judged; empty if they can."""
    if subject.saved is None or verdict is None:
        return tuple(changes), ""
    before = subject.saved.targets[subject.key].verdict
    another = changed_verdict(before, verdict)
    premises = [change for change in changes if change.what != "output"]
    if another is not None:
        return (*changes, another), ""
    if any(change.what in PREMISES for change in premises):
        return tuple(changes), ""
    if acquitted(verdict):
        return tuple(premises), ""
    if verdict.exit_code == UNJUDGED_CODE:
        return tuple(premises), verdict.sentence
    return tuple(changes), ""


def _gone(subject: BaselineSubject) -> BaselineEntry:
    return BaselineEntry(subject.model, subject.target, EntryOutcome.GONE, reason="the model is not there any more")


def _with_outcome(entry: BaselineEntry, outcome: EntryOutcome, verdict: SavedVerdict | None) -> BaselineEntry:
    return dataclasses.replace(entry, outcome=outcome, verdict=verdict, reason="")


def _saved(envelope: Envelope, feed: str, name: str, figures: KeptTensor) -> SavedOutput:
    right = envelope.golden.get(feed, {}).get(name)
    allowed = envelope.allowed.get(feed, {}).get(name, Allowed(None, None, ""))
    error = None if right is None else float(f"{distance(right, figures).error:.{DIGITS}g}")
    return SavedOutput(figures, error, allowed.limit, allowed.freedoms, allowed.basis)
