"""Does either side interpret an operator differently? For a fault whose place or cause is not known by then."""

import dataclasses
import math
from collections.abc import Iterator
from functools import partial

from tensortriage.diagnose.sdk import (
    FED_OTHERWISE,
    Answer,
    Conclusion,
    Confidence,
    Culprit,
    Evidence,
    Feed,
    Graph,
    Investigation,
    TriageError,
    VerdictKind,
    enumeration,
    error_size,
    is_foreign,
    rung,
)
from tensortriage_meanings.reads import reads_of
from tensortriage_meanings.search import MeaningFound, Ways, explained
from tensortriage_meanings.site import Meaning
from tensortriage_meanings.subject import Disputed, DisputingSide, disputed, disputed_by_original, disputed_whole
from tensortriage_meanings.table.attributes import ATTRIBUTES
from tensortriage_meanings.table.bodies import BODIES
from tensortriage_meanings.table.ends import ENDS
from tensortriage_meanings.table.instead import INSTEAD
from tensortriage_meanings.table.normalizations import NORMALIZATIONS
from tensortriage_meanings.table.operands import BATCHES, OPERANDS
from tensortriage_meanings.table.pixels import PIXELS
from tensortriage_meanings.table.places import PLACES
from tensortriage_meanings.table.pools import NEIGHBOURS, POOLS
from tensortriage_meanings.table.quantizers import QUANTIZERS
from tensortriage_meanings.table.recurrent import LOOPS, RECURRENT
from tensortriage_meanings.table.sets import SETS, STRETCHES
from tensortriage_meanings.table.signatures import SIGNATURES
from tensortriage_meanings.table.ties import TIES

QUESTION = "does either side interpret an operator differently?"
TABLE = (
    *ATTRIBUTES, *BODIES, *NORMALIZATIONS, *ENDS, *OPERANDS, *PLACES, *POOLS, *RECURRENT, *LOOPS, *QUANTIZERS, *TIES,
    *NEIGHBOURS, *BATCHES,
)  # fmt: skip
MEANT_OTHERWISE = Confidence(
    0.95, 0.9, "the model with one known difference gives the other side's outputs; two may look alike on these inputs"
)
EITHER = Confidence(0.55, 0.5, "another input and another meaning of an operator give the same outputs")
_MOST_TOLD = 3


@dataclasses.dataclass(frozen=True)
class MeaningTold:
    """The stored part of an answer.

    Attributes:
        sentence: The difference in meaning, the side that computes it so, and advice; empty where none was found.
        words: The difference at each node, by its name.
        off: How far the model is from the other side's numbers as it stands.
        ratio: The share of a limit that it is off by once it is changed.
        is_open: Whether ONNX leaves all of it open.
    """

    sentence: str = ""
    words: dict[str, str] = dataclasses.field(default_factory=dict)
    off: str = ""
    ratio: float = 0.0
    is_open: bool = False


