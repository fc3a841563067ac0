"""Is the target's model the reference's, quantized, and do its quantizers fit the values they quantize?

A model with QuantizeLinear and DequantizeLinear pairs computes something else than its original, on any engine. Three
runs of the reference show why: without its pairs it must be the original (else it is another model); the numbers that
reach each pair show how far it is from the best of its kind (`tensortriage.compare.quantization.quantizer_fit`); and
with the worst ones calibrated the outputs must come back (else the bits are too few, which is no mistake).
"""

import dataclasses
import functools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.within import counts, is_decisive, is_too_coarse, within_fp32
from tensortriage.compare.quantization.quantizer_fit import (
    Meant,
    Rectifier,
    activations,
    calibrate,
)
from tensortriage.diagnose.measurements.evidence import Calibrated, Evidence, Findings, SoundQuantization
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.quantization.lost_part import lost_part
from tensortriage.diagnose.rungs.quantization.misfits import QuantizerMisfit, facts, repaired
from tensortriage.diagnose.rungs.quantization.model_errors import Quantization, output_errors
from tensortriage.diagnose.rungs.quantization.other_weights import moves_of, of_other_weights
from tensortriage.diagnose.rungs.quantization.unequal_pairs import (
    QUESTION,
    of_unequal,
    rescaled_biases,
    unequal_pairs,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import OBSERVED, QUANTIZATION_COSTS, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import (
    Quantizer,
    are_symmetric,
    is_quantized,
    may_rectify,
    quantizers,
    uses_half_range,
    uses_seven_bits,
)
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.questions.suggested_commands import command_without_inputs, triage_command
from tensortriage.values.text import error_size, percent

MOST_PAIRS = 12
"""Unfit quantizers whose harm is measured one by one, those furthest from the best first."""


@rung(
    QUESTION,
    reads=("model_diff", "unrounded_match"),
    gives=("quantization", "calibrated", "same_network"),
    cost="a few runs of the reference",
    ends=(
        VerdictKind.QUANTIZATION,
        VerdictKind.MODEL_CHANGED,
        VerdictKind.ROUNDING,
        VerdictKind.INCONCLUSIVE,
    ),
)
def quantized_model(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Judge the quantizers of the target's model, when it is the reference's model quantized.

    Where they are sound, that is a finding, and the diagnosis continues with the target's model: the engine must
    compute that.
    """
    matched = evidence.model_diff
    if matched is None:
        return None
    changed = matched.paired
    pairs = quantizers(changed.graph)
    if not pairs or quantizers(inv.model.graph):
        return None
    feed, weights = inv.question.feeds[0], matched.weights()
    if unequal := unequal_pairs(changed.graph, pairs) or rescaled_biases(changed.graph, pairs, weights):
        return of_unequal(inv, matched, unequal, [inspect_command(inv, matched.changed)])
    try:
        before = output_errors(inv, changed, feed)
        plain = matched.unquantized(weights)
        without = output_errors(inv, plain, feed)
        misfits = judged(inv, matched, plain, feed, weights)
        along = [misfit for misfit in misfits if misfit.weight is not None and misfit.fit.kind == "axis"]
        put_right = output_errors(inv, repaired(changed, along), feed) if along else before
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    floors = fp32_floors(inv.setting(feed), list(before))
    small = Quantization(matched, feed, weights, before, floors)
    if is_decisive(_gone(before, put_right)):  # whatever else differs
        return guilty_pairs(inv, small, along, len(pairs))
    within_floors = all(within_fp32(error, floors.get(name, 0.0)) for name, error in without.items())
    same = evidence.unrounded_match is not None and evidence.unrounded_match.is_same
    if not within_floors and not same:
        unknown = sum(pair.of_weight and pair.result not in weights for pair in pairs)
        if not unknown and misfits and is_decisive(_gone(before, without)):
            return against_itself(inv, small, plain, misfits, len(pairs))
        reason = f"{unknown} quantized weights are not found in the original" if unknown else "it is another model"
        inv.record.answered(QUESTION, f"unknown: without its {len(pairs)} quantizers {reason}", errors=without)
        return None
    if all(within_fp32(error, floors.get(name, 0.0)) for name, error in before.items()):
        return None
    # Weights are known one by one only where nodes were found; those of a file that stands for the network as a whole
    # may be smoothed, equalized or folded.
    small = small if within_floors else dataclasses.replace(small, weights={})
    is_same = evidence.unrounded_match.is_same if evidence.unrounded_match is not None else None
    others = functools.partial(of_other_weights, inv, small, same=is_same)
    try:  # integers of another row fit no scale: they are no matter of calibration
        if any(
            move.other != move.row for m in misfits for move in moves_of(changed.graph, m.pair.result, small.weights)
        ):
            other = others()
            if other is not None:
                return Answer(other)
    except EngineError:  # nothing more is known
        pass
    answer = guilty_pairs(inv, small, misfits, len(pairs))
    try:
        other = None if answer.verdict else others()
    except EngineError:
        other = None
    return Answer(other) if other else answer


def _gone(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Return the share of the square of the largest error that a change takes away; 0 of none."""
    worst = max(before.values())
    return 1.0 - (max(after.values()) / worst) ** 2 if worst else 0.0


def against_itself(
    inv: Investigation, small: Quantization, plain: Model, misfits: Sequence[QuantizerMisfit], count: int
) -> Answer | None:
    """Judge the quantizers of a model with weights of its own, trained with them in it, by the model without them.

    That is done where most of the difference to the reference's model goes with the quantizers.
    """
    of_plain = inv.about(inv.question.on_model(plain))
    errors = output_errors(of_plain, small.matched.paired, small.feed)
    answer = guilty_pairs(of_plain, dataclasses.replace(small, errors=errors), misfits, count)
    verdict, fitting = answer.verdict, answer.findings.get("calibrated")
    if verdict is None or fitting is None:
        return None
    after = output_errors(inv, fitting.model, small.feed)[fitting.output]
    fitting = dataclasses.replace(fitting, before=small.errors[fitting.output], after=after)
    words = "; compared with the same model without quantizers, whose weights are not the reference's"
    verdict = dataclasses.replace(
        verdict, summary=verdict.summary + words, next=(inspect_command(inv, small.matched.changed),)
    )
    return Answer(verdict, Findings(calibrated=fitting))


def inspect_command(inv: Investigation, changed: Model) -> str:
    """Return the command that judges every quantizer of a model."""
    inputs = ["--inputs", *inv.question.input_paths] if inv.question.input_paths else []
    original = ["--original", str(inv.model.path)] if inv.model.path is not None else []
    return shlex.join(["triage", "inspect", "quantizers", str(changed.path), *original, *inputs])


def guilty_pairs(inv: Investigation, small: Quantization, misfits: Sequence[QuantizerMisfit], count: int) -> Answer:
    """Calibrate the quantizers that do not fit; if that brings the outputs back, they are to blame."""
    matched, feed, errors = small.matched, small.feed, small.errors
    changed = matched.paired
    output = max(errors, key=lambda name: errors[name])
    before = after = errors[output]
    if not is_too_coarse(before):
        misfits = [each for each in misfits if not each.cuts_outliers]
    better = repaired(changed, misfits) if misfits else changed
    if misfits:
        after = output_errors(inv, better, feed)[output]
    explained = max(0.0, 1.0 - (after / before) ** 2) if np.isfinite(before) else float(np.isfinite(after))
    # A part of an output that stays lost is told instead.
    if not is_decisive(explained) or (inv.question.inputs_word == "real" and lost_part(inv, better, feed)):
        known = f"all {count} quantizers fit the values they quantize"
        if misfits:
            worst = matched.in_file(misfits[0].pair.quantize or misfits[0].pair.dequantize).name
            known = f"{len(misfits)} of {count} quantizers could fit better, '{worst}' most"
            known += f", which explains {percent(explained)}"
        pairs = {m.pair.dequantize: facts(m.fit) for m in misfits[:MOST_PAIRS]}
        figures = {"error": before, "calibrated": after, "explained": explained, "pairs": pairs}
        inv.record.answered(QUESTION, f"yes: {known}", **figures)
        sound = SoundQuantization(output, before, known)
        return Answer(findings=Findings(quantization=sound, same_network=True))
    influence = harm(inv, changed, feed, misfits, output)
    largest = max(influence.values())
    named = [m for m in misfits if counts(influence.get(m.pair.result, 0.0) ** 2 - after**2, largest**2 - after**2)]
    named = sorted(named or misfits[:1], key=lambda m: -influence.get(m.pair.result, 0.0))
    culprits = [culprit_of(matched, misfit, influence.get(misfit.pair.result)) for misfit in named]
    first = culprits[0]
    inv.record.answered(
        QUESTION,
        f"no: {first.op_type} '{first.node}' does not fit its values",
        error=before,
        calibrated=after,
        explained=explained,
        pairs={m.pair.dequantize: facts(m.fit) for m in misfits[:MOST_PAIRS]},
    )
    others = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    falls = f"the error of output '{output}' falls from {error_size(before)} to {error_size(after)}"
    reference, file = str(inv.question.reference), str(matched.changed.path)
    words = (
        f"{first.op_type} '{first.node}'{others} does not fit the values it quantizes: {first.reason}; with "
        f"{'these' if others else 'it'} calibrated on these inputs {falls}"
    )
    if inv.question.inputs_word == "random" and not any(misfit.pair.of_weight for misfit in named):
        # No calibration saw what we made up.
        words = f"on random data, {words}; they need not be like those that it was calibrated on: give real data"
        again = command_without_inputs(
            inv.question, "diagnose", "--target", str(inv.question.target), "--target-model", file, "--inputs", "INPUTS"
        )
        return Answer(Conclusion(VerdictKind.INCONCLUSIVE, OBSERVED, words, next=[again]))
    verdict = Conclusion(
        VerdictKind.QUANTIZATION,
        blamed(explained),
        words,
        culprits=culprits,
        next=[
            inspect_command(inv, matched.changed),
            triage_command(
                inv.question, "run", "--reference", reference, "--target", reference, "--target-model", file
            ),
        ],
    )
    return Answer(verdict, Findings(calibrated=Calibrated(better, output, before, after)))


def judged(
    inv: Investigation, matched: Correspondence, plain: Model, feed: Feed, weights: Mapping[str, np.ndarray]
) -> list[QuantizerMisfit]:
    """Return the quantizers that do not fit the numbers which the model without quantizers gives them, worst first.

    One with one scale that does not fit a feed's numbers is judged by those of all feeds: a range is made for many.
    """
    graph = matched.paired.graph
    pairs = quantizers(graph)
    shown = set(plain.graph.values) - set(graph.constants)

    def numbers(of: Feed, wanted: Iterable[str]) -> dict[str, np.ndarray]:
        inner = [value for value in dict.fromkeys(wanted) if value in shown]
        store = inv.lab.values(inv.question.reference, plain, of, inner, specs={})
        made = {name: np.asarray(store[name]) for name in store.names()}
        return {**of.tensors, **made, **{name: np.maximum(made[name], 0) for name in matched.relus & made.keys()}}

    known = numbers(feed, (pair.value for pair in pairs if not pair.of_weight))
    misfits = misfits_of(graph, pairs, known, weights)
    doubted = [m.pair.value for m in misfits if m.pair.value in known and graph.weight(m.pair.scale).size == 1]
    others = [numbers(each, doubted) for each in inv.question.feeds if each is not feed] if doubted else []
    if not others:
        return misfits
    known |= {name: np.concatenate([known[name].ravel(), *(each[name].ravel() for each in others)]) for name in doubted}
    return misfits_of(graph, pairs, known, weights, samples=1 + len(others))


def misfits_of(
    graph: Graph,
    pairs: Sequence[Quantizer],
    known: Mapping[str, np.ndarray],
    weights: Mapping[str, np.ndarray],
    *,
    samples: int = 1,
) -> list[QuantizerMisfit]:
    """Return the quantizers that do not fit the values they quantize, worst first; unknown numbers fit."""
    misfits, symmetric, seven_bits = [], are_symmetric(graph, pairs), uses_seven_bits(graph, pairs)
    tops = activations(dict(_rectifiers(graph, pairs, known)))
    for pair in pairs:
        weight = weights.get(pair.result)
        numbers = weight if pair.of_weight else known.get(pair.value)
        if numbers is None and pair.value in graph.constants:
            numbers = graph.weight(pair.value)
        if numbers is None or not numbers.size or pair.dtype.is_float or pair.dtype.bits > 16:
            continue
        if not np.isfinite(numbers).all():
            continue
        zero = graph.weight(pair.zero_point) if pair.zero_point else None
        scale = graph.weight(pair.scale)
        top = tops.get(pair.value)
        fit = calibrate(
            numbers if top is None else np.clip(numbers, 0.0, top), scale, zero,
            axis=pair.axis, dtype=pair.dtype,
            meant=Meant(
                symmetric, (seven_bits and pair.of_weight) or uses_half_range(graph, pair), sampled=not pair.of_weight
            ),
        )  # fmt: skip
        if fit.kind != "fits":
            misfits.append(QuantizerMisfit(pair, fit, weight, max(1, numbers.size // samples)))
    return sorted(misfits, key=lambda misfit: -misfit.fit.gap_db)


def _rectifiers(
    graph: Graph, pairs: Sequence[Quantizer], known: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, Rectifier]]:
    """Yield the pairs that may also act as a ReLU, by their operands."""
    for pair in pairs:
        if pair.value in known and may_rectify(graph, pair) and np.isfinite(known[pair.value]).all():
            zero = graph.weight(pair.zero_point) if pair.zero_point else None
            yield pair.value, Rectifier(known[pair.value], graph.weight(pair.scale), zero, pair.dtype)


@rung("do the quantizers fit the values they quantize?", cost="nothing new")
def check_quantizers(inv: Investigation, _: Evidence) -> None:
    """Record how the quantizers of a quantized model fit the numbers that the reference gives them.

    No verdict: reference and target run the same quantized model, and its original is unknown.
    """
    graph, feed = inv.model.graph, inv.question.feeds[0]
    pairs = [pair for pair in quantizers(graph) if not pair.of_weight]
    if not pairs:
        return
    golden = inv.golden.of(feed)
    known = {pair.value: np.asarray(golden[pair.value]) for pair in pairs if pair.value in golden}
    misfits = misfits_of(graph, pairs, {**feed.tensors, **known}, {})
    answer = f"yes: all {len(pairs)} are within 3 dB of the best for these numbers"
    if misfits:
        first = misfits[0]
        answer = f"{len(misfits)} of {len(pairs)} do not: '{first.pair.quantize}', {first.fit.words}"
    inv.record.answered(
        "do the quantizers fit the values they quantize?",
        answer,
        pairs={misfit.pair.quantize: facts(misfit.fit) for misfit in misfits[:MOST_PAIRS]},
    )


def harm(
    inv: Investigation, changed: Model, feed: Feed, misfits: Sequence[QuantizerMisfit], output: str
) -> Mapping[str, float]:
    """Return the error of an output when all misfits but one are calibrated, by the result of that one."""
    errors = {}
    for number, misfit in enumerate(misfits[:MOST_PAIRS]):
        inv.lab.progress(f"calibrating all quantizers but one ({number + 1} of {min(len(misfits), MOST_PAIRS)})")
        others = [other for other in misfits if other is not misfit]
        model = repaired(changed, others) if others else changed
        errors[misfit.pair.result] = output_errors(inv, model, feed)[output]
    return errors


def culprit_of(matched: Correspondence, misfit: QuantizerMisfit, influence: float | None) -> Culprit:
    """Return a misfit as culprit: its QuantizeLinear, or the DequantizeLinear of a weight."""
    pair, fit = misfit.pair, misfit.fit
    node = matched.in_file(pair.quantize or pair.dequantize)
    return Culprit(
        node.name,
        node.op_type,
        pair.result,
        local_error=fit.error,
        influence=influence,
        floor_ratio=fit.error / fit.best_error if fit.best_error > 0.0 else None,
        reason=f"{fit.words}; {fit.cure}",
    )


@rung("is quantization all that differs?", reads=("quantization",), cost="nothing new", ends=(VerdictKind.ROUNDING,))
def sound_quantization(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """The target agrees with the reference on a quantized model: the rest is the cost of quantization."""
    sound = evidence.quantization
    if sound is None:
        return None
    what = "quantization" if is_quantized(inv.model.graph) else "its number format"
    return Conclusion(
        VerdictKind.ROUNDING,
        QUANTIZATION_COSTS,
        f"{what} explains the error: on the reference engine output '{sound.output}' of the target's model differs by "
        f"{error_size(sound.error)} from the original's; {sound.lost or sound.fit}; {inv.question.target} computes "
        "that model as the reference does",
        culprits=sound.culprits,
        next=[*sound.cure, layers_command(inv.question)],
    )
