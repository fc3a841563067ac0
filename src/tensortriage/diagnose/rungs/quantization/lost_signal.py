"""What is the cost of rounding a network to its file, by op, and is any signal left?

A file may stand for its network and still be useless: a mask of -1e9 that shares a scale with scores of 3 leaves
nothing of them. No engine is to blame for that, and no engine need be asked. From a tenth of the signal on, the ops
that cost most are named, and it is tried what comes back when the first of them are not quantized; from half of it on,
or of what varies within its channels (`lost_variation`), or where a few ops lose as much of their own results
(`coarse_ops`), on real data, the quantization is the verdict.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.within import is_lost, is_too_coarse, within_fp32
from tensortriage.diagnose.measurements.evidence import Calibrated, Evidence, Findings, SoundQuantization
from tensortriage.diagnose.measurements.suggested_commands import search_command
from tensortriage.diagnose.rungs.quantization.coarse_ops import coarse_ops
from tensortriage.diagnose.rungs.quantization.lost_part import LostPart, culprit_of, lost_part, without_its_scale
from tensortriage.diagnose.rungs.quantization.lost_variation import channel_axis, lost_variation
from tensortriage.diagnose.rungs.quantization.model_errors import output_errors
from tensortriage.diagnose.rungs.quantization.rounding_costs import RoundingCost, error_without, rounding_costs
from tensortriage.diagnose.rungs.quantization.starved_channels import starved, starved_channels
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import DESTROYED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.elements import MASKED_APART
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import DataError, EngineError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import way_to_composer
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import bypass, is_quantized, is_quantizer, quantizers
from tensortriage.model.quantization.quantizer_tools import excluding
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.widen import stores_narrow
from tensortriage.values.text import error_size, magnitude, percent

_MOST = 0.5
"""Share of its elements from which a finding is about a constant as a whole: most of them."""

QUESTION = "how much of the signal does rounding cost?"
_NAMED = 10


@rung(
    QUESTION,
    reads=("model_diff", "unrounded_match", "same_network", "quantization"),
    gives=("quantization", "calibrated"),
    cost="an evaluation of the file for each quantizer, where a tenth of the signal is lost",
    ends=(VerdictKind.QUANTIZATION, VerdictKind.RANGE_OVERFLOW),
)
def signal_lost(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Return the cost of rounding a network to a file; a verdict if it destroys the answer."""
    matched, standing = evidence.model_diff, evidence.unrounded_match
    if matched is None or not evidence.same_network:
        return None
    file, feed = matched.changed, inv.question.feeds[0]
    try:
        errors = output_errors(inv, file, feed)
        fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
    except (EngineError, DataError) as failure:
        inv.record.answered(QUESTION, f"unknown: {failure.message}")
        return None
    output = max(errors, key=lambda name: errors[name])
    error = errors[output]
    if standing is None or output not in standing.outputs:
        return None
    if not np.isfinite(error) and not is_quantized(file.graph):
        return None  # what is not finite is a matter of the format's range, asked next; of integers, of their rounding
    if is_quantized(file.graph) and inv.question.inputs_word == "real" and not is_lost(error):
        part = lost_part(inv, file, fed)
        if part is not None:
            return _part_lost(inv, evidence, file, fed, part)
    if within_fp32(error, fp32_floors(inv.setting(feed), [output]).get(output, 0.0)):
        return None
    figure = standing.outputs[output]
    apart = {"error": error, "constants": figure.error, "activations": figure.cost, "cutting_off": figure.cutting}
    if not is_too_coarse(error):
        inv.record.answered(QUESTION, f"{error_size(error)} at output '{output}'", **apart)
        return Answer(findings=Findings(quantization=_found(evidence, output, error)))
    agreed, varying = ", which becomes NaN or Inf,", 0.0
    if np.isfinite(error):
        right, found = inv.golden.outputs(feed)[output], inv.lab.outputs(inv.question.reference, file, fed)[output]
        agreed = agreement(inv, file, fed, right, output)
        varying = lost_variation(np.asarray(right), np.asarray(found), channel_axis(inv.model.graph, output))
    share = percent(error) if error < 1.0 else "all"
    lost = f"{share} of the signal at output '{output}'{agreed}"
    if is_lost(varying) and not is_lost(error):
        lost += f", {percent(varying) if varying < 1.0 else 'all'} of what varies within its channels,"
    if not is_quantized(file.graph):
        return _narrowed(inv, evidence, output, error, lost, apart)
    costs = rounding_costs(inv, file, fed, output, unrounded=standing.unrounded)
    weights = {pair.dequantize: pair.result for pair in quantizers(file.graph) if pair.of_weight}
    known = {name: array for name, array in matched.weights().items() if name in weights.values()}
    rounding = [each for each in costs if not each.of_weight or weights.get(each.node.name) in known]

    def restored(some: Sequence[RoundingCost]) -> Model:
        floats = {weights[each.node.name] for each in some if each.of_weight}
        return bypass(file, {name: known[name] for name in floats}, only=())

    gains = _gains(inv, restored, fed, inv.golden.outputs(feed)[output], output, rounding)
    best = min(gains, key=lambda count: (gains[count], count), default=0)
    tried = ""
    if best and gains[best] < error:
        names = ", ".join(f"'{each.node.name}'" for each in rounding[:best][:3])
        more = f" and {best - 3} more" if best > 3 else ""
        tried = f"; without the quantizer{'s' * (best > 1)} at {names}{more} it falls to {error_size(gains[best])}"
    culprits = [_culprit(inv, matched, fed, each) for each in costs[:_NAMED]]
    first = f"; most is lost at {culprits[0].op_type} '{culprits[0].node}': {culprits[0].reason}" if culprits else ""
    shown = {each.node.name: each.error for each in costs[:_NAMED]}
    inv.record.answered(QUESTION, f"{lost}{first}{tried}", **apart, alone=shown, without_the_first=gains)
    cure = search_command(inv.question, "--int8", "--sqnr", "20")
    sound = _found(evidence, output, error, f"{lost} is lost{first}{tried}", tuple(culprits), (cure,))
    mixed = _excluded(restored(rounding[:best]), matched, rounding[:best]) if tried else None
    if not is_lost(max(error, varying)) or inv.question.inputs_word != "real":
        few = (
            coarse_ops(inv, matched, fed, costs, standing.unrounded, output)
            if inv.question.inputs_word == "real"
            else None
        )
        if few is None:
            return Answer(findings=Findings(quantization=sound))
        return Answer(few.conclusion(inv, file, lost), Findings(quantization=sound, calibrated=few.without))
    words = f"{best} quantizer{'s' * (best > 1)} left out, those that cost most"
    left_out = Calibrated(mixed, output, error, gains[best], "exclude", words) if mixed is not None else None
    verdict = Conclusion(
        VerdictKind.QUANTIZATION,
        DESTROYED,
        f"this quantization destroys the answer: {lost} is lost{first}{tried}",
        culprits=culprits,
        next=[*excluding(file, (each.node.name for each in rounding[: best or 1])), cure],
    )
    return Answer(verdict, Findings(quantization=sound, calibrated=left_out))


