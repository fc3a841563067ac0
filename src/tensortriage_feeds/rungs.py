"""Does the target get the right input? Two questions of the ladder, about engines that a user's program wraps.

The first asks the target itself: a model that does nothing but hand its input over shows what it is fed, and the
reference on that must give the target's outputs. Where only outputs are seen, the second tries on the reference what
programs do wrong. A transform counts only if the judge finds the target's outputs beyond their limits before, and
within them after.
"""

import dataclasses
from typing import Any

import numpy as np

from tensortriage.diagnose.sdk import (
    FED_OTHERWISE,
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    NewNode,
    Precision,
    TriageError,
    Unsound,
    VerdictKind,
    error_of,
    error_size,
    insert_node,
    is_foreign,
    least_floor,
    limits_of,
    measure,
    measured_outputs,
    of_floor,
    rung,
    times,
    triage_command,
)
from tensortriage_feeds.search import Steps, Wanted, bits_of, search
from tensortriage_feeds.transforms import CHANCE_BITS, Tensors, composed, cure_of, sentence
from tensortriage_feeds.two_feeds.differences import difference, equal

FED = "does the target run on the input it is given?"
TRIED = "does another input explain the outputs?"
_ENDS = (VerdictKind.COMPARISON_UNSOUND,)
_UNRUNNABLE = (TriageError, Unsound)


@dataclasses.dataclass(frozen=True, slots=True)
class _Cure:
    """The errors of the target's outputs before and after the feed is corrected."""

    output: str
    before: float
    after: float
    ratio: float


@dataclasses.dataclass(frozen=True, slots=True)
class _Explanation:
    """The nearest input that was found for the target's outputs.

    Attributes:
        sentence: Its transforms in words; empty if none was nearer than the given input.
        transforms: Each transform with its parameters.
        advice: The change to the program that undoes them.
        tried: Number of changes that were tried.
        cure: The errors before and after; None if the judge rejects it.
        left: The share of the error that remains of one that is clear, though not within limits; else 0.
    """

    sentence: str
    transforms: list[dict[str, Any]]
    advice: str
    tried: int
    cure: _Cure | None
    left: float = 0.0


