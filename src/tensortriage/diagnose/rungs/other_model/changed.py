"""Is it the engine at all, or did the model change on its way to it?

When the target runs another ONNX file, both files first run on the *reference*. If their outputs differ there, no
engine is to blame: nodes are matched, and each node of the new file (or the few that stand for one of the old) computes
on the original's golden values. Nodes that differ beyond the floor of the original there changed the numbers.
"""

import contextlib
import dataclasses

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_noise, is_too_coarse, within_fp32
from tensortriage.compare.measured import compare_all
from tensortriage.compare.reference_checks import mismatched
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.moved_values import exchanged
from tensortriage.diagnose.measurements.outputs import parts_of
from tensortriage.diagnose.rungs.operators.layout import said
from tensortriage.diagnose.rungs.other_model.baked import ignored
from tensortriage.diagnose.rungs.other_model.changed_ops import changed_ops
from tensortriage.diagnose.rungs.other_model.extent import extent_of_rows, extent_of_weights, first_row, stays
from tensortriage.diagnose.rungs.other_model.misfolded import misfolded
from tensortriage.diagnose.rungs.quantization.quantized_model import inspect_command
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import AMPLIFIED_UNPROVEN, CHANGED_UNNAMED, OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import DataError, EngineError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import whole, with_parts
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.lab import FLOAT64
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.store import MemoryStore
from tensortriage.values.text import error_size, noise_size

QUESTION = "do both models compute the same on the reference?"
_MOST_NODES = 20


@rung("does the target run a different model?", gives=("model_diff",), cost="nothing")
def other_model(inv: Investigation, _: Evidence) -> Answer | None:
    """Compare the target's model with the reference's, if they are two files."""
    changed = inv.question.target_model
    return None if changed is None else Answer(findings=Findings(model_diff=Correspondence.of(inv.model, changed)))


