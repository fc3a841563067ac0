"""Whose numbers are to be explained, by which model: asked of a conclusion of the ladder.

Where an op was seen with its operands (on golden values, or beside PyTorch's), it is asked about alone; where somebody
shows outputs alone, or runs another file, about the whole model.
"""

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.sdk import (
    PLAIN,
    Casting,
    Conclusion,
    EngineSpec,
    Evidence,
    Feed,
    Investigation,
    MemoryStore,
    Model,
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
from tensortriage.model.sdk import ValueSpec
from tensortriage_meanings.search import Subject, Tensors

_SURE = 0.7
"""Confidence below which rounding is said of a model that amplifies it, and ops were not seen: ties do so, too."""
_UNTOLD = ("", "added", "removed", "op-type", "weight", "wiring")
"""Words of changes that do not say what a file means otherwise."""


class Side(enum.Enum):
    """Who computes other numbers than the model; the value says with whom ONNX sides, and begins what to do."""

    TARGET = (
        "ONNX's specification sides with the reference: let the target compute what the model says or, if its numbers "
        "are meant, "
    )
    FILE = "To have the model say the same, "
    SOURCE = "ONNX's specification sides with the file as it is written, so that the file has to say it: "
    """The reference, or the network that the file was made from."""


@dataclasses.dataclass(frozen=True)
class Disputed:
    """Numbers of somebody that the model does not give.

    Attributes:
        subject: The model, and the numbers.
        who: Who computes them, as the subject of a sentence.
        side: Whose numbers they are.
        whole: Whether the whole model is asked about, since nothing inside was seen.
        value: The output that is told of.
    """

    subject: Subject
    who: str
    side: Side
    whole: bool
    value: str


def disputed(inv: Investigation, evidence: Evidence) -> Disputed | None:
    """Return what a fault leaves to be explained; None where it is no matter of what operators mean."""
    found = evidence.concluded
    if found is None:
        return None
    question, kind = inv.question, found.kind
    if kind is VerdictKind.MODEL_CHANGED and (part := evidence.wrong_part) is not None:
        return _of_network(inv, part)
    if kind is VerdictKind.MODEL_CHANGED and question.target_model is not None:
        told = found.culprits and found.culprits[0].change not in _UNTOLD
        return None if told else _of_file(inv, question.target_model)
    if not evidence.results:
        return None
    feed = evidence.worst_feed.feed
    if kind is VerdictKind.COMPARISON_UNSOUND and outside_envelope(evidence.worst_feed.floors, inv.model.graph.values):
        if found.culprits:
            return _of_ops(inv, feed, found, question.reference)
        if inv.golden.are_outputs_alone(feed):
            store = inv.golden.outputs(feed)
            outputs = {spec.name: np.asarray(store[spec.name]) for spec in inv.model.outputs if spec.name in store}
            return _of_outputs(inv, feed, outputs, question.reference)
    if kind in (VerdictKind.LOCAL_FAULT, VerdictKind.NON_FINITE) and found.culprits:
        return _of_ops(inv, feed, found, question.target)
    doubted = kind is VerdictKind.INCONCLUSIVE or (
        kind is VerdictKind.ROUNDING and found.confidence_on(question.inputs_word) < _SURE
    )
    if doubted and not evidence.worst_feed.passes and (evidence.local is None or not evidence.local.metrics):
        return _of_outputs(inv, feed, inv.deployed(feed), question.target)
    return None


def _of_network(inv: Investigation, part: WrongPart) -> Disputed | None:
    """Return the nodes that stand for something else than PyTorch's, fed with its values."""
    known = {**part.feed.tensors, **part.values}
    specs = value_specs(inv.model, {name: ValueSpec.of(name, array) for name, array in known.items()})
    static = {name: known[name] for name in inv.model.graph.shape_like if name in known}
    exploded = explode(inv.model, [part.nodes], specs=specs, shape_values=static)
    if not set(exploded.feeds.values()) <= known.keys() or part.value not in exploded.outputs:
        return _whole(inv, part.feed, part.values, "PyTorch's network", side=Side.SOURCE, target=inv.question.network)
    feed = Feed(f"{part.feed.name} apart", {n: known[v] for n, v in exploded.feeds.items()}, part.feed.origin)
    theirs = {part.value: part.values[part.value]}
    return _disputed(inv, exploded.model, feed, theirs, "PyTorch's network", target=inv.question.network)


def _of_file(inv: Investigation, file: Model) -> Disputed | None:
    """Return the outputs of another file, on the reference."""
    feed = inv.question.feeds[0]
    fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
    theirs = inv.lab.outputs(inv.question.reference, file, fed)
    return _whole(inv, feed, theirs, "the target's file", side=Side.FILE, target=inv.question.reference)


def _of_outputs(inv: Investigation, feed: Feed, theirs: Tensors, who: EngineSpec) -> Disputed | None:
    return _whole(inv, feed, theirs, str(who), side=_side(inv, who), target=who)


def _of_ops(inv: Investigation, feed: Feed, found: Conclusion, who: EngineSpec) -> Disputed | None:
    """Return the ops of the first culprit's kind, on golden operands, as the target or the reference computes them."""
    first = found.culprits[0]
    alike = [each for each in found.culprits if each.op_type == first.op_type]
    ops = golden_operands(inv, feed).apart([[each.node] for each in alike])
    values = [each.value for each in alike if each.value in ops.values]
    if not values:
        return None
    seen = _side(inv, who) is Side.SOURCE
    store = inv.golden.of(feed) if seen else inv.lab.values(who, ops.model, ops.feed, values)
    theirs = {name: np.asarray(store[name]) for name in values}
    return _disputed(inv, ops.model, ops.feed, theirs, str(who), target=who, side=_side(inv, who))


def _side(inv: Investigation, who: EngineSpec) -> Side:
    return Side.TARGET if who == inv.question.target else Side.SOURCE


def _whole(
    inv: Investigation,
    feed: Feed,
    theirs: Mapping[str, np.ndarray],
    who: str,
    *,
    side: Side,
    target: EngineSpec | None,
) -> Disputed | None:
    outputs = {spec.name: np.asarray(theirs[spec.name]) for spec in inv.model.outputs if spec.name in theirs}
    found = _disputed(inv, inv.model, feed, outputs, who, target=target, side=side)
    return None if found is None else dataclasses.replace(found, whole=True)


def _disputed(
    inv: Investigation,
    model: Model,
    feed: Feed,
    theirs: Tensors,
    who: str,
    *,
    target: EngineSpec | None,
    side: Side = Side.SOURCE,
) -> Disputed | None:
    """Return a dispute about a model: its reference, unless that is who disputes it, is asked about changed ones."""
    if not theirs:
        return None
    own = inv.question.reference
    reference = PLAIN if side is Side.SOURCE else own
    lab = inv.lab

    def run(changed: Model) -> Tensors:
        with lab.session(reference, changed, sequence=True) as ask:
            made = ask(feed)
        return {name: made[name] for name in theirs if name in made}

    def agrees(changed: Model, made: Tensors) -> Mapping[str, float] | None:
        return _limits(inv, changed, feed, made, theirs, target=target or PLAIN, reference=reference)

    return Disputed(Subject(model, run, theirs, agrees), who, side, False, next(iter(theirs)))


def _limits(
    inv: Investigation,
    model: Model,
    feed: Feed,
    made: Tensors,
    theirs: Tensors,
    *,
    target: EngineSpec,
    reference: EngineSpec,
) -> Mapping[str, float] | None:
    """Return the limits of a model's outputs if the judge finds that the other side's are within; None otherwise."""
    question = dataclasses.replace(
        inv.question, model=model, feeds=(feed,), reference=reference, target=target, target_model=None, network=None,
        tolerance=None, sweep=(), against=None, others=None, kept=(),
    )  # fmt: skip
    about = inv.about(question)
    figures = {name: measure(made[name], array) for name, array in theirs.items()}
    limits = limits_of(about, feed, figures, golden=MemoryStore(dict(made)), apart={}, asked=False)
    errors = {name: float(error_of(figure)) for name, figure in figures.items()}
    if any(name not in limits or not limits[name].allows(error) for name, error in errors.items()):
        return None
    return {name: limits[name].error for name in errors}