@rung(
    FED,
    reads=("results",),
    cost="a build and a run of a model that returns its input",
    ends=_ENDS,
    after="what do the layers look like?",
)
def fed_otherwise(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Read the input of a program's model; a verdict if the reference gives the same outputs on it."""
    if not is_foreign(inv.question.target.name):
        return None
    feed = evidence.feed
    seen = fed_tensors(inv, feed)
    if seen is None:
        inv.record.answered(FED, "unknown: a model that returns its input does not show it")
        return None
    unlike = [name for name in seen if not as_given(np.asarray(feed.tensors[name]), seen[name], inv.precision)]
    if not unlike:
        same = all(equal(np.asarray(feed.tensors[name]), array) for name, array in seen.items())
        inv.record.answered(FED, "yes: to the last bit" if same else f"yes: rounded to {inv.precision.value}")
        return None
    cure = _cured(inv, evidence, {**feed.tensors, **seen})
    found = difference({name: feed.tensors[name] for name in seen}, seen)
    what = sentence(found.steps) if found.is_known else f"'{unlike[0]}' has other numbers, in no known way"
    if cure is None:
        inv.record.answered(FED, f"no: {what}; that does not explain the outputs", inputs=unlike)
        return None
    inv.record.answered(
        FED,
        f"no: {what}; on that the reference gives the target's outputs",
        transforms=[step.stated for step in found.steps] if found.is_known else [],
        residual=found.residual,
        inputs=unlike,
        **dataclasses.asdict(cure),
    )
    left = found.is_known and found.residual > 0.0
    rest = f" (but for {error_size(found.residual)} of its deviation)" if left else ""
    return _verdict(inv, f"{what}{rest}", cure, cure_of(found.steps) if found.is_known else "")


@rung(
    TRIED,
    reads=("results", "local"),
    cost="runs of the reference for 10 s, where only outputs are seen",
    ends=_ENDS,
    after="is any op wrong in isolation?",
)
def another_input(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Try mistakes in inputs on the reference, where a user's program shows only its outputs."""
    wrong_alone = evidence.local is not None and any(ratio > 1.0 for ratio in evidence.local.over.values())
    if not is_foreign(inv.question.target.name) or wrong_alone:
        return None
    feed = evidence.feed
    if inv.question.tolerance is not None or fed_tensors(inv, feed) is not None:
        return None
    place = inv.lab.derived(
        _Explanation, TRIED, inv.question.target, inv.question.reference, inv.model, feed, *inv.question.feeds
    )
    found = place.of(lambda: _searched(inv, evidence))
    if found.cure is None:
        nearer = f"; nearest: {found.sentence}" if found.sentence else ""
        inv.record.answered(TRIED, f"no: none of {found.tried} changes of the inputs gives them{nearer}")
        return None
    inv.record.answered(
        TRIED,
        f"yes: {found.sentence}",
        transforms=found.transforms,
        tried=found.tried,
        **dataclasses.asdict(found.cure),
    )
    rest = f" (but for {error_size(found.left)} of what they are off by)" if found.left else ""
    return _verdict(inv, f"{found.sentence}{rest}", found.cure, found.advice)


def as_given(given: np.ndarray, seen: np.ndarray, precision: Precision) -> bool:
    """Return whether an engine shows the input that it was given, rounded to its number format at most.

    What it makes of NaN and Inf is a matter of its results.
    """
    if given.shape != seen.shape or given.dtype.kind != "f" or seen.dtype.kind != "f":
        return equal(given, seen)
    finite = np.isfinite(given)
    return error_of(measure(given[finite], seen[finite])) <= of_floor(least_floor(precision))


def fed_tensors(inv: Investigation, feed: Feed, *, repetition: int = 0) -> Tensors | None:
    """Return the input of the target's model, shown by models that return their inputs; None if hidden.

    Every output of the model is the input itself then, so that a program may take them by their names.

    Args:
        inv: The investigation.
        feed: The inputs that the target is given.
        repetition: Which run of the session is read.
    """
    outputs = [spec.name for spec in inv.model.outputs]
    wanted = [name for name, array in feed.tensors.items() if array.dtype.kind in "fiub"]
    found: dict[str, np.ndarray] = {}
    try:
        deployed = inv.deployed(feed)
        for start in range(0, len(wanted), len(outputs)):
            some = wanted[start : start + len(outputs)]
            model = inv.model
            for place, output in enumerate(outputs):
                source = some[min(place, len(some) - 1)]
                model = insert_node(model, NewNode(op_type="Identity", inputs=[source], outputs=[output]))
            shown = inv.lab.outputs(
                inv.question.target, model, feed, repetition=repetition, what="reading the input that the model gets"
            )
            for output, name in zip(outputs, some, strict=False):
                if output not in shown or equal(np.asarray(shown[output]), np.asarray(deployed.get(output))):
                    return None
                found[name] = np.asarray(shown[output])
    except _UNRUNNABLE:
        return None
    return found


def _searched(inv: Investigation, evidence: Evidence) -> _Explanation:
    feed, floors = evidence.feed, evidence.worst_feed.floors
    reference = inv.golden.outputs(feed)
    metrics = evidence.worst_feed.metrics
    limits = {name: 0.0 if figure.exact else floors.limit(name, figure.count).error for name, figure in metrics.items()}
    wanted = Wanted(inv.deployed(feed), limits)
    right = {name: np.asarray(reference[name]) for name in limits}
    bits = bits_of(right, wanted, {name: error_of(figure) for name, figure in metrics.items()})
    if bits <= CHANCE_BITS:
        return _Explanation("", [], "", 0, None)
    cures: dict[Steps, _Cure | None] = {}

    def confirmed(steps: Steps) -> bool:
        cures[steps] = _cured(inv, evidence, composed(steps, feed.tensors), steps)
        return cures[steps] is not None

    with inv.lab.session(inv.question.reference, inv.model, sequence=True) as ask:

        def run(tensors: Tensors) -> Tensors:
            try:
                return ask(tensors)
            except _UNRUNNABLE:
                return {}

        inv.lab.progress("trying other inputs on the reference")
        nearest = search(feed.tensors, run, wanted, confirmed=confirmed)
    cure, left = cures.get(nearest.steps), 0.0
    if cure is None and nearest.steps and nearest.is_clear:
        name, before, _ = evidence.worst_feed.worst_output()
        cure, left = _Cure(name, before, before * nearest.left, nearest.distance), nearest.left
    unlikely = bits > CHANCE_BITS + np.log2(max(nearest.tried, 1))
    return _Explanation(
        sentence(nearest.steps) if nearest.steps else "",
        [step.stated for step in nearest.steps],
        cure_of(nearest.steps),
        nearest.tried,
        cure if unlikely else None,
        left,
    )


def _cured(inv: Investigation, evidence: Evidence, fed: Tensors, steps: Steps | None = None) -> _Cure | None:
    """Return the judgement of the target's outputs on a presumed input; None where one is beyond its limit.

    Steps that are given have to cure the other feeds as well.
    """
    name, before, _ = evidence.worst_feed.worst_output()
    ratio = _ratio(inv, evidence.feed, fed)
    if ratio is None:
        return None
    for other in inv.question.feeds if steps else ():
        if other.name != evidence.feed.name and _ratio(inv, other, composed(steps or (), other.tensors)) is None:
            return None
    return _Cure(name, before, ratio[0], ratio[1])


def _ratio(inv: Investigation, feed: Feed, fed: Tensors) -> tuple[float, float] | None:
    """Return the largest error of the target's outputs against the reference on another feed, and its share of a limit.

    None where an output is beyond its limit, or cannot be compared.
    """
    other = Feed("", fed, feed.origin)
    other = dataclasses.replace(other, name=f"{feed.name} as fed, {other.digest[:8]}")
    about = inv.about(dataclasses.replace(inv.question, feeds=(other,)))
    try:
        figures = measured_outputs(about, other, inv.deployed(feed)).metrics
        limits = limits_of(about, other, figures, apart={}, asked=False)
    except _UNRUNNABLE:
        return None
    errors = {name: error_of(figure) for name, figure in figures.items()}
    if not all(limits[name].allows(error) for name, error in errors.items()):
        return None
    worst = max(errors, key=lambda name: _share(errors[name], limits[name].error))
    return errors[worst], _share(errors[worst], limits[worst].error)


def _share(error: float, limit: float) -> float:
    return error / limit if limit else 0.0


def _verdict(inv: Investigation, what: str, cure: _Cure, line: str) -> Conclusion:
    write = f"; cure: {line}" if line else ""
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        FED_OTHERWISE,
        f"{inv.question.target} is fed another input: {what}. On such an input {inv.question.reference} gives the "
        f"target's outputs, {times(cure.ratio)} the largest difference between healthy engines; without it, "
        f"'{cure.output}' is "
        f"off by {error_size(cure.before)}{write}",
        next=[triage_command(inv.question, "run", "--target", str(inv.question.target))],
    )
