"""The numbers to explain, and the model to explain them by, from a conclusion of the ladder.

Where an op was seen with its operands (on golden values, or next to PyTorch's), only that op is examined; where a side
shows outputs alone, or runs another file, the whole model is.
"""

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.sdk import (
    FED_OTHERWISE,
    OBSERVED,
    PLAIN,
    Casting,
    Conclusion,
    EngineSpec,
    Evidence,
    Feed,
    Investigation,
    Model,
    TensorStore,
    VerdictKind,
    WrongPart,
    check_feed,
    error_of,
    explode,
    golden_operands,
    limits_of,
    measure,
    outside_envelope,
    value_specs,
)
from tensortriage.model.sdk import Correspondence, ValueSpec
from tensortriage_meanings.differing import differing
from tensortriage_meanings.search import Tensors, Unexplained

_SURE = 0.7
"""Confidence below which a verdict of rounding is doubted, on a model that amplifies it and whose ops were not seen."""
_SCALED = frozenset({
    "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
    "InstanceNormalization", "GroupNormalization", "LpNormalization", "MeanVarianceNormalization",
})  # fmt: skip
"""Operators that undo a scale of their input but for their epsilon: another scale of the input is another epsilon."""
_AT_OPS = (VerdictKind.LOCAL_FAULT, VerdictKind.NON_FINITE, VerdictKind.LAYOUT)
"""Verdicts about ops that were seen alone."""
_UNTOLD = ("", "added", "removed", "op-type", "weight", "wiring")
"""Kinds of changes that do not alter the interpretation of a file."""


class DisputingSide(enum.Enum):
    """The side whose numbers differ from the model's; the value names ONNX's side, and begins the cure."""

    TARGET = (
        "ONNX's specification agrees with the reference: make the target follow the model or, if its numbers are "
        "intended, "
    )
    FILE = "To make the model match, "
    SOURCE = "ONNX's specification agrees with the file as it is written, so the file has to change: "
    """The reference, or the network that the file was made from."""
    MODEL = "To make the file match, "
    """The original, whose numbers its other file has once an op of that file is changed."""


@dataclasses.dataclass(frozen=True)
class Disputer:
    """The side whose numbers differ from the model's.

    Attributes:
        name: As the subject of a sentence.
        side: Whether it is the target, its file, or the source of the model.
        engine: The engine whose limits hold for its numbers; None for an unknown one.
    """

    name: str
    side: DisputingSide
    engine: EngineSpec | None = None


@dataclasses.dataclass(frozen=True)
class Disputed:
    """Numbers of one side that differ from the model's.

    Attributes:
        subject: The model, and the numbers.
        feed: The model's inputs.
        who: Name of the side that computed them.
        whole: Whether the whole model is examined, since nothing inside was seen.
        together: Whether ops are examined that are right alone, so that nobody can have intended the numbers.
        value: The output in the report.
    """

    subject: Unexplained
    feed: Feed
    who: Disputer
    whole: bool
    value: str
    together: bool = False


def disputed(inv: Investigation, evidence: Evidence) -> Disputed | None:
    """Return the difference to explain in a fault; None if it cannot be one of meaning."""
    found = evidence.concluded
    if found is None:
        return None
    question, kind, matched = inv.question, found.kind, evidence.model_diff
    if kind is VerdictKind.MODEL_CHANGED and (part := evidence.wrong_part) is not None:
        return _of_network(inv, part)
    if kind is VerdictKind.MODEL_CHANGED and question.target_model is not None:
        is_understood = found.culprits and found.culprits[0].change not in _UNTOLD
        return None if is_understood else _among(_of_file(inv, question.target_model), matched)
    if not evidence.results:
        return _of_nan(inv) if kind is VerdictKind.COMPARISON_UNSOUND else None
    feed = evidence.worst_feed.feed
    reference, target = (
        Disputer(str(engine), side, engine)
        for engine, side in ((question.reference, DisputingSide.SOURCE), (question.target, DisputingSide.TARGET))
    )
    unsound, fed = kind is VerdictKind.COMPARISON_UNSOUND, found.confidence is FED_OTHERWISE
    outside = unsound and outside_envelope(evidence.worst_feed.floors, inv.model.graph.values)
    if outside and found.culprits:
        return _of_ops(inv, feed, found, reference)
    known = fed or found.confidence is OBSERVED or found.culprits
    if unsound and not known and inv.golden.are_outputs_alone(feed):
        return _of_outputs(inv, feed, inv.golden.outputs(feed), reference)
    if fed and _SCALED.intersection(node.op_type for node in inv.model.graph.nodes):
        return _of_outputs(inv, feed, inv.deployed(feed), target)
    misread = kind is VerdictKind.QUANTIZATION and question.target_model is None and evidence.local is not None
    if (misread or kind in _AT_OPS) and found.culprits and evidence.local is not None:
        return _of_ops(inv, feed, found, target)
    if kind is VerdictKind.FUSION_FAULT and evidence.local is not None:
        return _of_set(inv, feed, found, target)
    unseen = evidence.local is None or not evidence.local.metrics
    if kind is VerdictKind.ROUNDING:  # ties that are decided otherwise look like rounding
        unseen = found.lost or (unseen and found.confidence_on(question.inputs_word) < _SURE)
    if kind in (VerdictKind.INCONCLUSIVE, VerdictKind.ROUNDING) and unseen and not evidence.worst_feed.passes:
        return _of_outputs(inv, feed, inv.deployed(feed), target)
    return None


