"""What keeps the answers of reference and target from being compared, and the verdict that a failure stands for.

A verdict about an engine is worthless where there is no answer, or one with other outputs, shapes or element types.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.state.confidence import OBSERVED
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
