"""Debug build: build a model again and again, sort the builds, name the choice that makes them bad, pin a good one."""

import contextlib
import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from typing import Protocol

from tensortriage.api import Model
from tensortriage.diagnose.sdk import Investigation, Question
from tensortriage.envelope.sdk import feeds_that_run, require_numbers
from tensortriage.sdk import (
    Case,
    Checker,
    CheckIdentity,
    Choice,
    EngineSpec,
    Listener,
    Progress,
    Silent,
    TacticRecord,
    UsageError,
    check_names,
    check_output,
    digest,
    load_record,
    output_judge,
    save_record,
    usable,
)
from tensortriage_builds.build_maker import (
    BuildFiles,
    BuildJudge,
    CommandJudge,
    EngineBench,
    NumbersJudge,
    check_ability,
)
from tensortriage_builds.request import BuildRequest
from tensortriage_builds.study import Studying
from tensortriage_builds.study_result import BuildStudy
from tensortriage_builds.trial import BuildTrial


class BuildListener(Listener, Protocol):
    """A receiver of a study's progress."""

    def built(self, trial: BuildTrial, trials: Sequence[BuildTrial]) -> None:
        """A build that chose freely was judged."""

    def searched(self, progress: Progress[str]) -> None:
        """A build with given tactics was judged."""

    def tell(self, text: str) -> None:
        """Something to be shown as it is."""


def study_builds(request: BuildRequest, *, listener: BuildListener | None = None) -> BuildStudy:
    """Study the builds of a model; ``builds.json`` of the case holds the result.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here.
    """
    listener = listener or Silent()
    target = usable(request.target, limits=request.limits, anew=True)
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    check_output(request.output, *model.files)
    check_ability(target, takes_tactics=request.load_tactics is not None, saves=request.output is not None)
    if request.tolerance is not None:
        check_names([request.tolerance], [spec.name for spec in model.outputs])
    if request.check is not None and request.artifact.exists():
        raise UsageError(
            f"{request.artifact} exists and would be overwritten",
            slug="iter-artifact-exists",
            cure="remove it, or give --iter-artifact another name",
        )
    base = load_record(request.load_tactics).choices if request.load_tactics else ()
    with (
        Case(request.case, fresh=request.fresh) as case,
        _judging(request, target, model, case, listener) as (inv, judge),
    ):
        bench = EngineBench(
            inv.golden,
            target,
            judge,
            base=base,
            files=BuildFiles(request.artifact if request.check is not None else None, request.save_tactics),
            record=request.record,
        )
        studying = Studying(
            bench=bench,
            goal=request.goal,
            engine=str(target),
            cache=case.checks,
            built=listener.built,
            searched=listener.searched,
        )
        study = _written(request, case, studying.study())
        case.write("builds.json", study)
    return study


@contextlib.contextmanager
def _judging(
    request: BuildRequest, target: EngineSpec, model: Model, case: Case, listener: BuildListener
) -> Iterator[tuple[Investigation, BuildJudge]]:
    """Give the investigation and the judge."""
    reference = EngineSpec.parse(request.reference)
    samples = () if request.check is not None else feeds_that_run(request.feeding, model)
    question = Question(
        model=model,
        feeds=samples,
        reference=reference,
        target=target,
        tolerance=request.tolerance,
        limits=request.limits,
    )
    inv = Investigation.begin(question, case, listener=listener)
    with contextlib.ExitStack() as stack:
        stack.callback(inv.lab.close)
        if request.check is not None:
            checker = stack.enter_context(contextlib.closing(Checker(request.check, tell=listener.tell)))
            if not request.keep_artifact:
                stack.callback(request.artifact.unlink, missing_ok=True)
            written = [path for path in (request.artifact, request.save_tactics) if path is not None]
            reads = CheckIdentity(request.check.identity(), request.check.words, case.checks, written=written)
            yield inv, CommandJudge(checker, reads)
            return
        usable(request.reference, limits=request.limits)
        golden = [(feed.name, inv.golden.outputs(feed)) for feed in samples]
        outputs = [spec.name for spec in model.outputs]
        require_numbers((feed, {name: found[name] for name in outputs if name in found}) for feed, found in golden)
        inputs = [inv.lab.key(reference, model, feed) for feed in samples]
        identity = digest(inputs, repr(request.tolerance))
        yield inv, NumbersJudge(inv.golden, output_judge(inv, samples[0]), samples, identity)


def _written(request: BuildRequest, case: Case, study: BuildStudy) -> BuildStudy:
    """Write what a good build can be made again from, and return the study with the names of all files."""
    good = next((trial for trial in study.trials if trial.good), None)
    again = study.pinned
    repeatable = again is not None and again.trial.good and again.same_outputs is not False
    trial = again.trial if again is not None and repeatable else good  # else the engine file is all that is the same
    files = ["builds.json"]
    if trial is None:
        return dataclasses.replace(study, files=tuple(files))
    choices: tuple[Choice, ...] = trial.choices
    if choices:
        save_record(TacticRecord(study.engine, choices), case.folder / "pinned.tactics.json")
        files.append("pinned.tactics.json")
        if request.save_tactics is not None:
            save_record(TacticRecord(study.engine, choices), request.save_tactics)
    cache = trial.files.get("timing.cache")
    if cache:
        shutil.copyfile(case.folder / cache, case.folder / "pinned.timing.cache")
        files.append("pinned.timing.cache")
    engine = trial.files.get("engine")
    if engine and request.output is not None and (case.folder / engine).exists():
        shutil.copyfile(case.folder / engine, request.output)
    return dataclasses.replace(study, files=tuple(files))
