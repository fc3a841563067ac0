"""Changes that a user's program makes to the outputs of its network before it returns or saves them.

A Softmax that belongs to the program, a number of decimals in a text file, scores in percent, boxes in pixels, integers
that nobody dequantized, bytes of another type, rows of a buffer with their padding, boxes in another form, a threshold:
the model says something else, and no op is wrong. A change counts if it
gives the outputs, or a part of them, to within the rounding of fp32, where they were off by a hundred times as much,
and if the program does not hand over the outputs of another model as they are.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

import numpy as np

from tensortriage.diagnose.sdk import (
    EQUAL_IN_FP32,
    FED_OTHERWISE,
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    NewNode,
    TriageError,
    VerdictKind,
    enumeration,
    freeze,
    insert_node,
    is_foreign,
    rms_error,
    rung,
)
from tensortriage_feeds.arrays.mixtures import decided, limited, mixed
from tensortriage_feeds.arrays.numbers import CLEARER, Returned, counted_from, other_numbers, reread
from tensortriage_feeds.arrays.places import other_places
from tensortriage_feeds.rungs import as_given
from tensortriage_feeds.transforms import Tensors

QUESTION = "does the target return what the model computes?"
_MOST_DECIMALS = 7
_UNFILLED = Returned("left at 0 (memory that is never filled)", "copy all of that output: every row, and to its end")
_LEAST = 4
"""Elements that an output has at least, for a change to be no chance."""
Function = Callable[[np.ndarray], np.ndarray]


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
        golden = inv.golden.outputs(result.feed)
        right = {name: np.asarray(golden[name]) for name in wrong}
        found = changes(right, inv.deployed(result.feed), wrong)
    except TriageError:
        return None
    if found and _hands_over(inv, result.feed, right):
        found = {}
    inv.record.answered(QUESTION, f"no: {in_words(found)}" if found else "yes, as far as is known")
    if not found:
        return None
    summary = f"{target} changes what its network computes: {in_words(found)}. Cure: {cure_of(found)}"
    return Conclusion(VerdictKind.COMPARISON_UNSOUND, FED_OTHERWISE, summary)


def _hands_over(inv: Investigation, feed: Feed, right: Mapping[str, np.ndarray]) -> bool:
    """Return whether the target returns the right numbers as they are where a model has them as constants.

    Then what is wrong is an op of this model. Where such a model does not run, one is asked that returns its input.
    """
    model = inv.model
    for name, array in right.items():
        model = insert_node(model, NewNode(op_type="Identity", inputs=[name], outputs=[name]))
        model = freeze(model, {maker.inputs[0]: array for maker in [model.graph.producer(name)] if maker})
    asked = [(model, right)]
    given = next((name for name, array in feed.tensors.items() if np.asarray(array).dtype.kind == "f"), "")
    if given:
        model = inv.model
        for spec in model.outputs:
            model = insert_node(model, NewNode(op_type="Identity", inputs=[given], outputs=[spec.name]))
        asked.append((model, dict.fromkeys(right, np.asarray(feed.tensors[given]))))
    for model, wanted in asked:
        try:
            shown = inv.lab.outputs(inv.question.target, model, feed, what="asking what becomes of outputs")
        except TriageError:
            continue
        return all(as_given(array, np.asarray(shown[name]), inv.precision) for name, array in wanted.items())
    return True  # one that runs no other model does not refuse any


def changes(right: Tensors, made: Tensors, wrong: Collection[str]) -> dict[str, Returned]:
    """Return what was done to each of the wrong outputs; empty where that is not known of one of them."""
    found = {name: _change_of(np.asarray(right[name]), np.asarray(made[name])) for name in wrong}
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


def _change_of(right: np.ndarray, made: np.ndarray) -> Returned | None:
    """Return what was done to an output, or to some indices of one of its axes; None where that is not known."""
    if right.shape != made.shape or right.dtype.kind not in "fiu" or made.dtype.kind not in "fiu":
        return None
    if right.dtype.kind != "f":
        return next(reread(right, made), None) or counted_from(right, made)
    exact, given = right.astype(np.float64), made.astype(np.float64)
    if not np.isfinite(exact).all():
        return None
    if whole := next(_tried(exact, made), None):
        return whole
    changed = {axis: _unlike(exact, given, axis) for axis in range(right.ndim)}
    for axis, unlike in changed.items():
        if not 0 < unlike.size < right.shape[axis]:
            continue
        of_part = [np.take(array, unlike, axis) for array in (exact, made)]
        if part := _UNFILLED if not of_part[1].any() else next(_tried(*of_part), None):
            first, last = int(unlike[0]), int(unlike[-1])
            which = f"{first}..{last}" if 1 < unlike.size == last - first + 1 else ", ".join(map(str, unlike))
            index = "index" if unlike.size == 1 else "indices"
            return Returned(f"{part.words} in {index} {which} of axis {axis}, elsewhere as it is", part.cure)
    if moved := next(other_places(exact, given), None):
        return moved
    if not np.isfinite(given).all():
        return None
    several = (each for axis, unlike in changed.items() for each in mixed(exact, given, axis, unlike))
    return next(decided(exact, given), None) or next(several, None)


def _unlike(exact: np.ndarray, given: np.ndarray, axis: int) -> np.ndarray:
    """Return the indices of an axis at which numbers differ."""
    others = tuple(each for each in range(exact.ndim) if each != axis)
    off = np.abs(given - exact).max(axis=others)
    return np.flatnonzero(~(off <= EQUAL_IN_FP32 * np.abs(exact).max(axis=others)))


def _tried(exact: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield what was done to numbers, as far as it is known."""
    given = made.astype(np.float64)
    if exact.size < _LEAST:
        return
    if np.isfinite(given).all():
        yield from _known(exact, given)
    yield from other_numbers(exact, made)


def _known(exact: np.ndarray, given: np.ndarray) -> Iterator[Returned]:
    """Yield the roundings and functions that give an output."""
    if rounded := _rounded(exact, given):
        yield Returned(f"the model's rounded to {rounded}", _BINARY)
    before = rms_error(exact, given)
    for words, (name, function) in _FUNCTIONS.items():
        with np.errstate(all="ignore"):
            try:
                changed = function(exact)
            except (ValueError, IndexError):  # no such axis
                continue
        if (
            np.isfinite(changed).all()
            and np.ptp(changed)
            and rms_error(changed, given) < min(EQUAL_IN_FP32, before / CLEARER)
        ):
            yield Returned(words, _MODEL.format(name))
    yield from limited(exact, given)


def _rounded(exact: np.ndarray, given: np.ndarray) -> str:
    """Return to what numbers are rounded, each to the nearest; empty where they are not."""
    tiny = EQUAL_IN_FP32 * np.abs(exact)
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
