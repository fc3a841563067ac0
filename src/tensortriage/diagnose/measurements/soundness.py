"""Is the comparison sound? A verdict about an engine is worthless when the reference or the pairing is broken.

The questions are asked before anybody is blamed: does the reference run, are its outputs numbers, do they vary at all,
and does the target answer with the same outputs, shapes and element types.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.reference_checks import has_nan
from tensortriage.diagnose.measurements.own_nan import nan_of_reference
from tensortriage.diagnose.state.confidence import OBSERVED, SILENT_REFERENCE
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.outcome import Outcome, OutcomeKind

FAILURES = {
    OutcomeKind.BUILD_FAILED: VerdictKind.BUILD_FAILED,
    OutcomeKind.RUN_FAILED: VerdictKind.ENGINE_CRASH,
    OutcomeKind.CRASH: VerdictKind.ENGINE_CRASH,
    OutcomeKind.OUT_OF_MEMORY: VerdictKind.ENGINE_CRASH,
    OutcomeKind.HANG: VerdictKind.ENGINE_HANG,
}
"""The verdict that each failure of the target stands for."""

WORDS = {
    OutcomeKind.BUILD_FAILED: "refuses to build the model",
    OutcomeKind.RUN_FAILED: "builds the model but fails to run it",
    OutcomeKind.CRASH: "crashes",
    OutcomeKind.OUT_OF_MEMORY: "runs out of memory",
    OutcomeKind.HANG: "exceeds its time limit",
}


def reference_is_sound(inv: Investigation) -> Verdict | None:
    """Run the reference on every feed; its outputs must be free of NaN. Constant ones are seen to by `says_nothing`."""
    since = inv.mark()
    question = "is the reference sound?"
    for feed in inv.question.feeds:
        try:
            golden = inv.golden_outputs(feed)
        except EngineError as error:
            inv.answered(question, f"no: {inv.question.reference} {WORDS[Outcome.of(error).kind]}", since=since)
            return inv.verdict(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference {inv.question.reference} {WORDS[Outcome.of(error).kind]}: {error.message}",
                next=[inv.command("run", "--reference", str(inv.question.reference))],
            )
        outputs = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}
        broken = [name for name, array in outputs.items() if has_nan(array)]
        if broken:
            culprit, born = nan_of_reference(inv, feed, broken[0])
            answer = f"no: output '{broken[0]}' of the reference holds NaN{born}"
            inv.answered(question, answer, since=since, outputs=broken)
            return inv.verdict(
                VerdictKind.COMPARISON_UNSOUND,
                OBSERVED,
                f"the reference itself gives NaN in output '{broken[0]}' on {feed.name}{born or ': check the inputs'}",
                culprits=[culprit] if culprit else [],
                next=[inv.command("inspect data")],
            )
    told = "hardly: every output is empty or one constant" if is_silent(inv) else "yes: finite, not constant"
    inv.answered(question, told, since=since, feeds=len(inv.question.feeds))
    return None


def is_silent(inv: Investigation) -> bool:
    """Say whether every output of the reference is empty or constant on every feed."""
    for feed in inv.question.feeds:
        golden = inv.golden_outputs(feed)
        outputs = [golden[spec.name] for spec in inv.model.outputs if spec.name in golden]
        if not outputs or not all(map(is_constant, outputs)):
            return False
    return True


def says_nothing(inv: Investigation) -> Verdict | None:
    """Agreement with a reference that is empty or constant proves nothing (disagreement would have)."""
    if not is_silent(inv):
        return None
    return inv.verdict(
        VerdictKind.COMPARISON_UNSOUND,
        SILENT_REFERENCE,
        "every output of the reference is empty or constant on every feed, so that agreement proves nothing: "
        "give inputs on which the model does something",
    )


def failed(inv: Investigation, error: EngineError) -> Verdict:
    """Return the verdict for a target that could not be built or run at all."""
    outcome = Outcome.of(error)
    if outcome.kind is OutcomeKind.HANG:
        inv.budget.check()  # what ended it may be the budget, not the time limit
    kind = FAILURES[outcome.kind]
    summary = f"{inv.question.target} {WORDS[outcome.kind]}: {outcome.message}"
    return inv.verdict(kind, OBSERVED, summary, next=[inv.command("run", "--target", str(inv.question.target))])


def run_once(inv: Investigation, spec: EngineSpec, model: Model, feed: Feed) -> Mapping[str, np.ndarray]:
    """Run the deployed (unmarked) model once in a session kept for reuse."""
    return inv.runner(spec, model).run(feed)


def is_constant(array: np.ndarray) -> bool:
    """Whether an array says nothing: no element at all, or several that are all equal."""
    return array.size == 0 or (array.size > 1 and bool((array == array.flat[0]).all()))