def _part_lost(inv: Investigation, evidence: Evidence, file: Model, fed: Feed, part: LostPart) -> Answer:
    """Return the verdict that a part of an output is lost, though the whole is not."""
    shared, mixed = without_its_scale(inv, file, fed, part)
    culprit = culprit_of(part)
    tried = f"; without the quantizers there it falls to {error_size(mixed.after)}" if mixed is not None else ""
    lost = f"{part.words} is lost: {culprit.op_type} '{culprit.node}' {culprit.reason}{shared}{tried}"
    inv.record.answered(QUESTION, lost, error=part.error, part=part.part.value)
    return Answer(
        Conclusion(
            VerdictKind.QUANTIZATION,
            DESTROYED,
            f"this quantization destroys a part of the answer: {lost}; leave '{culprit.node}' in float, or make its "
            "operands outputs of their own",
            culprits=[culprit],
            next=excluding(file, [each.name for each in way_to_composer(file.graph, part.part.output)]),
        ),
        Findings(quantization=_found(evidence, part.part.output, part.error, lost, (culprit,)), calibrated=mixed),
    )


def agreement(inv: Investigation, file: Model, feed: Feed, golden: np.ndarray, output: str) -> str:
    """Return in how many rows the largest element of an output is the same, as the end of a clause; or nothing."""
    right = np.asarray(golden)
    found = np.asarray(inv.lab.outputs(inv.question.reference, file, feed)[output])
    if right.ndim < 2 or right.shape != found.shape or right.shape[-1] < 2 or right.dtype.kind != "f":
        return ""
    same = np.argmax(right, -1) == np.argmax(found, -1)
    return f" (the largest element is the same in {int(same.sum())} of {same.size} rows)"


