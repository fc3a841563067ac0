"""Diagnose a model that does not fit into memory: find the block that is wrong in isolation, then diagnose that block.

Every block is compared on golden inputs first, which costs two runs of it. The block that is furthest beyond the limits
of healthy engines, or nearest to them where none is beyond, is then diagnosed as a model of its own; where that names
no fault, the next one that is beyond. The block's effect on the outputs of the whole model is found by carrying the
target's results on through the later blocks on the reference.
"""

import dataclasses
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.confidence import UNDECIDED
from tensortriage.diagnose.state.record import Listener, Record
from tensortriage.diagnose.state.verdict import Cost, Step, Verdict, VerdictKind
from tensortriage.envelope.limits import AT_SIGHT, judged_by
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.files.data_file import Iteration
from tensortriage.inputs.files.save_data import save_store
from tensortriage.model.model import Model
from tensortriage.report.document import Report
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.blocks.block_walk import BlockWalk, FedBlock
from tensortriage.runs.case import Case
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.lab import Lab
from tensortriage.runs.outcome import OutcomeKind
from tensortriage.runs.tally import Tally
from tensortriage.values.text import error_size
from tensortriage.workflows.common.memory_cuts import CutModel
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.diagnosis.subject import DiagnosisSubject, case_facts
from tensortriage.workflows.requests import DiagnoseRequest

NO_FAULT = (VerdictKind.MATCH, VerdictKind.ROUNDING, VerdictKind.INPUT_SENSITIVE, VerdictKind.INCONCLUSIVE)
"""Verdicts on a block after which the next one is looked into; a later word in the list represents the whole better."""


@frozen_dataclass
class BlockFigure:
    """The result of comparing one block.

    Attributes:
        number: Number of the block, from 1.
        ratio: The largest error of its results, in limits of a healthy engine; infinite when it did not run.
        within: Whether all are within.
        value: The result that is worst.
    """

    number: int
    ratio: float
    within: bool
    value: str


