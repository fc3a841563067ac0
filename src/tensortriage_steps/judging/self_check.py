"""Does an engine's run of a whole sequence agree with its own steps? No reference is needed.

A decoder gives for every position the same scores, whether it gets the whole sequence at once or a token at a time on
the states that it made itself. An engine that is healthy in both differs by no more than both its limits; where the
model itself, evaluated as its types say, does not keep that, nothing is claimed.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.envelope.sdk import difference, ratio_of, within_limit
from tensortriage.sdk import UsageError
from tensortriage_steps.feeds.next_feed import Arrays, Run, StepRoles, next_tokens
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.healthy_runs import EvaluatedStep, HealthyRuns
from tensortriage_steps.steps_report import SelfValue

Found = EvaluatedStep


@dataclasses.dataclass(frozen=True, slots=True)
class _Pair:
    """The same part of an output on both ways.

    Attributes:
        value: The output.
        step: The step.
        whole: Picks the part of the run of the whole sequence.
        steps: Picks it from the outputs of the step.
    """

    value: str
    step: int
    whole: Callable[[np.ndarray], np.ndarray]
    steps: Callable[[np.ndarray], np.ndarray]


def self_check(
    healthy: HealthyRuns, feeds: StepFeeds, target: Run, say: Callable[[str], None]
) -> tuple[SelfValue, ...]:
    """Hold an engine's steps against its run of the whole sequence.

    Args:
        healthy: The healthy evaluations of the model.
        feeds: Feeds of the steps.
        target: A session of the engine.
        say: Receives progress lines.

    Returns:
        A finding per output: of the logits where they are farthest off, of the states after the last step.

    Raises:
        EngineError: When an engine fails, or the model cannot be evaluated.
        UsageError: When the model has no states and tokens (``steps-nothing-carried``).
    """
    roles = feeds.roles
    if not roles.carry or not roles.generates:
        raise UsageError(
            "the whole sequence can be compared with steps only where states are carried and tokens are generated",
            slug="steps-nothing-carried",
            cure="name the states with --carry and the scores with --logits",
        )
    feed: Arrays = feeds.first
    own: Mapping[str, Arrays] = {}
    before: tuple[Arrays, Arrays] | None = None
    taken, outputs, evaluated = [], [], []
    for step in range(feeds.steps):
        say(f"step {step}")
        feed, given = feeds.taken(step, before, feed, target)
        own = own or dict.fromkeys(healthy.names, feed)
        taken.append(feed)
        outputs.append(given)
        evaluated.append(healthy.each_on(own))
        following = feeds.after(step, feed, outputs[-1], next_tokens(outputs[-1][roles.logits]))
        own = {name: feeds.own(name, step, own[name], evaluated[-1].values[name], following) for name in healthy.names}
        before, feed = (feed, given), following
    say("the whole sequence")
    whole_feed = _whole(feeds.roles, taken)
    feeds.require_taken(whole_feed)
    whole, found = target(whole_feed), healthy.on(whole_feed)
    first = feeds.first[roles.tokens].shape[-1]
    values: dict[str, SelfValue] = {}
    for pair in _pairs(roles, feeds.steps, first):
        value = _judged(pair, (whole, found), (outputs[pair.step], evaluated[pair.step]))
        known = values.get(pair.value)
        if known is None or _badness(value) > _badness(known):
            values[pair.value] = value
    return tuple(values.values())


def _badness(value: SelfValue) -> tuple[bool, bool, float]:
    return value.claimed, not value.within, ratio_of(value.difference, value.allowed) or 0.0


def _whole(roles: StepRoles, feeds: list[Arrays]) -> dict[str, np.ndarray]:
    """Return one feed of the whole sequence: the first states, and all tokens, positions and the longest mask."""
    made = dict(feeds[0])
    for name in (roles.tokens, *roles.positions):
        made[name] = np.concatenate([feed[name] for feed in feeds], axis=-1)
    for name in roles.masks:
        if feeds[0][name].ndim != 2:
            raise UsageError(
                f"no rule gives the mask '{name}' of the whole sequence: it has more than two axes",
                slug="steps-nothing-carried",
                cure="leave out --self-check",
            )
        made[name] = feeds[-1][name]
    return made


def _pairs(roles: StepRoles, steps: int, first: int) -> list[_Pair]:
    pairs = []
    for step in range(steps):
        place = first - 1 + step

        def at(array: np.ndarray, place: int = place) -> np.ndarray:
            return array[:, place]

        pairs.append(_Pair(roles.logits, step, at, lambda array: array[:, -1]))
    return pairs + [_Pair(name, steps - 1, lambda array: array, lambda array: array) for name in roles.states]


def _judged(pair: _Pair, whole: tuple[Arrays, Found], steps: tuple[Arrays, Found]) -> SelfValue:
    """Compare one part, with the limits of both ways added."""
    picked = [
        (pick(np.asarray(given[pair.value])), pick(found.centre[pair.value]), found.limit(pair.value, pick).error)
        for (given, found), pick in ((whole, pair.whole), (steps, pair.steps))
    ]
    (ours, exact, limit), (theirs, stepwise, other) = picked
    allowed = limit + other
    model, engine = difference(exact, stepwise), difference(ours, theirs)
    wrong = ""
    if not within_limit(engine, allowed):
        beyond = {
            "the whole sequence": ratio_of(difference(exact, ours), limit) or 0.0,
            "the steps": ratio_of(difference(stepwise, theirs), other) or 0.0,
        }
        wrong = max(beyond, key=lambda way: beyond[way])
    return SelfValue(pair.value, pair.step, engine, allowed, model, within_limit(model, allowed), not wrong, wrong)