def _found(
    evidence: Evidence,
    output: str,
    error: float,
    lost: str = "",
    culprits: tuple[Culprit, ...] = (),
    cure: tuple[str, ...] = (),
) -> SoundQuantization:
    """Return the finding of a sound file, with its cost."""
    known = evidence.quantization
    fit = known.fit if known is not None else "unrounded, the file is the reference's network"
    if evidence.model_diff is not None and stores_narrow(evidence.model_diff.changed.graph):
        fit = f"its weights are stored in 16 bits; {fit}"
    return SoundQuantization(output, error, fit, lost, culprits, cure)


def _gains(
    inv: Investigation,
    restored: Callable[[Sequence[RoundingCost]], Model],
    feed: Feed,
    golden: np.ndarray,
    output: str,
    costs: Sequence[RoundingCost],
) -> Mapping[int, float]:
    """Return the error that is left when the costliest ops do not round: of 1, 2, 4, ... of them, until it is small."""
    left, count = dict[int, float](), 1
    while costs:
        count = min(count, len(costs))
        model = restored(costs[:count])
        left[count] = error_without(inv, model, feed, output, costs[:count], np.asarray(golden))
        if not is_too_coarse(left[count]) or count == len(costs):
            break
        count *= 2
    return left


def _excluded(file: Model, beside: Correspondence, costs: Sequence[RoundingCost]) -> Model | None:
    """Return the file without the pairs of some QuantizeLinear nodes; None where some are no pairs."""
    pairs = {pair.quantize: pair.dequantize for pair in quantizers(file.graph) if not pair.of_weight}
    rounding = [each for each in costs if not each.of_weight]
    names = {pairs[each.node.name] for each in rounding if each.node.name in pairs}
    return bypass(file, {}, relus=beside.relus, only=names) if len(names) == len(rounding) else None


def _culprit(inv: Investigation, matched: Correspondence, feed: Feed, cost: RoundingCost) -> Culprit:
    """Return a costly op as a culprit, with the problem in its values."""
    node = cost.node
    does = "rounds its weights, which alone costs" if cost.of_weight else "rounds its values, which alone costs"
    reason = f"{does} {error_size(cost.error)}"
    steps = (each for each in matched.paired.graph.nodes if is_quantizer(each, "QuantizeLinear"))
    quantizer = next((each for each in steps if matched.in_file(each.name).name == node.name), None)
    told = _spread(inv, matched.paired, feed, quantizer.inputs) if not cost.of_weight and quantizer else ""
    if cost.of_weight:
        pairs = (
            each for each in quantizers(matched.paired.graph) if matched.in_file(each.dequantize).name == node.name
        )
        told = next((starved_channels(matched.paired, pair) for pair in pairs), "")
    reason += f": {told}" if told else ""
    return Culprit(node.name, node.op_type, node.outputs[0], influence=cost.error, reason=reason)


def _spread(inv: Investigation, file: Model, feed: Feed, inputs: Sequence[str]) -> str:
    """Return why the values of a QuantizeLinear do not share one scale well; empty when they do."""
    graph = file.graph
    if inputs[1] not in graph.constants:
        return ""
    if inputs[0] in feed.tensors:
        values = feed.tensors[inputs[0]]
    elif inputs[0] in graph.constants:  # a weight in floating point, as quantization-aware training exports it
        values = graph.weight(inputs[0])
        scale = graph.weight(inputs[1])
        if values.ndim > 1 and scale.size == 1 and (told := starved(np.rint(np.abs(values) / scale.reshape(())))):
            return told
    else:
        values = np.asarray(inv.lab.values(EngineSpec("float64"), file, feed, [inputs[0]])[inputs[0]])
    step = float(np.max(graph.weight(inputs[1])))
    sizes = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    if not sizes.size:
        return ""
    usual, largest = float(np.median(sizes)), float(sizes.max())
    if largest >= MASKED_APART * usual:
        return (
            f"values of {magnitude(largest)} share a scale with others of {magnitude(usual)}, and its step is "
            f"{magnitude(step)}"
        )
    vanish = float(np.mean(sizes < step / 2))
    return f"its step is {magnitude(step)}, so that {percent(vanish)} of its values become 0" if vanish > 0.0 else ""


def _narrowed(
    inv: Investigation, evidence: Evidence, output: str, error: float, lost: str, apart: Mapping[str, float]
) -> Answer | None:
    """Judge a file typed in a narrow format: are its constants still what they were?"""
    assert evidence.model_diff is not None
    gone = vanished(evidence.model_diff)
    figure = apart["constants"]
    if not gone or not is_too_coarse(figure):
        return None  # what results cost, and what is beyond the format, is asked next
    share, name, user = gone[0]
    words = f"{len(gone)} constant{'s' * (len(gone) > 1)}, '{name}' first"
    inv.record.answered(QUESTION, f"{lost}: {words}, lie below what the format holds", **apart)
    culprits = [
        Culprit(node, file_op, value, reason=f"{percent(part)} of its constant '{value}' lies below the normal numbers")
        for part, value, (node, file_op) in gone[:_NAMED]
    ]
    reason = (
        f"{percent(share)} of the constant '{name}' at {user[1]} '{user[0]}' lies below the format's normal numbers"
    )
    if not is_lost(error) or inv.question.inputs_word != "real":
        sound = _found(evidence, output, error, f"{lost} is lost; {reason}", tuple(culprits))
        return Answer(findings=Findings(quantization=sound))
    return Answer(
        Conclusion(
            VerdictKind.RANGE_OVERFLOW,
            DESTROYED,
            f"this format destroys the answer: {lost} is lost; {reason}; scale them up, or keep them in float32",
            culprits=culprits,
            next=[search_command(inv.question, "--fp16", "--sqnr", "20")],
        )
    )


def vanished(matched: Correspondence) -> list[tuple[float, str, tuple[str, str]]]:
    """Return the narrow constants that became mostly zero or subnormal, with their readers, worst first."""
    graph, found = matched.changed.graph, []
    for name, spec in graph.constants.items():
        user = next(iter(graph.consumers(name)), None)
        if spec.dtype is None or not spec.dtype.is_float or spec.dtype.bits != 16 or user is None:
            continue
        array = graph.weight(name).astype(np.float64)
        share = float(np.mean(np.abs(array) < float(spec.dtype.finfo.smallest_normal))) if array.size > 1 else 0.0
        before = matched.constants.get(name)
        was = matched.original.graph.weight(before) if before else array
        if share > _MOST and was.any():
            found.append((share, name, (user.name, user.op_type)))
    return sorted(found, reverse=True)
