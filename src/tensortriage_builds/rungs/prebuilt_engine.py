"""Is the given file at fault, or the engine's own build of the model?

A file that an engine made before and that shows its outputs only cannot be looked into. The engine's build of the model
now can: if its results are the file's, the ladder continues with it; if not, the file holds something else.

A file that holds integers is first run before their rounding, where the engine can: rounding otherwise hides its
differences from the model. Beyond the cost of the wider format it is another network, and the ladder continues with
that run.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.sdk import (
    GIVEN_FILE,
    QUANTIZATION_COSTS,
    Answer,
    Conclusion,
    EngineError,
    Evidence,
    FeedResult,
    Findings,
    Investigation,
    Unsound,
    VerdictKind,
    beyond_fp32,
    deployed,
    error_of,
    error_size,
    is_suspect_ratio,
    judge,
    measure,
    output_floors,
    over_floor,
    rung,
    triage_command,
)
from tensortriage.engines.sdk import FILE, RunsFiles, TranslatesFiles, UnroundsFiles
from tensortriage.envelope.sdk import ratio_of, resolve

QUESTION = "is the given file at fault, or the engine's own build?"

UNROUNDED = "does the file hold the model, rounding to integers aside?"


@rung(
    UNROUNDED,
    reads=("results",),
    gives=("results",),
    cost="a build and a run",
    after="are the outputs in the right order?",
)
def unrounded_file(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Run a file of integers in the format that it was made from, and look into that where rounding is no excuse."""
    target, engine = inv.question.target, resolve(inv.question.target).engine
    options = engine.unrounded(target.options) if isinstance(engine, UnroundsFiles) else None
    if options is None:
        return None
    spec = target.with_options(options)
    asking = inv.about(dataclasses.replace(inv.question, target=spec))
    try:
        floors = output_floors(asking)
        results = tuple(judge(asking, each.feed, deployed(asking, each.feed), floors) for each in evidence.results)
    except (EngineError, Unsound) as problem:
        inv.record.answered(UNROUNDED, f"unknown: {problem}")
        return None
    rows = [
        (ratio_of(error, floors.target.get(name)) or 0.0, error, name)
        for result in results
        for name, error in result.errors.items()
    ]
    ratio, error, name = max(rows)
    words = f"output '{name}' of {spec} is off by {error_size(error)}, {over_floor(ratio)}"
    if not is_suspect_ratio(ratio):
        inv.record.answered(UNROUNDED, f"yes: {words}", relative_error=error)
        return None
    inv.record.answered(UNROUNDED, f"no: {words}; that is investigated instead", output=name, relative_error=error)
    return Answer(findings=Findings(results=results), question=asking.question)


@rung(
    QUESTION,
    reads=("results", "unrounded_match"),
    gives=("results",),
    cost="a build and a run",
    ends=(VerdictKind.MODEL_CHANGED, VerdictKind.ROUNDING),
    after=UNROUNDED,
)
def prebuilt_engine(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Build the model in place of a file that shows nothing but its outputs, and hold the two together."""
    target, engine = inv.question.target, resolve(inv.question.target).engine
    options = engine.building(target.options) if isinstance(engine, RunsFiles) else None
    if options is None:
        return None
    spec = target.with_options(options)
    asking = inv.about(dataclasses.replace(inv.question, target=spec))
    try:
        built, given = (inv.lab.outputs(each, inv.model, evidence.feed) for each in (spec, target))
        results = tuple(judge(asking, each.feed, deployed(asking, each.feed), each.floors) for each in evidence.results)
    except (EngineError, Unsound) as problem:
        inv.record.answered(QUESTION, f"unknown: {problem}")
        return None
    name, error, ratio = _farthest(evidence.worst_feed, built, given)
    left = max(results, key=lambda each: (not each.passes, each.worst_output()[2]))
    known = evidence.unrounded_match.outputs.get(name) if evidence.unrounded_match is not None else None
    if known is not None and left.passes and error <= known.allowed.error:
        words = (
            f"other roundings to its integers: output '{name}' differs by {error_size(error)} from what {spec} builds"
        )
        inv.record.answered(QUESTION, f"the file: {words}", output=name, relative_error=error)
        return Conclusion(
            VerdictKind.ROUNDING,
            QUANTIZATION_COSTS,
            f"quantization explains the error: {target} makes {words}, which {_standing_of(left)}; all its "
            f"rounding costs {error_size(known.own_error)}",
        )
    if not beyond_fp32(ratio) or (isinstance(engine, TranslatesFiles) and not left.passes):
        inv.record.answered(
            QUESTION, f"what {spec} builds gives the same, within {error_size(error)}: that is investigated instead"
        )
        return Answer(findings=Findings(results=results), question=asking.question)
    found = _standing_of(left)
    inv.record.answered(
        QUESTION,
        f"the file: output '{name}' differs by {error_size(error)} from what {spec} builds, which {found}",
        output=name,
        relative_error=error,
    )
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        GIVEN_FILE,
        f"{target.options[FILE]} differs from what {spec} builds from the model: output '{name}' by "
        f"{error_size(error)}, and the build made here {found}",
        next=[
            triage_command(inv.question, "run", "--reference", str(spec), "--target", str(target)),
            triage_command(inv.question, "diagnose", "--target", str(spec)),
        ],
    )


def _standing_of(built: FeedResult) -> str:
    """Return the error of the build against the reference, as a clause."""
    if built.passes:
        return "agrees with the reference"
    return f"is off from the reference by {error_size(built.worst_output()[1])}"


def _farthest(
    result: FeedResult, built: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
) -> tuple[str, float, float]:
    """Return the output that differs most between build and file, the difference, and its ratio to the floor."""
    rows = []
    for name in result.metrics:
        error = error_of(measure(built[name], given[name]))
        floor = result.floors.target.get(name) or result.floors.fp32.get(name)
        rows.append((name, error, ratio_of(error, floor) or 0.0))
    return max(rows, key=lambda row: (row[2], row[1]))