@frozen_dataclass
class BlockDiagnosis:
    """A diagnosis in blocks.

    Attributes:
        request: What is asked of the whole.
        subject: Its model, feeds and engines.
        cut: The model, cut.
        compare: Makes one comparison.
        diagnose: Makes one diagnosis.
        listener: Who hears of steps and progress.
    """

    request: DiagnoseRequest
    subject: DiagnosisSubject
    cut: CutModel
    compare: Callable[[CompareRequest], CompareResult]
    diagnose: Callable[[DiagnoseRequest], Verdict]
    listener: Listener

    def report(self) -> Report:
        """Diagnose the block that is wrong in isolation; the case then holds facts and verdict of the whole."""
        report = Report(self.verdict(), case_facts(self.request, self.subject))
        with Case(self.request.case) as case:
            case.write("case.json", report.case)
            case.write("verdict.json", report.verdict)
        return report

    def verdict(self) -> Verdict:
        """Return the verdict; the case then holds that of the block that decides it."""
        started = time.perf_counter()
        with (
            Case(self._scratch()) as case,
            Lab(case, limits=self.request.limits, progress=self.listener.progress) as lab,
        ):
            tally, record = lab.tally, Record(lab, self.listener)
            walk = BlockWalk(
                self.cut.model, self.subject.feeds, self.cut.blocks, reference=self.subject.engines.reference, lab=lab
            )
            compared = [self._compared(made, lab) for made in walk]
            record.add(self._cut_step(compared, time.perf_counter() - started, tally))
            suspects = sorted((one for one in compared if not one.within), key=lambda one: (-one.ratio, one.number))
            looked_into = suspects or [max(compared, key=lambda one: one.ratio)]
            found: list[tuple[BlockFigure, Verdict]] = []
            for one in looked_into:
                verdict = self._diagnosed(walk, one)
                if verdict.kind not in NO_FAULT:
                    verdict = self._as_far_as_it_reaches(walk, one, verdict, record, tally)
                found.append((one, verdict))
                if verdict.kind not in NO_FAULT:
                    break
            one, verdict = weightiest(found)
            if one is not found[-1][0]:
                self._diagnosed(walk, one)  # remembered answers; the case is to hold the figures of this block
        builds = Counter(tally.builds_by_engine) + Counter(verdict.cost.builds_by_engine)
        cost = Cost(
            round(time.perf_counter() - started, 3),
            builds.total(),
            tally.checks + verdict.cost.checks,
            dict(builds),
        )
        return dataclasses.replace(
            verdict,
            summary=self._summary(verdict, one, suspects),
            steps=(*record.steps[:1], *verdict.steps, *record.steps[1:]),
            cost=cost,
        )

    def _scratch(self) -> Path:
        with Case(self.request.case) as case:  # it says whether the directory may be used, and is one from then on
            if self.request.fresh:
                shutil.rmtree(case.folder / "blocks", ignore_errors=True)
            return case.folder / "blocks" / "walk"

    def _compared(self, made: FedBlock, lab: Lab) -> BlockFigure:
        """Return how far a block is off, remembered unless memory ran out."""
        question, of_all = "how far is the block off?", [self.subject.engines.reference, str(self.request.limits)]
        tally, block = lab.tally, Model.load(made.path)
        kept = lab.derived(BlockFigure, question, self.subject.engines.target, block, *of_all, *made.feeds)
        if (known := kept.known()) is not None:
            return known
        self.listener.progress(f"comparing block {made.number} of {len(self.cut.blocks)}")
        result = self.compare(
            CompareRequest(
                model=made.path,
                reference=self.subject.engines.reference,
                targets=[self.subject.engines.target],
                feeding=FeedRequest(given=made.feeds),
                batch_bytes=self.request.batch_bytes,
                limits=self.request.limits,
                in_blocks=False,
            )
        )
        for engine, builds in result.builds_by_engine.items():
            tally.built(engine, builds=builds)
        tally.checks += result.checks
        rows = [row for item in result.comparisons for row in item.comparison.rows]
        if rows and all(outcome.ok for outcome in result.outcomes.values()):
            worst = max(rows, key=lambda row: (not row.judgement.within, row.judgement.ratio))
            within = all(row.judgement.within for row in rows)
            found = BlockFigure(made.number, worst.judgement.ratio, within, worst.value)
        else:
            found = BlockFigure(made.number, float("inf"), False, "")
        if all(outcome.kind is not OutcomeKind.OUT_OF_MEMORY for outcome in result.outcomes.values()):
            kept.keep(found)
        return found

    def _cut_step(self, compared: Sequence[BlockFigure], seconds: float, tally: Tally) -> Step:
        beyond = [one for one in compared if not one.within]
        words = ", ".join(str(one.number) for one in beyond)
        found = f"beyond the limits of healthy engines: block {words}" if beyond else "every block is within its limits"
        return Step(
            "which block is wrong in isolation?",
            f"{found}; {self.cut.cuts.in_words()}",
            {"blocks": [dataclasses.asdict(one) for one in compared], "cuts": dataclasses.asdict(self.cut.cuts)},
            seconds=round(seconds, 3),
            checks=tally.checks,
        )

    def _diagnosed(self, walk: BlockWalk, one: BlockFigure) -> Verdict:
        """Diagnose a block; its model and inputs stay in the case, for the commands that the verdict suggests."""
        folder = self.request.case / "blocks" / str(one.number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        made = walk.make(one.number, folder / "block.onnx")
        save_store(folder / "inputs", [("", (Iteration(feed.tensors) for feed in made.feeds))])
        self.listener.progress(f"diagnosing block {one.number} of {len(self.cut.blocks)}")
        block = dataclasses.replace(
            self.request,
            model=made.path,
            feeding=FeedRequest(given=made.feeds, paths=(str(folder / "inputs"),)),
            external_data_dir=None,
            random_too=False,
            in_blocks=False,
        )
        return self.diagnose(block)

    def _as_far_as_it_reaches(
        self, walk: BlockWalk, one: BlockFigure, verdict: Verdict, record: Record, tally: Tally
    ) -> Verdict:
        """Return the verdict if the model's outputs show the block's fault, else an unknown effect."""
        started, checks = time.perf_counter(), tally.checks
        try:
            ends = walk.carried(one.number, self.subject.engines.target)
        except EngineError as error:
            answer, shown, errors = f"unknown: {error.message}", True, {}  # no results are an answer of their own
        else:
            figures = {name: measure(golden, target) for name, (golden, target) in ends.items()}
            errors = {name: figure.relative_rms_error for name, figure in figures.items()}
            shown = any(not judged_by(AT_SIGHT, figure).within for figure in figures.values())
            words = (
                ", ".join(f"'{name}' is off by {error_size(error)}" for name, error in errors.items())
                or "no output is behind it"
            )
            answer = f"{'yes' if shown else 'no'}: with block {one.number} alone on the target, {words}"
        question = f"does the fault in block {one.number} reach the model's outputs?"
        seconds = round(time.perf_counter() - started, 3)
        record.add(Step(question, answer, {"errors": errors}, seconds=seconds, checks=tally.checks - checks))
        if shown:
            return verdict
        return dataclasses.replace(
            verdict,
            verdict=VerdictKind.INCONCLUSIVE.value,
            confidence=UNDECIDED.on(verdict.inputs),
            summary=f"{verdict.summary}; the model's outputs do not show it on this feed",
        )

    def _summary(self, verdict: Verdict, one: BlockFigure, suspects: Sequence[BlockFigure]) -> str:
        count = len(self.cut.blocks)
        if not suspects:
            return f"all {count} blocks are within their limits; of the nearest, block {one.number}: {verdict.summary}"
        return f"in block {one.number} of {count}, run in isolation: {verdict.summary}"


def weightiest(found: Sequence[tuple[BlockFigure, Verdict]]) -> tuple[BlockFigure, Verdict]:
    """Return the block and verdict that represent the whole: a fault, else an unknown, else the most explained.

    A block that could not be explained is not outweighed by another that could.
    """
    return max(found, key=lambda one: NO_FAULT.index(one[1].kind) if one[1].kind in NO_FAULT else len(NO_FAULT))
