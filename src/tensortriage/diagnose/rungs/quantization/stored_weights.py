"""Are the integer weights in an engine's file the model's, and what is the cost of rounding them?

An engine that shows its file's weights is not judged by the format's possible cost, but by this file: the model
continues with the weights that the file has. A weight that differs from the model's, rounded to the nearest number that
its scale allows, is a fault of the file where most of the error disappears with that rounding, unless the engine's
results are far nearer to that: tools that compensate for rounding, rescale weights together or fold others into them
change no network.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import counts, is_decisive, is_lost, is_too_coarse, within_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.quantization.stored_weights import FoundWeight, StoredWeight, placed
from tensortriage.compare.quantization.weight_moves import weight_moves
from tensortriage.diagnose.measurements.evidence import Evidence, Findings, SoundQuantization
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.quantization.lost_signal import agreement
from tensortriage.diagnose.rungs.quantization.model_errors import output_errors
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import DESTROYED, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.registry import resolve
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.transforms.folded_norms import has_foldable_norms, with_folded_norms
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.runs.analyses.given_layouts import without_format
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision
from tensortriage.values.text import error_size, magnitude, percent

QUESTION = "do the file's weights match the model's?"
_MOST = 12
"""Weights whose share is measured one by one."""
_MOVERS = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@rung(
    QUESTION,
    gives=("quantization",),
    cost="a run of the reference, with other weights",
    ends=(VerdictKind.MODEL_CHANGED, VerdictKind.QUANTIZATION),
)
def stored_weights(inv: Investigation, _: Evidence) -> Answer | None:
    """Compare the integers of a file with the model's weights; if they match, continue with their real values."""
    return file_weights(inv)


def file_weights(inv: Investigation) -> Answer | None:
    """Compare the integers of a target's file with the model's weights; None where it has none.

    Returns:
        A verdict on weights that are not the model's; else a question about the model with the file's weights, where
        the target is to be judged on these.
    """
    question, feed = inv.question, inv.question.feeds[0]
    if not resolve(question.target).arranges_file:
        return None
    if inv.precision is not Precision.INT8 or question.target_model is not None or question.against is not None:
        return None
    try:
        reported, arrays = inv.lab.query(question.target, inv.model, feed, "weights")
        if not reported["readable"] + reported["unreadable"]:
            return None
        weights = [
            StoredWeight(arrays[f"{number}/numbers"], arrays[f"{number}/step"])
            for number in range(reported["readable"])
        ]
        answer = _held(inv, inv.model, weights, reported)
        if isinstance(answer, str) and has_foldable_norms(inv.model):
            folded = _held(inv, with_folded_norms(inv.model), weights, reported)
            answer = answer if isinstance(folded, str) else folded
    except EngineError as error:
        answer = error.message
    if isinstance(answer, str):
        inv.record.answered(QUESTION, f"unknown: {answer}")
        return None
    return answer


def _held(inv: Investigation, model: Model, weights: Sequence[StoredWeight], told: Mapping[str, Any]) -> Answer | str:
    """Compare a file's weights with those of the model or an equivalent one; else return the reason."""
    network, feed = _Network(model, _constants(model)), inv.question.feeds[0]
    found = placed(weights, network.constants)
    stored = _as_the_engine_has_them(inv, feed, list(filter(None, found)), network)
    others = [each for each in stored if each.steps_off.any()]
    if others and (answer := _of_others(inv, feed, network, stored, others)):
        return answer
    if lacking := told["unreadable"] + sum(not ways for ways in found):
        return f"{lacking} of {len(weights) + told['unreadable']} are not found in the model"
    # the target's file runs in place of a model that has a path, and of no part or change of one
    file = Model.load(network.with_weights(stored).save(inv.lab.case.runs / "stored-weights.onnx"))
    errors = output_errors(inv, file, feed)
    output = max(errors, key=lambda name: errors[name])
    lost = _lost(inv, file, output, errors[output])
    sound = SoundQuantization(output, errors[output], _fit(model, stored, others), lost)
    costs = f"{sound.fit}, which costs {error_size(sound.error)} at output '{output}'"
    inv.record.answered(QUESTION, f"yes: {costs}", errors=errors)
    if is_lost(sound.error) and inv.question.inputs_word == "real":
        words = f"this quantization destroys the answer: {sound.lost}; {sound.fit}"
        return Answer(Conclusion(VerdictKind.QUANTIZATION, DESTROYED, words))
    if told["narrow"] is None:  # what integers between all operators cost is emulated on the model as it is
        return Answer()
    question = _on_the_file(inv.question.on_model(file), told["narrow"], stored)
    if within_fp32(sound.error, fp32_floors(inv.setting(feed), [output]).get(output, 0.0)):
        return Answer(question=question)
    return Answer(findings=Findings(quantization=sound), question=question)