@rung(
    QUESTION,
    reads=("model_diff", "unrounded_match", "quantization", "same_network"),
    cost="a run of the reference on every feed",
    ends=(
        VerdictKind.MODEL_CHANGED,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.INCONCLUSIVE,
    ),
)
def model_changed(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Compare the original and the changed model on the reference engine; a difference is the verdict."""
    matched = evidence.model_diff
    if matched is None or evidence.quantization or evidence.same_network:
        return None
    changed = matched.changed
    worst, where, feed, rows, noise = 0.0, "", inv.question.feeds[0], "", 0.0
    for each in inv.question.feeds:
        golden = inv.golden.outputs(each)
        try:
            fed = check_feed(each, changed.inputs, casting=Casting.ROUND)
            outputs = inv.lab.outputs(inv.question.reference, changed, fed)
        except DataError as misfit:
            inv.record.answered(QUESTION, f"no: {misfit.message}")
            return Conclusion(
                VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"the two models are not comparable: {misfit.message}"
            )
        except EngineError as failure:
            reason = f"the reference engine cannot run the target's model: {failure.message}"
            if runs_one_row(inv, changed, each):
                inv.record.answered(QUESTION, f"no: only with one row: {failure.message}")
                words = (
                    f"the target's model runs with one row of {each.name} and not with all: a batch size is baked in"
                )
                return Conclusion(VerdictKind.MODEL_CHANGED, CHANGED_UNNAMED, f"{words}; {failure.message}")
            inv.record.answered(QUESTION, f"unknown: {reason}")
            return Conclusion(VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"{reason}{_compiled(changed)}")
        expected = {spec.name: np.asarray(golden[spec.name]) for spec in inv.model.outputs if spec.name in golden}
        if problem := mismatched(expected, outputs):
            inv.record.answered(QUESTION, f"no: {problem}")
            return Conclusion(VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"the two models are not comparable: {problem}")
        floors = fp32_floors(inv.setting(each), list(expected))
        if pairs := exchanged(expected, {name: np.asarray(outputs[name]) for name in expected}, floors):
            inv.record.answered(QUESTION, f"no: {said(pairs)}", holds=dict(pairs))
            words = f"the target's model gives outputs under each other's names: {said(pairs)}, within noise floors"
            return Conclusion(VerdictKind.MODEL_CHANGED, OBSERVED, f"{words}; name them as the original does")
        parts = parts_of(inv, each)
        right, found = (with_parts(arrays, parts) for arrays in (expected, outputs))
        for name, figure in compare_all(((name, found[name]) for name in right), MemoryStore(right)).metrics.items():
            error, floor = error_of(figure), floors.get(name, 0.0)
            vacuous = inv.question.inputs_word == "real" and is_noise(floor) and is_too_coarse(error)
            if error > worst and (vacuous or not within_fp32(error, floor)):
                worst, where, feed, noise = error, name, each, floor if vacuous else 0.0
                (output,) = whole([name], parts)
                pair = right[output], np.asarray(found[output])
                rows = extent_of_rows(*pair, each, floor)
                rows = rows if rows and stays(inv, changed, each, output, floor) else ""
    nodes = {node: [change.kind.value for change in changes] for node, changes in matched.diff.at.items()}
    changes = {node: kinds for node, kinds in nodes.items() if node in matched.diff.nodes}
    if not where:
        answer = "yes, within the fp32 floor"
        inv.record.answered(QUESTION, answer, changed_nodes=dict(list(changes.items())[:_MOST_NODES]))
        return None
    unrounded = evidence.unrounded_match.unrounded if evidence.unrounded_match is not None else FLOAT64
    culprits = changed_ops(inv, matched, feed, unrounded)
    if culprits and (folding := misfolded(inv.model, matched, culprits[0].node)):
        culprits[0] = dataclasses.replace(culprits[0], reason=folding)
    inv.record.answered(
        QUESTION,
        f"no: output '{where}' differs by {error_size(worst)}",
        output=where,
        relative_error=worst,
        feed=feed.name,
        changed_nodes=dict(list(changes.items())[:_MOST_NODES]),
    )
    reference, file = str(inv.question.reference), str(changed.path)
    named = f": {culprits[0].op_type} '{culprits[0].node}' {culprits[0].reason}" if culprits else ""
    if (layers := extent_of_weights(matched)) and not (culprits and culprits[0].reason.startswith("folds ")):
        named += f"; {layers}"
    named += ignored(matched)
    if noise and all(each.local_error is None for each in culprits):
        words = f"healthy engines differ by {noise_size(noise)} of output '{where}' on these data: give others"
        both = f"the files differ by {error_size(worst)}{named}; but {words}"
        return Conclusion(VerdictKind.INCONCLUSIVE, AMPLIFIED_UNPROVEN, both)
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        OBSERVED if culprits else CHANGED_UNNAMED,
        f"the target's model is not the reference's: on the reference engine output '{where}' already differs by "
        f"{error_size(worst)}{named}{rows}",
        culprits=culprits,
        next=[
            *([inspect_command(inv, changed)] if quantizers(changed.graph) else []),
            triage_command(
                inv.question, "run", "--reference", reference, "--target", reference, "--target-model", file
            ),
        ],
    )


def runs_one_row(inv: Investigation, changed: Model, feed: Feed) -> bool:
    """Return whether a model that a feed breaks runs with its first row, and the original does so as well."""
    if (row := first_row(feed)) is None:
        return False
    with contextlib.suppress(EngineError, DataError):
        for model in (inv.model, changed):
            inv.lab.outputs(inv.question.reference, model, check_feed(row, model.inputs, casting=Casting.ROUND))
        return True
    return False


def _compiled(model: Model) -> str:
    """Return the advice on a model compiled for a provider, as the rest of a sentence."""
    held = any(node.op_type == "EPContext" for node in model.graph.nodes)
    return (
        f"; it was compiled for one provider: give it with the option file={model.path} of the target" if held else ""
    )
