"""An op whose result has another shape or type than the reference's is wrong, whatever its numbers are.

Such a result cannot be injected into the reference's run to see what it does to the outputs; it need not be, as no
freedom of an engine changes shapes.
"""

from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.measurements.suggested_commands import reduce_command
from tensortriage.diagnose.state.confidence import MISSHAPEN_OP
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.errors import EngineError, ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.outcome import Outcome

MOST_NAMED = 10
"""Culprits that a verdict names."""


def of_another_shape(inv: Investigation, local: Local) -> Verdict | None:
    """Return the verdict on ops whose results on golden inputs have another shape or type; None when there is none."""
    culprits = []
    for value in inv.values:
        node = inv.model.graph.producer(value) if value in local.misshapen else None
        if node is not None:
            reason = f"on golden inputs its result '{value}' has {local.misshapen[value]}"
            culprits.append(Culprit(node.name, node.op_type, value, reason=reason))
    if not culprits:
        return None
    first, more = culprits[0], len({culprit.node for culprit in culprits}) - 1
    others = f"; so is the result of {more} more op{'s' * (more > 1)}" if more else ""
    return inv.verdict(
        VerdictKind.LOCAL_FAULT,
        MISSHAPEN_OP,
        f"{first.op_type} '{first.node}' is wrong by itself on {inv.question.target}: {first.reason}{others}",
        culprits=culprits[:MOST_NAMED],
        next=[
            reduce_command(inv),
            inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", first.value),
        ],
    )


def behind_the_outputs(inv: Investigation, feed: Feed) -> Verdict | None:
    """Find out whether outputs cannot be compared because an op makes something of another shape or type."""
    question = "which op returns a wrong shape?"
    try:
        local = local_errors(inv, feed)
    except EngineError as error:
        answer = f"unknown: the exploded graph {WORDS[Outcome.of(error).kind]}"
        inv.answered(question, answer, reason=error.message)
        return None
    except ModelError as error:
        inv.answered(question, f"unknown: {error.message}")
        return None
    verdict = of_another_shape(inv, local)
    answer = f"'{verdict.culprits[0].node}'" if verdict else "none by itself"
    inv.answered(question, answer, misshapen=dict(local.misshapen))
    return inv.refreshed(verdict) if verdict else None
