"""What both engines generate when each takes its own tokens and its own states: where they part, and whether it counts.

A token that another one ties with is no fault: within the rounding of a run on its own states either may win. After
the first that differs the two say different things, and no later token can be compared.
"""

import numpy as np

from tensortriage.compare.judgement.ranked import compare_extremes
from tensortriage.compare.next_token import lead
from tensortriage.inputs.steps.next_feed import Arrays, last_scores, next_tokens
from tensortriage.runs.lab import Run
from tensortriage.workflows.steps.measured_steps import MeasuredSteps
from tensortriage.workflows.steps.step_feeds import StepFeeds
from tensortriage.workflows.steps.steps_request import FreeRun


def free_run(steps: MeasuredSteps, feeds: StepFeeds, target: Run) -> FreeRun:
    """Let both engines generate alone, and judge the first token that differs.

    Args:
        steps: What evaluates the model.
        feeds: Its feeds.
        target: A fresh session of the target.

    Raises:
        EngineError: When an engine fails.
    """
    ours, theirs = _generated(feeds, steps.reference), _generated(feeds, target)
    reference, chosen = [tokens for _, tokens in ours], [tokens for _, tokens in theirs]
    places = [step for step, (one, other) in enumerate(zip(reference, chosen, strict=True)) if one != other]
    if not places:
        return FreeRun(tuple(reference), tuple(chosen))
    first = places[0]
    scores = last_scores(ours[first][0])
    radius = _radius(steps, feeds, reference, ours[first][0], first)
    if radius is None:
        return FreeRun(tuple(reference), tuple(chosen), first)
    ours_there, theirs_there = (np.array(tokens[first]) for tokens in (reference, chosen))
    judged = compare_extremes(ours_there, theirs_there, scores, axis=-1, radius=radius)
    return FreeRun(tuple(reference), tuple(chosen), first, lead(scores, radius), not judged.mismatches)


def _generated(feeds: StepFeeds, run: Run) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """Return the scores of every step and the token chosen by them."""
    feed: Arrays = feeds.first
    found = []
    for step in range(feeds.steps):
        outputs = run(feed)
        scores = np.array(outputs[feeds.roles.logits])
        tokens = next_tokens(scores)
        found.append((scores, tuple(map(int, tokens))))
        feed = feeds.after(step, feed, outputs, tokens)
    return found


def _radius(
    steps: MeasuredSteps, feeds: StepFeeds, tokens: list[tuple[int, ...]], scores: np.ndarray, last: int
) -> np.ndarray | None:
    """Return how far the scores of a step may be off in a healthy engine that came there on its own states."""
    if steps.healthy is None:
        return None
    each: dict[str, Arrays] = dict.fromkeys(steps.healthy.names, feeds.first)
    for step in range(last + 1):
        found = steps.evaluated(lambda healthy: healthy.each_on(each))  # noqa: B023 - asked at once
        if found is None:
            return None
        if step == last:
            return last_scores(found.radius(feeds.roles.logits, scores))
        each = {n: feeds.after(step, each[n], made, np.array(tokens[step])) for n, made in found.values.items()}
    return None