@frozen_dataclass
class _Network:
    """A model, and those of its constants that may be weights of a file."""

    model: Model
    constants: Mapping[str, np.ndarray]

    def with_weights(self, stored: Sequence[FoundWeight], rounded: Collection[FoundWeight] = ()) -> Model:
        """Return the model with weights as a file has them, some as it would if they were rounded to nearest."""
        arrays: dict[str, np.ndarray] = {}
        for each in stored:
            array = arrays.setdefault(each.view.name, np.array(self.constants[each.view.name]))
            each.view.put(array, each.rounded if each in rounded else each.stored.numbers)
        return freeze(self.model, arrays)


def _fit(model: Model, stored: Sequence[FoundWeight], others: Sequence[FoundWeight]) -> str:
    """Return how the weights of a sound file were rounded, as a clause."""
    if not others:
        which = f"all {len(stored)} weights of the file are" if len(stored) > 1 else "the one weight of the file is"
        return f"{which} the model's, rounded"
    reader = _readers(model.graph, others[0].view.name)[0]
    which = f"{len(others)} of {len(stored)}" if len(others) > 1 else f"that of {reader.op_type} '{reader.name}'"
    return f"the weights of the file are the model's, though {which} not rounded to nearest, which does no harm here"


def _lost(inv: Investigation, model: Model, output: str, error: float) -> str:
    """Return the loss by rounding the weights as a clause, from a tenth of the signal on."""
    feed = inv.question.feeds[0]
    if not is_too_coarse(error):
        return ""
    agreed = agreement(inv, model, feed, inv.golden.outputs(feed)[output], output)
    return f"{percent(error) if error < 1.0 else 'all'} of the signal at output '{output}'{agreed} is lost"


def _on_the_file(question: Question, narrow: Sequence[int], stored: Sequence[FoundWeight]) -> Question:
    """Return a question with the format in which a file is computed.

    Args:
        question: About the model with the file's weights.
        narrow: Places of the weights that are met by integers.
        stored: The weights.
    """
    if not narrow:
        return dataclasses.replace(question, target=without_format(question.target))
    graph = question.model.graph
    rounding = {node.name for number in narrow for node in _readers(graph, stored[number].view.name)}
    return dataclasses.replace(question, kept=tuple(n.name for n in graph.nodes if n.name not in rounding))


def _constants(model: Model) -> dict[str, np.ndarray]:
    """Return the floating-point constants that nodes of the main graph compute with."""
    graph = model.graph
    floats = [name for name, spec in graph.constants.items() if spec.dtype is not None and spec.dtype.is_float]
    return {name: graph.weight(name) for name in floats if _readers(graph, name)}


def _as_the_engine_has_them(
    inv: Investigation, feed: Feed, found: Sequence[tuple[FoundWeight, ...]], network: _Network
) -> list[FoundWeight]:
    """Return where each weight is: of several readings the one with results nearest to the engine's."""
    chosen = [ways[0] for ways in found]
    for number, ways in enumerate(found):
        if len(ways) > 1:
            tried = [[*chosen[:number], way, *chosen[number + 1 :]] for way in ways]
            off = [max(_from_engine(inv, network.with_weights(each), feed).values()) for each in tried]
            chosen = tried[int(np.argmin(off))]
    return chosen


