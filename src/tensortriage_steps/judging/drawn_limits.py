"""Limits of steps by chance: how far off many draws of rounding are at each step, fed alike and each on its own states.

A step is predicted by one evaluation, which is one draw; the scores over a vocabulary, or a state that is written again
at each step, follow from few numbers, and an error that is carried on stays. So where a value is beyond its limit the
model is drawn again, all steps of it. At each step a healthy engine may be as far above the median of the draws there
as any of them is above the median anywhere, and 3 dB: its first error and the growth of that are both draws.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.envelope.sdk import difference, is_minor, of_draws, ratio_of, within_limit
from tensortriage_steps.feeds.next_feed import Arrays
from tensortriage_steps.feeds.state_parts import StatePart
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.draws import Draws
from tensortriage_steps.steps_report import StepRow, StepValue

Key = tuple[str, str]
"""Output and part."""
Drawn = Mapping[Key, Sequence[Sequence[float]]]
"""Errors by step and draw."""


@dataclasses.dataclass(frozen=True, slots=True)
class Walked:
    """One step of the reference.

    Attributes:
        feed: Feed of the step.
        following: The next one.
        parts: Parts of its outputs.
    """

    feed: Arrays
    following: Arrays
    parts: Mapping[str, Sequence[StatePart]]


def in_doubt(rows: Sequence[StepRow]) -> bool:
    """Return whether the first step that is wrong, or if none is the first that drifts too far, may be so by chance."""
    beyond = [[value for value in row.values if not value.within] for row in rows]
    drifted = [[value for value in row.drifted if not value.within] for row in rows]
    first: Sequence[StepValue] = next(filter(None, (*beyond, *drifted)), [])
    return bool(first) and all(map(may_be_chance, first))


def may_be_chance(value: StepValue) -> bool:
    """Return whether an error beyond its limit is so near to it that chance may have made it."""
    return value.allowed is not None and math.isfinite(value.error) and not is_minor(value.allowed, value.error)


def with_drawn_limits(
    rows: Sequence[StepRow], draws: Draws, count: int, walk: Iterator[Walked], feeds: StepFeeds
) -> tuple[StepRow, ...]:
    """Return the rows judged again by the errors of draws of rounding.

    Args:
        rows: The steps.
        draws: Draws of the rounding errors.
        count: How often.
        walk: The steps of the reference once more.
        feeds: The feeds.

    Raises:
        EngineError: When ONNX Runtime does not evaluate the model.
    """
    taught = any(not value.within for row in rows for value in row.values)
    alone = any(not value.within for row in rows for value in row.drifted)
    fed, own = _errors(draws, count, walk, feeds, taught=taught, alone=alone)
    allowed, drifting = of_draws(fed, half_at_most=True), of_draws(own, half_at_most=False)
    return tuple(
        dataclasses.replace(
            row,
            values=tuple(_judged(value, allowed, row.step) for value in row.values),
            drifted=tuple(_judged(value, drifting, row.step) for value in row.drifted),
        )
        for row in rows
    )


def _errors(
    draws: Draws, count: int, walk: Iterator[Walked], feeds: StepFeeds, *, taught: bool, alone: bool
) -> tuple[Drawn, Drawn]:
    fed: dict[Key, list[list[float]]] = defaultdict(list)
    own: dict[Key, list[list[float]]] = defaultdict(list)
    exact: list[Arrays] = []
    rounded: list[Arrays] = []
    for step in walk:
        moved: list[Arrays] = [draws.moved(draw, step.feed) for draw in range(count)] if taught or not exact else []
        exact, rounded = exact or moved, rounded or moved
        if taught:
            each = [(draws.exact(draw, feed), draws.rounded(draw, feed)) for draw, feed in enumerate(moved)]
            _add(fed, step, each)
        if alone:
            each = [(draws.exact(draw, exact[draw]), draws.rounded(draw, rounded[draw])) for draw in range(count)]
            _add(own, step, each)
            following = [draws.moved(draw, step.following) for draw in range(count)]
            exact = [feeds.own_states(*given) for given in zip(following, (one for one, _ in each), exact, strict=True)]
            rounded = [
                feeds.own_states(*given) for given in zip(following, (other for _, other in each), rounded, strict=True)
            ]
    return fed, own


def _add(errors: dict[Key, list[list[float]]], step: Walked, each: Sequence[tuple[Arrays, Arrays]]) -> None:
    for name, parts in step.parts.items():
        for part in parts:
            pairs = ((np.asarray(one[name])[part.place], np.asarray(other[name])[part.place]) for one, other in each)
            errors[name, part.word].append([difference(*pair) for pair in pairs])


def _judged(value: StepValue, limits: Mapping[Key, Sequence[float | None]], step: int) -> StepValue:
    by_step = limits.get((value.value, value.part), ())
    allowed = by_step[step] if step < len(by_step) else None
    if value.allowed is None or allowed is None or allowed <= value.allowed:
        return value
    ratio = ratio_of(value.error, allowed) or 0.0
    return dataclasses.replace(value, allowed=allowed, ratio=ratio, within=within_limit(value.error, allowed))
