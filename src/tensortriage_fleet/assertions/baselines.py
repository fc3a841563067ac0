"""The fixture ``triage``: a model on an engine, saved as a baseline or checked against one, as the options require."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensortriage.envelope.sdk import Iteration, Kind, feeds, save
from tensortriage_fleet.assertions.checks import assert_close, assert_same, assert_sound
from tensortriage_fleet.baseline.baseline_file import BaselineFolder
from tensortriage_fleet.baseline.request import FAIL, FOLDER, BaselineRequest, MeasureRequest
from tensortriage_fleet.baseline.result import BaselineEntry, EntryOutcome
from tensortriage_fleet.baseline.study import CHECK, UPDATE, run_baselines

FINE = (EntryOutcome.SAME, EntryOutcome.SAVED)
DATA = "inputs.store"


class Triage:
    """The questions of a test about models, compared with baselines.

    Args:
        root: pytest's root folder, which baselines lie in.
        cases: Folder for answers and reports.
        test: The test's id.
        save: Name of the baselines to save; None for none.
        compare: Name of those to compare with; None for none. Empty names those of ``triage baseline``.
        fail: The kinds of change that fail the test.
    """

    sound = staticmethod(assert_sound)
    close = staticmethod(assert_close)
    same = staticmethod(assert_same)

    def __init__(
        self, root: Path, cases: Path, test: str, *, save: str | None, compare: str | None, fail: tuple[str, ...] = FAIL
    ) -> None:
        self._root, self._cases, self._test = root, cases, test
        self._save, self._compare, self._fail = save, compare, fail

    def check(self, model: object, target: str, *, inputs: object = None, name: str = "") -> None:
        """Save the results of a model on an engine, with ``--triage-save``, or assert that they are unchanged.

        With neither option the verdict of a diagnosis is asserted, as by `assert_sound`.

        Args:
            model: As `tensortriage.diagnose` takes it.
            target: The engine.
            inputs: The model's inputs; made up without any.
            name: Name of the baseline; by default the model's path from pytest's root folder, or the test's name where
                the model lies elsewhere, or its inputs are arrays.

        Raises:
            AssertionError: When something is another than it was, or there is no baseline.
        """
        __tracebackhide__ = True
        if self._save is None and self._compare is None:
            assert_sound(model, target, inputs=inputs)
            return
        measurement = MeasureRequest(model=model, target=target, feeding=inputs)  # type: ignore[arg-type] # it makes them so
        arrays = not measurement.feeding.paths and not measurement.feeding.chooses
        if not name and (arrays or not measurement.model.resolve().is_relative_to(self._root.resolve())):
            name = f"tests/{_plain(self._test)}"  # only this test knows it
        case = self._cases / _plain(f"{self._test} {name or measurement.model.name} {target} baseline")
        for option, command in ((self._save, UPDATE), (self._compare, CHECK)):
            if option is None:
                continue
            request = BaselineRequest(
                paths=(measurement.model,),
                targets=(target,),
                inputs=self._files(measurement, case.with_name(case.name + "-data")),
                folder=self._root / (str(FOLDER) + (f"-{option}" if option else "")),
                fail=self._fail,
                case=case,
                name=name,
                alone=True,
            )
            result = run_baselines(command, request, accept=True)
            (entry,) = result.entries
            if entry.outcome not in FINE:
                raise AssertionError("\n".join(_told(entry, case, request)))

    @staticmethod
    def _files(asked: MeasureRequest, folder: Path) -> tuple[str, ...]:
        """Return the files of the data, written where they are arrays; none for data that are made up."""
        if asked.feeding.paths or asked.feeding.chooses:
            return tuple(asked.feeding.paths)
        from tensortriage.api import Model

        folder.mkdir(parents=True, exist_ok=True)
        iterations = [Iteration(feed.tensors) for feed in feeds(asked.feeding, Model.of_file(asked.model))]
        save(folder / DATA, [("", iterations)], kind=Kind.INPUTS)
        return (str(folder / DATA),)


def triage_for(request: Any, cases: Path, options: Any) -> Triage:
    """Return the fixture of a test, by pytest's options."""
    fail = tuple(options.triage_fail.replace(",", " ").split()) if options.triage_fail else FAIL
    node: str = request.node.nodeid
    return Triage(
        Path(request.config.rootpath), cases, node, save=options.triage_save, compare=options.triage_compare, fail=fail
    )


def _told(entry: BaselineEntry, case: Path, request: BaselineRequest) -> Iterator[str]:
    first, *rest = [f"{each.what}: {each.sentence}" for each in entry.changes] or [entry.reason or "no baseline"]
    yield f"{entry.model} on {entry.target}: {first}"
    yield from (f"  {line}" for line in rest)
    if entry.verdict is not None:
        yield f"  verdict: {entry.verdict.verdict}: {entry.verdict.sentence}"
        yield from (f"  culprit: {culprit}" for culprit in entry.verdict.culprits[:1])
    for change in entry.changes:
        if change.limit is not None:
            yield f"  limit of '{change.output}': {change.limit:.3g}"
    if entry.report:
        yield f"  report: {(case / entry.report).absolute()}"
    saved = BaselineFolder(request.folder).file(entry.model)
    yield f"  baseline: {saved}" if saved.exists() else f"  baseline: none at {saved}; save it with --triage-save"


def _plain(text: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", text)[-120:].strip("-")