def disputed_by_original(inv: Investigation, evidence: Evidence) -> Disputed | None:
    """Return the original's outputs, on another file of it with other ops: one may stand for several, and wrongly."""
    found, file = evidence.concluded, inv.question.target_model
    if found is None or found.kind is not VerdictKind.MODEL_CHANGED or file is None or evidence.wrong_part is not None:
        return None
    if found.culprits and found.culprits[0].change == "weight":
        return None
    feed, reference = inv.question.feeds[0], inv.question.reference
    theirs = inv.lab.outputs(reference, inv.model, feed)
    outputs = {spec.name: np.asarray(theirs[spec.name]) for spec in file.outputs if spec.name in theirs}
    fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
    about = _disputed(inv, file, fed, outputs, Disputer("the original", DisputingSide.MODEL, reference))
    return None if about is None else _among(dataclasses.replace(about, whole=True), evidence.model_diff)


def disputed_whole(inv: Investigation, evidence: Evidence) -> Disputed | None:
    """Return the outputs of a network of which a part differs: inner values have narrower limits than engines keep."""
    part = evidence.wrong_part
    if part is None:
        return None
    return _of_outputs(
        inv, part.feed, part.values, Disputer("PyTorch's network", DisputingSide.SOURCE, inv.question.network)
    )


def _of_nan(inv: Investigation) -> Disputed | None:
    """Return the target's outputs on a feed where the reference gives NaN, as in fully masked rows."""
    target = Disputer(str(inv.question.target), DisputingSide.TARGET, inv.question.target)
    for feed in inv.question.feeds:
        store = inv.golden.outputs(feed)
        arrays = (np.asarray(store[spec.name]) for spec in inv.model.outputs if spec.name in store)
        if any(array.dtype.kind == "f" and np.isnan(array).any() for array in arrays):
            return _of_outputs(inv, feed, inv.deployed(feed), target)
    return None


def _of_network(inv: Investigation, part: WrongPart) -> Disputed | None:
    """Return the nodes that differ from PyTorch's operations, fed with its values."""
    who = Disputer("PyTorch's network", DisputingSide.SOURCE, inv.question.network)
    known = {**part.feed.tensors, **part.values}
    specs = value_specs(inv.model, {name: ValueSpec.of(name, array) for name, array in known.items()})
    static = {name: known[name] for name in inv.model.graph.shape_like if name in known}
    exploded = explode(inv.model, [part.nodes], specs=specs, shape_values=static)
    if not set(exploded.feeds.values()) <= known.keys() or part.value not in exploded.outputs:
        return _of_outputs(inv, part.feed, part.values, who)
    feed = Feed(f"{part.feed.name} apart", {n: known[v] for n, v in exploded.feeds.items()}, part.feed.origin)
    return _disputed(inv, exploded.model, feed, {part.value: part.values[part.value]}, who, around=part.feed)


def _of_file(inv: Investigation, file: Model) -> Disputed | None:
    """Return the outputs of another file, on the reference."""
    feed, reference = inv.question.feeds[0], inv.question.reference
    theirs = inv.lab.outputs(reference, file, check_feed(feed, file.inputs, casting=Casting.ROUND))
    return _of_outputs(inv, feed, theirs, Disputer("the target's file", DisputingSide.FILE, reference))


def _among(about: Disputed | None, matched: Correspondence | None) -> Disputed | None:
    """Return a dispute of a file and its original, in which only their differences are asked about."""
    if about is None or matched is None:
        return about
    among = differing(matched, about.subject.model.graph)
    return dataclasses.replace(about, subject=dataclasses.replace(about.subject, among=among))


def _of_ops(inv: Investigation, feed: Feed, found: Conclusion, who: Disputer) -> Disputed | None:
    """Return the ops of the first culprit's kind, on golden operands, as the target or the reference computes them."""
    first = found.culprits[0]
    alike = [each for each in found.culprits if each.op_type == first.op_type]
    ops = golden_operands(inv, feed).apart([[node] for node in dict.fromkeys(each.node for each in alike)])
    values = [each.value for each in alike if each.value in ops.values]
    if not values or who.engine is None:
        return None
    seen = who.side is DisputingSide.SOURCE
    store = inv.golden.of(feed) if seen else inv.lab.values(who.engine, ops.model, ops.feed, values)
    return _disputed(inv, ops.model, ops.feed, {name: np.asarray(store[name]) for name in values}, who, around=feed)


def _of_set(inv: Investigation, feed: Feed, found: Conclusion, who: Disputer) -> Disputed | None:
    """Return ops that are wrong only together, wired to each other, on golden operands."""
    nodes = [each.node for each in found.culprits]
    if not nodes or who.engine is None:
        return None
    ops = golden_operands(inv, feed).apart([nodes], ends_only=True)
    made = inv.lab.outputs(who.engine, ops.model, ops.feed)
    theirs = {name: np.asarray(made[name]) for name in ops.values}
    about = _disputed(inv, ops.model, ops.feed, theirs, who, around=feed)
    return None if about is None else dataclasses.replace(about, together=True)


def _of_outputs(inv: Investigation, feed: Feed, theirs: Tensors | TensorStore, who: Disputer) -> Disputed | None:
    """Return the outputs of the whole model."""
    outputs = {spec.name: np.asarray(theirs[spec.name]) for spec in inv.model.outputs if spec.name in theirs}
    found = _disputed(inv, inv.model, feed, outputs, who)
    return None if found is None else dataclasses.replace(found, whole=True)


def _disputed(
    inv: Investigation, model: Model, feed: Feed, theirs: Tensors, who: Disputer, *, around: Feed | None = None
) -> Disputed | None:
    """Return a dispute about a model: its reference runs the changed ones, unless it is the disputing side.

    Args:
        inv: The investigation.
        model: The model, or a part of it.
        feed: Its inputs.
        theirs: The other side's numbers.
        who: The other side.
        around: Inputs of the whole model; the feed by default.
    """
    if not theirs:
        return None
    around = around or feed
    reference = inv.question.reference
    if who.side is DisputingSide.SOURCE:  # ONNX Runtime's own meaning is told by another's arithmetic
        reference = PLAIN if who.engine != PLAIN else EngineSpec("float64")
    question = dataclasses.replace(
        inv.question, feeds=(feed,), reference=reference, target=who.engine or PLAIN, target_model=None, network=None,
        tolerance=None, sweep=(), against=None, others=None, kept=(),
    )  # fmt: skip

    def run(changed: Model) -> Tensors:
        with inv.lab.session(reference, changed, sequence=True) as ask:
            return ask(feed)

    def limits(changed: Model, made: Tensors) -> Mapping[str, float] | None:
        return _limits(inv.about(dataclasses.replace(question, model=changed)), feed, made, theirs)

    subject = Unexplained(model, run, theirs, limits, feed.tensors, around.tensors, open_sizes(inv.model, around))
    return Disputed(subject, feed, who, False, next(iter(theirs)))


def open_sizes(model: Model, feed: Feed) -> dict[str, int]:
    """Return the size that a feed gives to each open dimension of a model's inputs, by the dimension's name."""
    return {
        str(name): size
        for spec in model.inputs
        if spec.name in feed.tensors
        for name, size in zip(spec.shape or (), feed.tensors[spec.name].shape, strict=False)
        if isinstance(name, str)
    }


def _limits(inv: Investigation, feed: Feed, made: Tensors, theirs: Tensors) -> Mapping[str, float] | None:
    """Return the limits of a model's outputs if the judge finds that the other side's are within; None otherwise."""
    figures = {name: measure(made[name], array) for name, array in theirs.items()}
    limits = limits_of(inv, feed, figures, apart={}, asked=False)
    errors = {name: float(error_of(figure)) for name, figure in figures.items()}
    if any(name not in limits or not limits[name].allows(error) for name, error in errors.items()):
        return None
    return {name: limits[name].error for name in errors}
