"""Of several attributes that a file changed at one op, which makes the difference? Each is tried alone."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    Answer,
    Casting,
    Conclusion,
    Evidence,
    Graph,
    Investigation,
    TriageError,
    VerdictKind,
    check_feed,
    is_minor,
    rung,
)
from tensortriage.model.sdk import Correspondence
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import Unexplained
from tensortriage_meanings.site import Meaning

_FLATTENS = (
    13,
    "normalizes all axes from `axis` on (1 by default) before opset 13, and one axis (-1 by default) since",
)
OTHERWISE_SINCE = {
    "Softmax": _FLATTENS,
    "LogSoftmax": _FLATTENS,
    "Hardmax": _FLATTENS,
    "Resize": (11, "maps pixels by `asymmetric` before opset 11, and by `half_pixel` by default since"),
    "GroupNormalization": (21, "has a scale per group before opset 21, and one per channel since"),
}
"""Operators that compute something else from an opset on, without another attribute: the opset, and the difference."""
QUESTION = "which of its attributes makes the difference?"


@rung(
    QUESTION,
    reads=("concluded", "model_diff"),
    cost="a run of the reference for each attribute that differs",
    ends=(VerdictKind.MODEL_CHANGED,),
    after="what is at fault?",
)
def attribute_apart(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Name first the attribute that makes the difference, where several of the first culprit differ."""
    found, matched = evidence.concluded, evidence.model_diff
    if found is None or found.kind is not VerdictKind.MODEL_CHANGED or matched is None or not found.culprits:
        return None
    first = found.culprits[0]
    changes = matched.diff.at.get(first.node, ())
    own = changes[0].reference_node if changes else ""
    ways = _ways(matched, own, first.node)
    differing = {change.reason: way for change in changes for way in ways if way.words in change.reason}
    if first.change == "attribute" and not differing:
        return _by_opset(inv, matched, found)
    if not differing or not first.reason:
        return None
    try:
        needed, left = _enough(inv, matched, own, differing)
    except TriageError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not is_minor(left, 1.0):
        inv.record.answered(QUESTION, "none of them, alone or together", left=left)
        return None
    cure = f"; cure: {_cure(matched, own, first.node, [differing[each] for each in needed])}"
    summary = found.summary + cure
    if len(differing) == 1:
        inv.record.answered(QUESTION, f"it does: {_short(needed[0])}", left=left)
        return dataclasses.replace(found, summary=summary)
    rest = [_short(each) for each in differing if each not in needed]
    together = "alone" if len(needed) == 1 else "together"
    words = ", ".join([needed[0], *map(_short, needed[1:])])
    reason = f"{words}, which make{'s' * (len(needed) == 1)} the difference {together}"
    reason += f"; of no matter here: {'; '.join(rest)}" if rest else ""
    inv.record.answered(QUESTION, words, left=left)
    culprits = [dataclasses.replace(first, reason=reason), *found.culprits[1:]]
    return dataclasses.replace(found, summary=summary.replace(first.reason, reason, 1), culprits=culprits)


def _cure(matched: Correspondence, own: str, other: str, ways: Sequence[Meaning]) -> str:
    """Return the line to write into the file, so that it has the original's attributes."""
    was = _attributes(matched.original.graph, own)
    names = [name for way in ways for name in way.attributes]
    given = [f"{name}={_said(was[name])}" for name in names if name in was]
    without = [name for name in names if name not in was]
    steps = [f"set {', '.join(given)}"] * bool(given) + [f"leave {', '.join(without)} out"] * bool(without)
    path = matched.changed.path
    return f"{' and '.join(steps)} at '{other}' of {path.name if path else 'the file'}, as the original has it"


def _said(value: object) -> str:
    return str(np.float32(value)) if isinstance(value, float) else str(_plain(value))


def _by_opset(inv: Investigation, matched: Correspondence, found: Conclusion) -> Conclusion | None:
    """Return the conclusion with the cause where an operator means something else since another opset is declared."""
    first, opsets = found.culprits[0], (matched.original.opset, matched.changed.opset)
    since, words = OTHERWISE_SINCE.get(first.op_type, (0, ""))
    if not min(opsets) < since <= max(opsets):
        return None
    inv.record.answered(QUESTION, f"none: {first.op_type} means something else from opset {since} on")
    return dataclasses.replace(
        found,
        summary=f"{found.summary}: the original declares opset {opsets[0]} and the file {opsets[1]}, and "
        f"{first.op_type} {words}; cure: raise the opset with onnx.version_converter, not by its number",
    )


def _short(reason: str) -> str:
    return reason.rpartition("in another way: ")[2]


def _ways(matched: Correspondence, own: str, other: str) -> Sequence[Meaning]:
    """Return each attribute of a node of the file as a change of the original's; its name is in the words."""
    was, now = _attributes(matched.original.graph, own), _attributes(matched.plain.graph, other)
    names = (name for name in {**was, **now} if was.get(name) != now.get(name))
    return [Meaning(f" {name}", {name: _plain(now.get(name))}) for name in names]


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _attributes(graph: Graph, name: str) -> Mapping[str, object]:
    return graph.node(name).attributes if name in graph else {}


def _enough(
    inv: Investigation, matched: Correspondence, own: str, differing: Mapping[str, Meaning]
) -> tuple[list[str], float]:
    """Return the fewest changes of a node, by their words, that give the file's outputs, and the remaining error.

    The one that comes nearest is kept, then the one that comes nearest on top of it.
    """
    feed, reference, file = inv.question.feeds[0], inv.question.reference, matched.changed
    theirs = inv.lab.outputs(reference, file, check_feed(feed, file.inputs, casting=Casting.ROUND))
    outputs = {spec.name: np.asarray(theirs[spec.name]) for spec in inv.model.outputs if spec.name in theirs}
    rewriter = Rewriter(matched.original)

    def off(words: Sequence[str]) -> float:
        attributes = {name: value for each in words for name, value in differing[each].attributes.items()}
        try:
            changed = rewriter.rewritten({own: Meaning("", attributes)}) if words else matched.original
            return subject.distance(inv.lab.outputs(reference, changed, feed))
        except (TriageError, ValueError, TypeError):
            return math.inf

    subject = Unexplained(matched.original, lambda _: {}, outputs, lambda *_: None)
    before, kept, left = off([]), list[str](), 1.0
    while len(kept) < len(differing) and before and not is_minor(left, 1.0):
        tried = {each: off([*kept, each]) / before for each in differing if each not in kept}
        kept.append(min(tried, key=tried.__getitem__))
        left = tried[kept[-1]]
    return kept, left
