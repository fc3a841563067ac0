"""Where no op can be run alone: does one freedom, taken everywhere, account for every value of the target's full run?

Some engines build the model and not the graph in which every op stands alone. What one of them is free to choose is not
known of a class of hardware either, so each freedom is tried by itself on the whole model. It explains the error where
no output and nothing that was seen inside is farther off than it predicts, and where it is taken: at most of the
operators that it concerns the error is nearer to what is predicted with it than to what is predicted without.
"""

from collections.abc import Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of, say
from tensortriage.compare.judgement.within import is_habit, is_nearer
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.number_format.expected_choices import first_beyond, freedoms_in_words, seen_inside
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.allowances import whole_model
from tensortriage.envelope.freedoms import Freedom, freedoms_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.errors import EngineError, UsageError

QUESTION = "does one freedom of the hardware, taken everywhere, explain the error?"


@rung(QUESTION, reads=("results", "floors", "in_context", "local"))
def whole_model_freedom(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Does a freedom that the target takes everywhere explain its outputs and every value that was seen inside?"""
    hardware = Hardware.of(inv.question.target)
    if evidence.local is not None or hardware is not Hardware.ANY or not inv.question.trusts_float64:
        return None
    inside = seen_inside(evidence)
    if not inside:
        return None
    op_types = {node.op_type for node in inv.model.graph.nodes}
    values = [value for value in inv.values if value in inside or value in evidence.worst.errors]
    beyond: dict[str, str] = {}
    for freedom in freedoms_of(hardware, inv.precision):
        if not freedom.operators or not freedom.concerns(op_types):
            continue  # of functions of any operator nothing shows where it is taken
        try:
            predicted = whole_model(inv, inv.model, evidence.feed, values, freedoms=[freedom], precision=inv.precision)
        except (EngineError, UsageError):
            continue
        beyond[freedom.name] = first_beyond(inv, evidence, inside, predicted) or _not_taken(
            inv, evidence, freedom, values, predicted
        )
        if not beyond[freedom.name]:
            return _explained(inv, evidence, freedom, predicted, len(inside))
    if beyond:
        inv.answered(QUESTION, f"no: none of {len(beyond)}", beyond=beyond)
    return None


def _not_taken(
    inv: Investigation, evidence: Evidence, freedom: Freedom, values: Sequence[str], predicted: Mapping[str, float]
) -> str:
    """Return in words that the target does not take a freedom where that would show; empty where it does."""
    floors, figures, graph = evidence.floors, evidence.in_context or {}, inv.model.graph
    assert floors is not None
    errors = {
        value: (error_of(figures[value]), predicted.get(value, 0.0), floors.target.get(value, 0.0))
        for value in values
        if value in figures and (node := graph.producer(value)) is not None and node.op_type in freedom.operators
    }
    shows = [value for value, (_, chosen, plain) in errors.items() if chosen > plain]
    taken = [value for value in shows if is_nearer(*errors[value])]
    return "" if shows and is_habit(len(taken), len(shows)) else f"taken at {len(taken)} of {len(shows)} values"


def _explained(
    inv: Investigation, evidence: Evidence, freedom: Freedom, predicted: Mapping[str, float], inside: int
) -> Verdict:
    told = freedoms_in_words(inv, freedom)
    name, error, _ = evidence.worst.worst
    inv.answered(
        QUESTION,
        f"yes: {told}",
        freedoms=[freedom.name],
        predicted_error={output: predicted.get(output, 0.0) for output in evidence.worst.errors},
        measured_error=dict(evidence.worst.errors),
        values=inside,
    )
    return inv.verdict(
        VerdictKind.ROUNDING,
        FREEDOMS_EXPLAIN.on(inv.inputs_word),
        f"no op is to blame: {told}; output '{name}' has relative error {say(error)}, predicted "
        f"{say(predicted.get(name))}, and the same holds for {inside} tensors inside"
        + (f"; to avoid it, {freedom.avoided}" if freedom.avoided else ""),
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )
