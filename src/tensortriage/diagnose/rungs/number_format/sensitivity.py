"""Is it the model that turns rounding into large errors? Then no engine can be blamed for them.

The floor from float64 sees how the reference's own rounding grows. It does not see what hangs on one rounding that
happened to agree: a Floor of a whole number, an ArgMax of equals, a threshold met exactly, a chaotic recurrence.
So the inputs of the *reference* are moved by one unit in the last place, several times: an engine cannot be asked to be
closer to the reference than the reference is to itself on inputs that no float32 can tell apart from rounding.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of, say
from tensortriage.compare.judgement.within import beyond_fp32, within_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import AMPLIFIED, AMPLIFIED_UNPROVEN, Confidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.floors import ROUNDED, jitter
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX, USE_PREFIX, inject, select_outputs
from tensortriage.values.dtype import DType

QUESTION = "does the model amplify rounding?"

DRAWS = 4
"""How often the inputs are moved; the largest movement of the outputs counts."""

_FLOATS = (DType.FLOAT, DType.DOUBLE)


@rung(QUESTION, reads=("results", "local"), gives=("local",))
def ill_conditioned(inv: Investigation, evidence: Evidence) -> Answer | Verdict | None:
    """Do the reference's own outputs move as much when its inputs move by one unit in the last place?"""
    if inv.precision in ROUNDED or any(m.nonfinite_mismatch for m in evidence.worst.metrics.values()):
        return None
    try:
        moved = jitter_floors(inv, evidence.feed)
    except EngineError as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    failing = [name for name, within in evidence.worst.within.items() if not within]
    errors = evidence.worst.errors
    excused = [name for name in failing if within_fp32(errors[name], moved.get(name, 0.0))]
    name = max(failing, key=lambda n: errors[n], default=evidence.worst.worst[0])
    facts = {"moved": moved, "measured_error": dict(errors), "draws": DRAWS}
    words = f"one unit in the last place of the inputs moves output '{name}' by {say(moved.get(name))}"
    if not failing or len(excused) < len(failing):
        inv.answered(QUESTION, f"no: {words}, the error is {say(errors[name])}", **facts)
        return None
    try:
        local = evidence.local or local_errors(inv, evidence.feed)
    except EngineError as error:
        inv.answered(QUESTION, f"yes: {words}; the ops could not be run one by one", **facts)
        return sensitive(
            inv, name, errors[name], moved[name], AMPLIFIED_UNPROVEN, f"the ops could not be run alone: {error.message}"
        )
    if guilty := beyond_rounding(local):
        inv.answered(QUESTION, f"yes: {words}, but '{guilty}' is wrong by itself", **facts)
        return Answer(findings=Findings(local=local))
    inv.answered(QUESTION, f"yes: {words}", **facts)
    alone = "every op alone is as close as a healthy engine's is"
    return Answer(sensitive(inv, name, errors[name], moved[name], AMPLIFIED, alone), Findings(local=local))


def sensitive(inv: Investigation, name: str, error: float, moved: float, confidence: Confidence, alone: str) -> Verdict:
    """Return the verdict that rounding explains the error, because the model amplifies it."""
    return inv.verdict(
        VerdictKind.ROUNDING,
        confidence,
        f"the model amplifies rounding: moving the reference's inputs by one unit in the last place moves output "
        f"'{name}' by {say(moved)}, the target's error is {say(error)}; {alone}",
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )


def beyond_rounding(local: Local) -> str:
    """Return a value whose op is wrong by itself beyond what healthy kernels differ; empty when there is none."""
    if local.misshapen:
        return next(iter(local.misshapen))
    for name in local.metrics:
        if beyond_fp32(ratio_of(local.error(name), local.floors.target.get(name))):
            return name
    return ""


def jitter_floors(inv: Investigation, feed: Feed) -> Mapping[str, float]:
    """Return how far each output of the reference moves when its floating-point inputs move by at most one ulp.

    A model without such inputs is moved where numbers first appear: at the results of nodes that read integers and
    constants only, such as the embeddings of a language model.

    Raises:
        EngineError: When the reference fails.
    """
    golden = inv.golden(feed)
    outputs = [spec.name for spec in inv.model.outputs if spec.name in golden]
    first = first_numbers(inv, feed)
    if first is None:
        return dict.fromkeys(outputs, 0.0)
    model = select_outputs(inject(inv.model, list(first), specs=inv.specs(feed)), outputs) if first else inv.model
    largest = dict.fromkeys(outputs, 0.0)
    with inv.new_runner(PLAIN if first else inv.question.reference, model) as runner:
        for seed in range(DRAWS):
            results = runner.run(moved_feed(feed, first, jitter(first or feed.tensors, seed=seed)))
            for name in outputs:
                if np.shape(results[name]) == golden.spec(name).shape:
                    error = error_of(measure(np.asarray(golden[name]), np.asarray(results[name])))
                    largest[name] = max(largest[name], error)
    return largest


def first_numbers(inv: Investigation, feed: Feed) -> dict[str, np.ndarray] | None:
    """Return the golden values at which a model without floating-point inputs can be moved; empty if it has such.

    They are the results of nodes that read integers and constants only. None where there are none.
    """
    if any(array.dtype in (np.float32, np.float64) for array in feed.tensors.values()):
        return {}
    golden, graph = inv.golden(feed), inv.model.graph
    constant = graph.constants
    inside = {n for n in golden.names() if golden.spec(n).dtype in _FLOATS and n not in constant}
    # A Cast of integers is exact: 1 - mask is 0 in every engine, and one ulp of it times -10000 no rounding of any.
    exact = {value for node in graph.nodes if node.op_type == "Cast" for value in node.outputs}
    makers = [(node, value) for node in graph.nodes for value in node.outputs if value in inside - exact]
    return {value: np.asarray(golden[value]) for node, value in makers if not inside.intersection(node.uses)} or None


def moved_feed(feed: Feed, first: Mapping[str, np.ndarray], moved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a feed with moved inputs, or with moved numbers for a model that they are injected into."""
    if not first:
        return dict(moved)
    used = {USE_PREFIX + name: np.array(True) for name in first}
    return {**feed.tensors, **{INJECT_PREFIX + name: array for name, array in moved.items()}, **used}
