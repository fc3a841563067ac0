"""How far a change goes: the layers with changed weights, and the rows of a batch with changed outputs."""

import contextlib
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_decisive, within_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.rungs.quantization.other_weights import share_beyond
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.unrounded_match import is_rounded
from tensortriage.errors import DataError, EngineError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.model.similarity.changes import ChangeKind
from tensortriage.model.similarity.correspondence import Correspondence

_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Where", "Clip", "PRelu"})
"""Operators whose constants belong to the layer before."""

_MOST_NAMED = 3

_WORDS = {
    ChangeKind.WEIGHT: "the weights differ",
    ChangeKind.WEIGHT_ROUNDED: "weights are rounded",
    ChangeKind.WEIGHT_COARSENED: "weights are rounded, clipped or zeroed",
    ChangeKind.WEIGHT_LIMITED: "constants are cut off",
    ChangeKind.WEIGHT_REORDERED: "weights are in another order",
    ChangeKind.WEIGHT_TRANSPOSED: "weights are transposed",
    ChangeKind.WEIGHT_RESCALED: "weights are rescaled",
    ChangeKind.WEIGHT_ADAPTED: "weights are moved by matrices of low rank",
}


def extent_of_weights(matched: Correspondence) -> str:
    """Return the number of layers with changed weights, and its meaning; empty with fewer than two layers.

    Of a file that is rounded, only quantized weights count, where most numbers are more than a step away.
    """
    layers, changed = [], dict[str, ChangeKind]()
    others = _others_of(matched) if is_rounded(matched.changed) else None
    for name, other in matched.diff.pairs.items():
        node, new = matched.original.graph.node(name), matched.plain.graph.node(other)
        if node.op_type in _ELEMENTWISE or not _weights(matched, new):
            continue
        layers.append(new)
        kinds = [change.kind for change in matched.diff.at.get(other, ()) if change.kind in _WORDS]
        if kinds and others is None and not _weights_differ(matched, node, new):
            kinds = []
        if kinds and others is not None:
            kinds = [ChangeKind.WEIGHT] if not others.isdisjoint(new.inputs) else []
        if kinds:
            changed[other] = max(kinds, key=lambda kind: (kind is ChangeKind.WEIGHT, kind.is_named_cause))
    seen = set(changed.values())
    if len(layers) < 2 or not seen or (len(changed) == 1 and ChangeKind.WEIGHT not in seen):
        return ""
    layers.sort(key=lambda node: node.index)
    words = _WORDS[next(iter(seen))] if len(seen) == 1 else _WORDS[ChangeKind.WEIGHT]
    extent = f"{words} in {len(changed)} of {len(layers)} layers"
    return extent + (_meaning(layers, list(changed)) if ChangeKind.WEIGHT in seen else "")


def _meaning(layers: list[Node], changed: list[str]) -> str:
    """Return the meaning of changed numbers in these layers."""
    same = [layer for layer in layers if layer.name not in changed]
    if not same:
        return ": another checkpoint"
    if 2 * len(changed) > len(layers):
        named = ", ".join(f"'{layer.name}'" for layer in same[:_MOST_NAMED])
        others = f" and {len(same) - _MOST_NAMED} more" if len(same) > _MOST_NAMED else ""
        return f", all but {named}{others}: another checkpoint, or one that was trained further"
    if {layer.name for layer in layers[-len(changed) :]} == {*changed}:
        return ", the last: a head that was retrained, or newly initialized from a checkpoint without it"
    return ""


def _weights(matched: Correspondence, node: Node) -> list[str]:
    known = matched.plain.graph.constants
    specs = ((name, known[name]) for name in node.inputs if name in known)
    return [
        n for n, s in specs if s.dtype is not None and s.dtype.is_float and any(size != 1 for size in s.shape or ())
    ]


def _weights_differ(matched: Correspondence, old: Node, new: Node) -> bool:
    """Return whether weights of a node differ, and not other constants alone (indices, sizes).

    They are looked for in every place: an operator of another opset reads them elsewhere (the scales of a Resize).
    """
    was, now = matched.original.graph, matched.plain.graph
    known = [was.weight(name) for name in old.inputs if name in was.constants]
    return not all(any(np.array_equal(each, now.weight(name)) for each in known) for name in _weights(matched, new))


def _others_of(matched: Correspondence) -> frozenset[str]:
    """Return the quantized weights most of whose rows are further from their original than rounding brings them."""
    weights, graph = matched.weights(), matched.paired.graph
    return frozenset(
        pair.result
        for pair in quantizers(graph)
        if pair.of_weight
        and len(graph.constants[pair.stored].shape or ()) > 1
        and pair.result in matched.constants
        and (pair.result not in weights or is_decisive(share_beyond(graph, pair, weights)))
    )


def extent_of_rows(golden: np.ndarray, found: np.ndarray, feed: Feed, floor: float) -> str:
    """Return that only the first rows of a batch are right; empty where that is not so.

    Args:
        golden: An output of the original.
        found: That output of the file.
        feed: The inputs.
        floor: Noise floor of the output.
    """
    rows = golden.shape[0] if golden.ndim else 1
    if rows < 2 or found.shape != golden.shape or not any(x.shape[:1] == (rows,) for x in feed.tensors.values()):
        return ""
    right = [within_fp32(error_of(measure(was, now)), floor) for was, now in zip(golden, found, strict=True)]
    first = right.index(False) if False in right else rows
    if not 0 < first < rows or any(right[first:]):
        return ""
    copies = all(np.array_equal(found[row], found[row % first]) for row in range(first, rows))
    which, they = (
        ("row 0 agrees", "the other") if first == 1 else (f"rows 0 to {first - 1} agree", "the rows from there on")
    )
    what = ", which are copies of it," if copies and first == 1 else ", which are copies of these," if copies else ""
    return (
        f"; of {rows} rows, {which} and {they}{'s' if first == 1 else ''}{what} do not: the file was made for a batch "
        f"of {first} (a loop over rows unrolled, or a size baked in, by the exporter)"
    )


def stays(inv: Investigation, changed: Model, feed: Feed, output: str, floor: float) -> bool:
    """Return whether the first rows of a batch agree also if they are others: it is not their data.

    Args:
        inv: The investigation, of the original.
        changed: The file.
        feed: The inputs on which only the first rows agree.
        output: Where they do.
        floor: Noise floor of the output.
    """
    moved = {name: np.roll(array, 1, axis=0) if array.ndim else array for name, array in feed.tensors.items()}
    other = Feed(f"{feed.name}, its rows moved by one", moved, feed.origin)
    with contextlib.suppress(EngineError, DataError):
        golden, found = (
            inv.lab.outputs(inv.question.reference, model, check_feed(other, model.inputs, casting=Casting.ROUND))
            for model in (inv.model, changed)
        )
        return bool(extent_of_rows(np.asarray(golden[output]), np.asarray(found[output]), other, floor))
    return True


def first_row(feed: Feed) -> Feed | None:
    """Return the first row of a batch as a feed of its own; None where inputs have no rows in common."""
    sizes = {array.shape[0] for array in feed.tensors.values() if array.ndim}
    if len(sizes) != 1 or sizes <= {0, 1}:
        return None
    tensors: Mapping[str, np.ndarray] = {n: x[:1] if x.ndim else x for n, x in feed.tensors.items()}
    return Feed(f"row 0 of {feed.name}", dict(tensors), feed.origin)
