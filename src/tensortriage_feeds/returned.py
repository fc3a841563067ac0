"""Changes that a user's program makes to the outputs of its network before it returns or saves them.

A Softmax that belongs to the program, a number of decimals in a text file, scores in percent: the model says something
else, and no op is wrong. A change counts if it gives the outputs to within the rounding of fp32, where they were off by
a hundred times as much.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from tensortriage.diagnose.sdk import (
    FED_OTHERWISE,
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    NewNode,
    TriageError,
    VerdictKind,
    enumeration,
    insert_node,
    is_foreign,
    rung,
)
from tensortriage_feeds.rungs import as_given
from tensortriage_feeds.transforms import Tensors

QUESTION = "does the target return what the model computes?"
_EQUAL = 3e-6
"""Relative error of functions that two libraries compute in fp32."""
_CLEARER = 100.0
_MOST_DECIMALS = 7
_LEAST = 4
"""Elements that an output has at least, for a change to be no chance."""
Function = Callable[[np.ndarray], np.ndarray]


class Returned(NamedTuple):
    """The change to an output: as the rest of a sentence, and its inverse or its form in the model."""

    words: str
    cure: str


def _softmax(axis: int) -> Function:
    def of(array: np.ndarray) -> np.ndarray:
        moved = np.exp(array - array.max(axis, keepdims=True))
        return np.asarray(moved / moved.sum(axis, keepdims=True))

    return of


def _unit(array: np.ndarray) -> np.ndarray:
    return np.asarray(array / np.linalg.norm(array, axis=-1, keepdims=True))


_BINARY = "keep its numbers in float32, in binary (np.save, --save-outputs)"
_MODEL = "return the output as the model gives it, or put the {} into the model"
_FUNCTIONS: Mapping[str, tuple[str, Function]] = {
    "the Softmax of the model's over the last axis": ("Softmax", _softmax(-1)),
    "the Softmax of the model's over axis 1": ("Softmax", _softmax(1)),
    "the logarithm of the Softmax of the model's": ("LogSoftmax", lambda x: np.log(_softmax(-1)(x))),
    "the Sigmoid of the model's": ("Sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x))),
    "the model's before its Sigmoid": ("logit", lambda x: np.log(x / (1.0 - x))),
    "the Tanh of the model's": ("Tanh", np.tanh),
    "the exponential of the model's": ("Exp", np.exp),
    "the logarithm of the model's": ("Log", np.log),
    "the square root of the model's": ("Sqrt", np.sqrt),
    "the model's divided by its length (L2)": ("LpNormalization", _unit),
    "the model's cut off at 0 and 1": ("Clip", lambda x: np.clip(x, 0.0, 1.0)),
    "the model's cut off at 0": ("Relu", lambda x: np.maximum(x, 0.0)),
    **{f"the model's multiplied by {by}": ("factor", partial(np.multiply, by)) for by in (100, 255, 1000, -1)},
    **{f"the model's divided by {by}": ("factor", partial(np.multiply, 1.0 / by)) for by in (100, 255)},
    "1 minus the model's": ("difference", lambda x: 1.0 - x),
}  # fmt: skip


@rung(
    QUESTION,
    reads=("results",),
    cost="nothing: what programs do to outputs is tried on the reference's",
    ends=(VerdictKind.COMPARISON_UNSOUND,),
    after="do outputs of one run overwrite each other?",
)
def returned_otherwise(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell what a user's program does to outputs, where that is all that is wrong with them."""
    result, target = evidence.worst_feed, inv.question.target
    if not is_foreign(target.name) or inv.question.tolerance is not None:
        return None
    wrong = [name for name, within in result.within.items() if not within and name in result.metrics]
    try:
        right = inv.golden.outputs(result.feed)
        found = changes({name: np.asarray(right[name]) for name in wrong}, inv.deployed(result.feed), wrong)
    except TriageError:
        return None
    if found and _hands_over(inv, result.feed, wrong):
        found = {}
    inv.record.answered(QUESTION, f"no: {in_words(found)}" if found else "yes, as far as is known")
    if not found:
        return None
    summary = f"{target} changes what its network computes: {in_words(found)}. Cure: {cure_of(found)}"
    return Conclusion(VerdictKind.COMPARISON_UNSOUND, FED_OTHERWISE, summary)


