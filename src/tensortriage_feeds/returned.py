"""Changes that a user's program makes to the outputs of its network before it returns or saves them.

A Softmax that belongs to the program, a number of decimals in a text file, scores in percent, boxes in pixels, integers
that nobody dequantized, bytes of another type, rows of a buffer with their padding, boxes in another form, a threshold,
another order: the model says something else, and no op is wrong. A change counts if it gives the outputs, or a part of
them, to within the rounding of fp32, where they were off by a hundred times as much, and if the program does not hand
over the outputs of another model as they are. One that makes its outputs of the right numbers, which a model returns as
constants, is told too, whatever it does.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from tensortriage.diagnose.sdk import (
    EQUAL_IN_FP32,
    FED_OTHERWISE,
    PLAIN,
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    Model,
    NewNode,
    Precision,
    TriageError,
    VerdictKind,
    enumeration,
    freeze,
    insert_node,
    is_foreign,
    rms_error,
    rung,
)
from tensortriage_feeds.arrays.mixtures import decided, mixed
from tensortriage_feeds.arrays.numbers import (
    CLEARER,
    Returned,
    counted_from,
    elsewhere,
    narrowed,
    other_numbers,
    reread,
)
from tensortriage_feeds.arrays.output_functions import MODEL, known_functions
from tensortriage_feeds.arrays.places import other_places
from tensortriage_feeds.arrays.rules import other_rules
from tensortriage_feeds.rungs import as_given
from tensortriage_feeds.transforms import Tensors

QUESTION = "does the target return what the model computes?"
_UNFILLED = Returned("left at 0 (memory that is never filled)", "copy all of that output: every row, and to its end")
_NO_KNOWN = "changed in no known way: the program does the same to right numbers that a model returns as constants"
_LEAST = 4
"""Elements that an output has at least, for a change to be no chance."""


@rung(
    QUESTION,
    reads=("results", "moved"),
    cost="at most three runs of models that return constants",
    ends=(VerdictKind.COMPARISON_UNSOUND, VerdictKind.LAYOUT),
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
        right = {spec.name: np.asarray(golden[spec.name]) for spec in inv.model.outputs if spec.name in golden}
        made = inv.deployed(result.feed)
    except TriageError:
        return None
    moved = {name: elsewhere(how.sentence) for name, how in evidence.moved.items()}
    found = made_by_program(inv, result.feed, right, made, wrong, moved=moved)
    found = {name: moved.get(name, change) for name, change in found.items()}
    inv.record.answered(QUESTION, f"no: {in_words(found)}" if found else "yes, as far as is known")
    if not found:
        return None
    summary = f"{target} changes what its network computes: {in_words(found)}. Cure: {cure_of(found)}"
    kind = VerdictKind.LAYOUT if found.keys() <= moved.keys() else VerdictKind.COMPARISON_UNSOUND
    return Conclusion(kind, FED_OTHERWISE, summary)


def made_by_program(
    inv: Investigation,
    feed: Feed,
    right: Tensors,
    made: Tensors,
    wrong: Collection[str],
    *,
    moved: Mapping[str, Returned] = MappingProxyType({}),
) -> Mapping[str, Returned]:
    """Return the changes of the target to its wrong outputs; empty where they are not known to be the program's.

    Args:
        inv: The investigation.
        feed: Inputs of the network.
        right: The right outputs.
        made: The target's.
        wrong: Names of the outputs to explain.
        moved: Orders of outputs that are known already.
    """
    found: Mapping[str, Returned] = changes(right, made, wrong)
    if not found and set(wrong) <= moved.keys():
        found = {name: moved[name] for name in wrong}
    of_rows = any("axis 0" in each.words for each in found.values())
    if of_rows and _computes_rows_apart(inv, feed, right) and not _changes_constants(inv, feed, right, made, wrong):
        return {}  # rows of the input in that order give the same
    if found:
        return {} if _hands_over(inv, feed, {name: right[name] for name in wrong}) else found
    is_exact = inv.precision is Precision.FP32  # engines of narrower formats round what they hand over as well
    if is_exact and _changes_constants(inv, feed, right, made, wrong):
        return dict.fromkeys(wrong, Returned(_NO_KNOWN, MODEL.format("change")))
    return {}


def _computes_rows_apart(inv: Investigation, feed: Feed, right: Tensors) -> bool:
    """Return whether the model makes of rows in reverse order its outputs in reverse order."""
    turned = {name: np.ascontiguousarray(np.flip(array, 0)) for name, array in feed.tensors.items() if array.ndim}
    other = Feed(f"{feed.name} in reverse", {**feed.tensors, **turned}, feed.origin)
    try:
        shown = inv.lab.outputs(PLAIN, inv.model, other, what="asking what becomes of rows")
        return all(
            as_given(np.flip(array, 0), np.asarray(shown[name]), inv.precision)
            or rms_error(np.flip(array, 0).astype(np.float64), np.asarray(shown[name], np.float64)) <= EQUAL_IN_FP32
            for name, array in right.items()
            if array.ndim
        )
    except (TriageError, KeyError, ValueError):
        return False


def _constant(model: Model, values: Tensors) -> Model:
    """Return the model with these numbers as its outputs."""
    for name, array in values.items():
        model = insert_node(model, NewNode(op_type="Identity", inputs=[name], outputs=[name]))
        model = freeze(model, {maker.inputs[0]: array for maker in [model.graph.producer(name)] if maker})
    return model


def _changes_constants(inv: Investigation, feed: Feed, right: Tensors, made: Tensors, wrong: Collection[str]) -> bool:
    """Return whether the target makes its wrong outputs of the right ones where a model has these as constants.

    No op of the model runs then, so that none is wrong. Of a program that does not run the model that it is given,
    which returns them for other constants too, nothing is known.
    """

    def shown(values: Tensors) -> Tensors:
        model = _constant(inv.model, values)
        return inv.lab.outputs(inv.question.target, model, feed, what="asking what becomes of outputs")

    try:
        others = ({name: np.full_like(array, number) for name, array in right.items()} for number in (0, 1))
        return _is_nearer(made, shown(right), right, wrong) and not all(
            _is_nearer(made, shown(each), right, wrong) for each in others
        )
    except (TriageError, KeyError):
        return False


def _is_nearer(made: Tensors, shown: Tensors, right: Tensors, names: Collection[str]) -> bool:
    """Return whether what a program made is what it shows now, and not what is right."""
    for name in names:
        own, same, wanted = (np.asarray(of[name]) for of in (made, shown, right))
        if own.shape != same.shape or not np.isfinite(same.astype(np.float64)).all():
            return False
        if own.shape == wanted.shape:
            off, before = (np.linalg.norm(own - each.astype(np.float64)) for each in (same, wanted))
            if not off < before / CLEARER:
                return False
    return True


def _hands_over(inv: Investigation, feed: Feed, right: Tensors) -> bool:
    """Return whether the target returns the right numbers as they are where a model has them as constants.

    Then what is wrong is an op of this model. Where such a model does not run, one is asked that returns its input.
    """
    asked = [(_constant(inv.model, right), right)]
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
    """Return what was done to each of the wrong outputs; empty where that is not known of one of them.

    Args:
        right: The right outputs; those that are not wrong may explain others (scores, and indices of them).
        made: What the program returns.
        wrong: The outputs to explain.
    """
    found: dict[str, Returned | None] = {}
    for name in wrong:
        one = np.asarray(made[name])
        found[name] = _change_of(np.asarray(right[name]), one) or next(other_rules(name, right, one), None)
    return {name: each for name, each in found.items() if each is not None} if all(found.values()) else {}


def in_words(found: Mapping[str, Returned], of: str = "the model") -> str:
    """Return what was done to which outputs, as a clause, of what."""
    by_words: dict[str, list[str]] = {}
    for name, each in found.items():
        by_words.setdefault(each.words.replace("the model's", f"{of}'s"), []).append(f"'{name}'")
    return "; ".join(f"{enumeration(n)} {'is' if len(n) == 1 else 'are'} {words}" for words, n in by_words.items())


def cure_of(found: Mapping[str, Returned]) -> str:
    """Return what to do."""
    return "; ".join(dict.fromkeys(each.cure for each in found.values()))


def _change_of(right: np.ndarray, made: np.ndarray) -> Returned | None:
    """Return what was done to an output, or to some indices of one of its axes; None where that is not known."""
    if right.shape != made.shape or right.dtype.kind not in "fiu" or made.dtype.kind not in "fiu":
        return None
    if right.dtype.kind != "f":
        return next(reread(right, made), None) or counted_from(right, made) or next(narrowed(right, made), None)
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
        yield from known_functions(exact, given)
    yield from other_numbers(exact, made)