@rung(
    QUESTION,
    reads=("concluded", "results", "local", "wrong_part", "model_diff"),
    cost="runs of the reference for 15 s, if the model has operators with several interpretations",
    ends=(
        VerdictKind.MODEL_CHANGED,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.LOCAL_FAULT,
        VerdictKind.NON_FINITE,
        VerdictKind.LAYOUT,
        VerdictKind.FUSION_FAULT,
        VerdictKind.QUANTIZATION,
        VerdictKind.INCONCLUSIVE,
        VerdictKind.ROUNDING,
    ),
    after="what is at fault?",
)
def meant_otherwise(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Try known differences of meaning on the model, until it gives the numbers of the side that differs."""
    conclusion = evidence.concluded
    if conclusion is None:
        return None
    try:
        about = disputed(inv, evidence)
        if about is None:
            return None
        inv.lab.progress("trying known differences of meaning")
        told = _told(inv, about)
        if not told.sentence and not about.whole and (whole := disputed_whole(inv, evidence)) is not None:
            about, told = whole, _told(inv, whole)
        if not told.sentence and (original := disputed_by_original(inv, evidence)) is not None:
            about, told = original, _told(inv, original)
    except TriageError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not told.sentence:
        inv.record.answered(QUESTION, "no: no known difference of meaning gives those numbers")
        return _unexplained(conclusion, about)
    inv.record.answered(QUESTION, f"yes: {told.sentence}", nodes=list(told.words), before=told.off, ratio=told.ratio)
    return _concluded(inv, conclusion, about, told)


def _told(inv: Investigation, about: Disputed) -> MeaningTold:
    """Return the answer about a dispute, asked once."""
    theirs = Feed("theirs", about.subject.theirs, about.feed.origin)
    place = inv.lab.derived(MeaningTold, QUESTION, about.subject.model, about.feed, theirs, about.who.name)
    return place.of(lambda: searched(about, seconds=inv.lab.budget.left))


def _unexplained(conclusion: Conclusion, about: Disputed) -> Conclusion | None:
    """Return an undecided conclusion with advice on a program that shows its outputs alone; None for others."""
    if (
        conclusion.kind is not VerdictKind.INCONCLUSIVE
        or about.who.engine is None
        or not is_foreign(about.who.engine.name)
    ):
        return None
    return dataclasses.replace(
        conclusion,
        summary=f"{conclusion.summary}; neither another input nor a known difference of meaning gives its outputs, so "
        "that its network may be another one: compare its file with --target-model, which shows other weights, or have "
        "it run the model that it is given, so that its ops can be asked one by one",
    )


def searched(about: Disputed, *, seconds: float = math.inf) -> MeaningTold:
    """Try the whole table on a dispute, for so long at most."""
    tables = (TABLE, PIXELS, INSTEAD, SIGNATURES, STRETCHES, *([SETS] if about.together else []))
    seen = partial(reads_of, about.subject, about.feed.tensors)
    found = explained(about.subject, *tables, seconds=seconds, seen=seen)
    if found is None:
        return MeaningTold()
    words = {name: way.words for name, way in found.ways.items()}
    is_open = all(way.is_open for way in found.ways.values())
    return MeaningTold(_sentence(about, found), words, error_size(found.before), found.agreement.ratio, is_open)


def _concluded(inv: Investigation, conclusion: Conclusion, about: Disputed, told: MeaningTold) -> Conclusion:
    """Return the conclusion with the cause."""
    if conclusion.confidence is FED_OTHERWISE:
        summary = f"{conclusion.summary}. The same outputs come of another meaning: {told.sentence}"
        return dataclasses.replace(conclusion, summary=summary, confidence=EITHER)
    graph = about.subject.model.graph if about.who.side is DisputingSide.MODEL else inv.model.graph
    named = [
        Culprit(node.name, node.op_type, node.outputs[0], reason=f"is computed as if {words}")
        for node, words in ((graph.node(name), words) for name, words in told.words.items() if name in graph)
    ]
    known = {culprit.node: culprit for culprit in conclusion.culprits}
    culprits = [
        dataclasses.replace(known[each.node], reason=f"{known[each.node].reason}; {each.reason}")
        if each.node in known
        else each
        for each in named
    ]
    if conclusion.kind is not VerdictKind.MODEL_CHANGED or about.who.side is DisputingSide.MODEL:
        culprits += [each for each in conclusion.culprits if each.node not in told.words]
    if told.is_open:
        return dataclasses.replace(
            conclusion, kind=VerdictKind.ROUNDING, confidence=MEANT_OTHERWISE, summary=told.sentence, culprits=named,
            lost=False,
        )  # fmt: skip
    of_nan = conclusion.kind is VerdictKind.COMPARISON_UNSOUND and about.who.side is DisputingSide.TARGET
    if not about.whole or of_nan or conclusion.kind is VerdictKind.MODEL_CHANGED:
        return dataclasses.replace(conclusion, summary=f"{conclusion.summary}; {told.sentence}", culprits=culprits)
    what = f"{about.who.name} and the model disagree: output '{about.value}' differs by {told.off}"
    kind = VerdictKind.MODEL_CHANGED if about.who.side is DisputingSide.TARGET else conclusion.kind
    return dataclasses.replace(
        conclusion,
        kind=kind,
        confidence=MEANT_OTHERWISE,
        summary=f"{what}; {told.sentence}",
        culprits=culprits,
        allowed_by=(),
        lost=False,
    )


def _sentence(about: Disputed, found: MeaningFound) -> str:
    """Return the difference in meaning, the side that has it, ONNX's own meaning, and the cure."""
    graph = about.subject.model.graph
    said = "; ".join(f"{nodes} as if {words}" for nodes, words in _named(graph, found.ways))
    which = "file" if about.who.side is DisputingSide.MODEL else "model"
    words = f"{about.who.name} computes {said}: with that change, the {which} gives its numbers"
    if found.equals:
        others = [_other(graph, ways, found.ways) for ways in found.equals]
        more = f" and {len(others) - _MOST_TOLD} more" if len(others) > _MOST_TOLD else ""
        words += f" (on these inputs as well as if {'; or if '.join(others[:_MOST_TOLD])}{more})"
    if about.together:  # a rewrite of several ops, which no file asks for
        known = "; ".join(dict.fromkeys(way.cure for way in found.ways.values() if way.cure))
        return f"{words}. Cure: {known}" if known else words
    cures = "; ".join(dict.fromkeys(_change(name, way) for name, way in found.ways.items()))
    side = "ONNX leaves that open: " if all(way.is_open for way in found.ways.values()) else about.who.side.value
    return f"{words}. {side}{cures}"


def _named(graph: Graph, ways: Ways) -> Iterator[tuple[str, str]]:
    """Yield nodes and how they are computed, as the rest of a sentence after "as if"."""
    by_words: dict[str, list[str]] = {}
    for name, way in ways.items():
        op = graph.node(name).op_type if name in graph else ""
        by_words.setdefault(way.words, []).append(f"{op} '{name}'")
    for words, nodes in by_words.items():
        yield enumeration(nodes), words


def _other(graph: Graph, ways: Ways, told: Ways) -> str:
    """Return an equal explanation, with its nodes where they are others than those that are told."""
    elsewhere = ways.keys() != told.keys()
    return " and ".join(f"at {nodes} {words}" if elsewhere else words for nodes, words in _named(graph, ways))


def _change(name: str, way: Meaning) -> str:
    if way.cure:
        return way.cure
    if way.attributes:
        return f"set {', '.join(f'{key}={value}' for key, value in way.attributes.items())} at '{name}'"
    return f"write the steps of '{name}' this way" if way.body else f"write that constant of '{name}' this way"
