"""An op whose result has another shape or type than the reference's is wrong, whatever its numbers are.

Such a result cannot be injected into the reference's run to measure its effect on the outputs. It need not be, as no
freedom of an engine changes shapes.
"""

from collections.abc import Mapping

from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.state.confidence import MISSHAPEN_OP
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.errors import EngineError, ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.runs.outcome import Outcome

MOST_NAMED = 10
"""Culprits that a verdict names."""


ALONE, OWN_RUN = ("is wrong in isolation on", "on golden inputs"), ("is wrong in the full run of", "there")
"""Where a result was seen, and its operands."""


def of_another_shape(
    inv: Investigation, misshapen: Mapping[str, str], seen: tuple[str, str] = ALONE
) -> Conclusion | None:
    """Return the verdict on ops whose results have another shape or type; None when there is none.

    Args:
        inv: The investigation.
        misshapen: By value, how its shape or type is another.
        seen: The place of the results, and their operands.
    """
    culprits = []
    for value in inv.question.values:
        node = inv.model.graph.producer(value) if value in misshapen else None
        if node is not None:
            reason = f"{seen[1]} its result '{value}' has {misshapen[value]}"
            culprits.append(Culprit(node.name, node.op_type, value, reason=reason))
    if not culprits:
        return None
    first, more = culprits[0], len({culprit.node for culprit in culprits}) - 1
    others = f"; so is the result of {more} more op{'s' * (more > 1)}" if more else ""
    return Conclusion(
        VerdictKind.LOCAL_FAULT,
        MISSHAPEN_OP,
        f"{first.op_type} '{first.node}' {seen[0]} {inv.question.target}: {first.reason}{others}",
        culprits=culprits[:MOST_NAMED],
        next=[reduce_command(inv.question), run_command(inv.question, "--onnx-outputs", first.value)],
    )


def behind_the_outputs(inv: Investigation, feed: Feed) -> Conclusion | None:
    """Find out whether outputs cannot be compared because an op makes something of another shape or type."""
    question = "which op returns a wrong shape?"
    misshapen, seen, refused = {}, ALONE, None
    try:
        local = local_errors(inv, feed)
        misshapen, ran = dict(local.misshapen), bool(local.metrics or local.misshapen)
    except EngineError as error:
        ran, refused = False, error
    except ModelError as error:
        inv.record.answered(question, f"unknown: {error.message}")
        return None
    if not ran:
        misshapen, seen = _in_own_run(inv, feed), OWN_RUN
    if refused is not None and not misshapen:
        answer = f"unknown: the exploded graph {WORDS[Outcome.of(refused).kind]}"
        inv.record.answered(question, answer, reason=refused.message)
        return None
    verdict = of_another_shape(inv, misshapen, seen)
    answer = f"'{verdict.culprits[0].node}'" if verdict else "none in isolation"
    inv.record.answered(question, answer, misshapen=misshapen)
    return verdict if verdict else None


def _in_own_run(inv: Investigation, feed: Feed) -> dict[str, str]:
    """Return values of wrong shape in the target's own run, computed from shown values of right shape."""
    golden, graph = inv.golden.of(feed), inv.model.graph
    try:
        shown = inv.lab.figures(
            inv.question.target,
            inv.model,
            feed,
            ObservedFigures(inv.question.values, golden, partly=True),
            what=f"every layer on {inv.question.target}",
        ).figures
    except EngineError:
        return {}
    known = {*shown.metrics, *feed.tensors, *graph.constants}
    return {
        value: words
        for value, words in shown.misshapen.items()
        if (node := graph.producer(value)) is not None and known.issuperset(node.uses)
    }
