"""Both engines generating on their own tokens and states: the step where they part, and whether it counts.

A token that ties with another one is no fault: within the rounding of a run on its own states either may win. After the
first that differs the two continue differently, and no later token of that row of the batch can be compared; the other
rows go on.
"""

import dataclasses

import numpy as np

from tensortriage.envelope.sdk import ratio_of
from tensortriage_steps.feeds.next_feed import Arrays, Run, last_scores, next_tokens
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.measured_steps import MeasuredSteps
from tensortriage_steps.judging.ties import is_tie
from tensortriage_steps.steps_report import FreeRun


def free_run(steps: MeasuredSteps, feeds: StepFeeds, target: Run) -> FreeRun:
    """Let both engines generate on their own; judge the first differing token of each row, up to one that is no tie.

    Args:
        steps: Healthy evaluations of the model.
        feeds: Feeds of the steps.
        target: A fresh session of the target.

    Raises:
        EngineError: When an engine fails.
    """
    ours, theirs = _generated(feeds, steps.reference), _generated(feeds, target)
    reference, chosen = [tokens for _, tokens in ours], [tokens for _, tokens in theirs]
    parted = _partings(np.array(reference), np.array(chosen))
    found = FreeRun(tuple(reference), tuple(chosen))
    for row, step in parted:
        one = _parting(steps, feeds, found, ours[step][0], row, step)
        if found.first is None or one.tie is False:
            found = one
        if found.tie is not True:
            break
    return found


def _partings(ours: np.ndarray, theirs: np.ndarray) -> list[tuple[int, int]]:
    """Return row and step of the first token that differs in each row of the batch, the earliest first.

    Args:
        ours: Tokens, ``[steps, batch]``.
        theirs: Likewise.
    """
    differ = ours != theirs
    each = [(int(row), int(np.argmax(differ[:, row]))) for row in np.flatnonzero(differ.any(axis=0))]
    return sorted(each, key=lambda pair: pair[1])


def _parting(steps: MeasuredSteps, feeds: StepFeeds, free: FreeRun, logits: np.ndarray, row: int, step: int) -> FreeRun:
    """Judge the first token of a row that differs."""
    scores, tokens = last_scores(logits)[row], (free.reference[step][row], free.target[step][row])
    ahead = float(scores[tokens[0]] - scores[tokens[1]])
    found = FreeRun(free.reference, free.target, step, row=row, ahead=ahead)
    radius = _radius(steps, feeds, list(free.reference), logits, step)
    if radius is None:
        return found
    ours, theirs = (np.array([token]) for token in tokens)
    moved = float(radius[row][tokens[0]] + radius[row][tokens[1]])
    return dataclasses.replace(
        found, margin=ratio_of(ahead, moved), moved=moved, tie=is_tie(ours, theirs, scores[None], radius[row][None])
    )


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