def _hands_over(inv: Investigation, feed: Feed, wrong: Collection[str]) -> bool:
    """Return whether the target returns outputs of another model as they are, so that an op of this one is wrong."""
    given = next((name for name, array in feed.tensors.items() if np.asarray(array).dtype.kind == "f"), "")
    if not given:
        return False
    model = inv.model
    for spec in model.outputs:
        model = insert_node(model, NewNode(op_type="Identity", inputs=[given], outputs=[spec.name]))
    try:
        shown = inv.lab.outputs(inv.question.target, model, feed, what="asking what becomes of outputs")
    except TriageError:
        return True  # one that runs no other model does not refuse any
    return all(as_given(np.asarray(feed.tensors[given]), np.asarray(shown[name]), inv.precision) for name in wrong)


def changes(right: Tensors, made: Tensors, wrong: Collection[str]) -> dict[str, Returned]:
    """Return what was done to each of the wrong outputs; empty where that is not known of one of them."""
    found = {name: next(_tried(np.asarray(right[name]), np.asarray(made[name])), None) for name in wrong}
    return {name: each for name, each in found.items() if each is not None} if all(found.values()) else {}


def in_words(found: Mapping[str, Returned]) -> str:
    """Return what was done to which outputs, as a clause."""
    by_words: dict[str, list[str]] = {}
    for name, each in found.items():
        by_words.setdefault(each.words, []).append(f"'{name}'")
    return "; ".join(f"{enumeration(names)} is {words}" for words, names in by_words.items())


def cure_of(found: Mapping[str, Returned]) -> str:
    """Return what to do."""
    return "; ".join(dict.fromkeys(each.cure for each in found.values()))


def _tried(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield what was done to an output, as far as it is known."""
    if right.shape != made.shape or right.size < _LEAST or right.dtype.kind != "f" or made.dtype.kind not in "fiu":
        return
    exact, given = right.astype(np.float64), made.astype(np.float64)
    if not np.isfinite(exact).all() or not np.isfinite(given).all():
        return
    if rounded := _rounded(exact, given):
        yield Returned(
            f"the model's rounded to {rounded}", "keep its numbers in float32, in binary (np.save, --save-outputs)"
        )
    before = _error(exact, given)
    for words, (name, function) in _FUNCTIONS.items():
        with np.errstate(all="ignore"):
            try:
                changed = function(exact)
            except (ValueError, IndexError):  # no such axis
                continue
        if np.isfinite(changed).all() and np.ptp(changed) and _error(changed, given) < min(_EQUAL, before / _CLEARER):
            yield Returned(words, _MODEL.format(name))


def _error(right: np.ndarray, made: np.ndarray) -> float:
    with np.errstate(over="ignore"):  # of exponentials
        size, off = (float(np.sqrt(np.mean(numbers**2))) for numbers in (right, made - right))
    return off / size if 0.0 < size < np.inf else np.inf


def _rounded(exact: np.ndarray, given: np.ndarray) -> str:
    """Return to what numbers are rounded, each to the nearest; empty where they are not."""
    tiny = _EQUAL * np.abs(exact)
    with np.errstate(all="ignore"):
        half = given.astype(np.float16).astype(np.float64)
        spacing = np.abs(np.spacing(given.astype(np.float16)).astype(np.float64))
    if np.array_equal(half, given) and np.all(np.abs(given - exact) <= spacing / 2 + tiny):
        return "float16"
    for decimals in range(_MOST_DECIMALS):
        step = 10.0**-decimals
        steps = given / step
        whole = np.abs(steps - np.round(steps)) <= 1e-6 * np.maximum(1.0, np.abs(steps))
        if whole.all() and np.all(np.abs(given - exact) <= step / 2 + tiny):
            return f"{decimals} decimals" if decimals else "whole numbers"
    return ""
