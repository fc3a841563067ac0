"""The questions behind a baseline, as cells of a batch: each a process of its own, kept by content.

``measure`` runs the target, ``envelope`` evaluates the model as healthy engines do, ``diagnose`` diagnoses. A check
measures; on unchanged results it runs nothing else.
"""

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tensortriage.api import EngineSpec
from tensortriage.sdk import Case, load
from tensortriage_fleet.baseline.baseline_file import SavedVerdict
from tensortriage_fleet.baseline.measure import SHORT
from tensortriage_fleet.baseline.measured import Envelope, MeasuredTarget
from tensortriage_fleet.baseline.request import BaselineRequest
from tensortriage_fleet.baseline.subjects import BaselineSubject
from tensortriage_fleet.batch.batch_file import BatchTarget
from tensortriage_fleet.batch.batch_result import CellEnding
from tensortriage_fleet.batch.cell_runs import CELLS, CellRuns, folder_of
from tensortriage_fleet.batch.cells import Cell, Crossing, needs_of
from tensortriage_fleet.batch.judge_cell import document_of
from tensortriage_fleet.batch.run_cell import CASE, CODE, DOCUMENT
from tensortriage_fleet.cluster.command_pool import CommandPool

MEASURE, ENVELOPE, DIAGNOSE = "measure", "envelope", "diagnose"
PAGE, ARRAYS = "report.html", "outputs.npz"
_ALONE = Crossing(reference=False, tolerance=False, case=False)
INSTALLED = "site-packages"
_DOCUMENTS = ("tensortriage.baseline-", "tensortriage.report/")
_SAID = (0, 1, 4)
"""Exit codes of a command with a result about its model."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question.

    Attributes:
        ending: How its command ended.
        folder: Folder of its files.
        kept: Whether the answer was in the case already.
        home: Folder of the engine's file; None where it has none.
    """

    ending: CellEnding
    folder: Path
    kept: bool
    home: Path | None = None

    @property
    def said(self) -> bool:
        """Whether it has a result about the model."""
        format = str(document_of(self.folder / DOCUMENT).get("format", ""))
        return self.ending.code in _SAID and format.startswith(_DOCUMENTS)

    @property
    def arrays(self) -> Path | None:
        """File of the outputs; None where there are none."""
        return self.folder / ARRAYS if (self.folder / ARRAYS).exists() else None

    @property
    def measured(self) -> MeasuredTarget:
        """The measurement, with the code that the engine had loaded besides its file."""
        found = load(self.folder / DOCUMENT, MeasuredTarget)
        code = {**found.engine.code, **(_loaded(self.folder / CODE, self.home) if self.home else {})}
        return dataclasses.replace(found, engine=dataclasses.replace(found.engine, code=code))

    @property
    def envelope(self) -> Envelope:
        """The results of healthy engines on the model."""
        if self.said:
            return load(self.folder / DOCUMENT, Envelope)
        return Envelope({}, {}, self.ending.summary)

    @property
    def verdict(self) -> SavedVerdict:
        """The diagnosis, or the error that it ended in."""
        document = document_of(self.folder / DOCUMENT).get("verdict", {})
        if not isinstance(document, dict):
            document = {}
        culprits = tuple(f"{each['op_type']} '{each['node']}'" for each in document.get("culprits", ()))
        code = 1 if self.ending.code is None or self.ending.code < 0 else self.ending.code
        return SavedVerdict(self.ending.verdict or "ended", code, self.ending.summary, culprits)

    @property
    def report(self) -> str:
        """The page of the diagnosis, from the case; empty for none."""
        page = self.folder / CASE / PAGE
        return page.relative_to(self.folder.parents[1]).as_posix() if page.exists() else ""


class BaselineQuestions:
    """Runs questions about models on targets; a context manager that holds the case.

    Args:
        request: The command.
        root: The folder that paths go from.
        tell: Receives the number of answered questions, that of all, and the seconds left.
    """

    def __init__(self, request: BaselineRequest, root: Path, tell: Callable[[str], None]) -> None:
        self._request, self._root = request, root
        self._tell = tell
        self._entered = contextlib.ExitStack()
        self.case = self._entered.enter_context(Case(request.case, fresh=request.fresh))
        if request.fresh:
            shutil.rmtree(self.case.folder / CELLS, ignore_errors=True)
        self._runs = CellRuns(
            self.case, root, timeout_seconds=request.timeout_seconds, memory_limit=request.memory_limit
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def ask(self, kind: str, about: Sequence[BaselineSubject]) -> dict[BaselineSubject, Answered]:
        """Put one question about each of given models on targets.

        Args:
            kind: ``measure``, ``envelope`` or ``diagnose``.
            about: The models and targets.
        """
        cells = {_cell(kind, subject): subject for subject in about}
        found: dict[BaselineSubject, Answered] = {}
        for cell, subject in cells.items():
            self._runs.add(cell, subject.path)
            folder = self.case.folder / folder_of(cell)
            ending = self._runs.known(cell)
            if ending is not None and (folder / DOCUMENT).exists():
                found[subject] = Answered(ending, folder, kept=True, home=self._home(subject))
        missing = [cell for cell, subject in cells.items() if subject not in found]
        if missing:
            with CommandPool.open(self._request.cluster, self._request.jobs, {cell.needs for cell in missing}) as pool:
                for cell, ending, left in self._runs.run(missing, pool):
                    folder, home = self.case.folder / folder_of(cell), self._home(cells[cell])
                    found[cells[cell]] = Answered(ending, folder, kept=False, home=home)
                    self._tell(f"{kind}: {len(found)} of {len(cells)}, {left:.0f} s left")
        return found

    def _home(self, subject: BaselineSubject) -> Path | None:
        file = EngineSpec.parse(subject.target).options.get("file", "")
        return (self._root / file).parent if file else None


def _cell(kind: str, subject: BaselineSubject) -> Cell:
    data = ("--inputs", *subject.inputs) if subject.inputs else ()
    target = ("--target", subject.target)
    if kind == DIAGNOSE:
        words: tuple[str, ...] = ("diagnose", subject.path, *target, "--no-repro", *data)
    else:
        words = ("baseline", "measure", subject.path, *target, *data)
        words += ("--envelope",) if kind == ENVELOPE else ()
    crossing = dataclasses.replace(_ALONE, output=ARRAYS if kind == MEASURE else "")
    if kind == DIAGNOSE:
        crossing = Crossing(tolerance=False)
    needs = needs_of(BatchTarget(engine=subject.target))
    return Cell(subject.model, "", subject.target, kind, words, crossing, needs=needs)


def _loaded(log: Path, home: Path) -> dict[str, str]:
    """Return digests of the code that an engine has loaded from its folder, by path from there; no packages."""
    try:
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return {}
    return {
        Path(path).relative_to(home).as_posix(): digest[:SHORT]
        for path, digest in lines
        if home in Path(path).parents and INSTALLED not in Path(path).parts
    }