def _from_engine(inv: Investigation, model: Model, feed: Feed) -> dict[str, float]:
    """Return how far the target's outputs are from those of a model on the reference."""
    target, right = inv.deployed(feed), inv.lab.outputs(inv.question.reference, model, feed)
    return {name: error_of(measure(array, target[name])) for name, array in right.items() if name in target}


def _of_others(
    inv: Investigation,
    feed: Feed,
    network: _Network,
    stored: Sequence[FoundWeight],
    others: Sequence[FoundWeight],
) -> Answer | str | None:
    """Return a verdict on weights that are others, why there is none, or None where they do no harm."""
    own = output_errors(inv, network.with_weights(others), feed)
    least = output_errors(inv, network.with_weights(others, others), feed)
    output = max(own, key=lambda name: own[name] - least[name])
    explained = 1.0 - (least[output] / own[output]) ** 2 if own[output] else 0.0
    if not is_decisive(explained):
        return None
    with_them, without = (
        _from_engine(inv, network.with_weights(stored, rounded), feed)[output] for rounded in ((), others)
    )
    if with_them and is_decisive(1.0 - (without / with_them) ** 2):
        return f"{len(others)} of {len(stored)} weights differ from the model's, but the engine's results match neither"
    culprits = _culprits(inv, feed, network, others, output)
    first, more = culprits[0], f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    inv.record.answered(
        QUESTION,
        f"no: {len(others)} of {len(stored)} are not; these make an error of {error_size(own[output])} at output "
        f"'{output}', of {error_size(least[output])} if they were rounded to nearest",
        explained=explained,
        from_engine={"with": with_them, "rounded": without},
    )
    verdict = Conclusion(
        VerdictKind.MODEL_CHANGED,
        blamed(explained),
        f"the file given to {inv.question.target} holds another weight than the model: {first.op_type} '{first.node}'"
        f"{more} {first.reason}; that makes an error of {error_size(own[output])} at output '{output}', of "
        f"{error_size(least[output])} if it were rounded to nearest",
        culprits=culprits,
        next=[layers_command(inv.question)],
    )
    return Answer(verdict)


def _culprits(
    inv: Investigation, feed: Feed, network: _Network, others: Sequence[FoundWeight], output: str
) -> list[Culprit]:
    """Return the ops that read other weights, each once; first the one whose weight alone makes the largest error."""
    alone = {others[0]: 1.0}
    if len(others) > 1:
        alone = {each: output_errors(inv, network.with_weights([each]), feed)[output] for each in others[:_MOST]}
    found: dict[str, Culprit] = {}
    for each in sorted(alone, key=lambda each: -alone[each]):
        if counts(alone[each] ** 2, max(alone.values()) ** 2):
            culprit = _culprit(network.model, each)
            found.setdefault(culprit.node, culprit)
    return list(found.values())


def _readers(graph: Graph, value: str) -> list[Node]:
    """Return the nodes that compute with a constant, however it is moved before."""
    found: list[Node] = []
    for node in graph.consumers(value):
        found += _readers(graph, node.outputs[0]) if node.op_type in _MOVERS else [node]
    return found


def _culprit(model: Model, each: FoundWeight) -> Culprit:
    """Return the op that reads a weight as a culprit."""
    off, reader = each.steps_off, _readers(model.graph, each.view.name)[0]
    reason = (
        f"has a weight '{each.view.name}' that is not the model's, rounded: {percent(float(np.mean(off > 0.0)))} of "
        f"its numbers differ, by up to {magnitude(float(off.max()))} steps"
    )
    if moves := weight_moves(each.was, each.stored.numbers, each.stored.step):
        reason += f"; {moves[0].words}" + (f", and similarly {len(moves) - 1} more" if len(moves) > 1 else "")
    return Culprit(reader.name, reader.op_type, reader.outputs[0], reason=reason, change="weight")
