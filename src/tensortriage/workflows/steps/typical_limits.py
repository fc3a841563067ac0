"""Limits of steps that know of each other: the rounding of each step is another draw of the same.

A step is predicted by evaluations of that step, and what rounding they met there is one draw; the scores over a
vocabulary, or one row of a cache, follow from few numbers, so that draws differ. A step whose own prediction happens to
be low is therefore allowed what half of all steps are. Where values are mere copies, half of the steps are allowed
nothing, and so is each.
"""

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Sequence

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.within import within_healthy
from tensortriage.workflows.steps.steps_request import StepRow, StepValue


def with_typical_limits(rows: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Return the rows judged anew, the limit of each value at least the median over all steps."""
    shared = _medians([row.values for row in rows])
    own = _medians([row.drifted for row in rows])
    return tuple(
        dataclasses.replace(
            row,
            values=tuple(_judged(value, shared) for value in row.values),
            drifted=tuple(_judged(value, own) for value in row.drifted),
        )
        for row in rows
    )


def _medians(steps: Sequence[Sequence[StepValue]]) -> dict[tuple[str, str], float]:
    limits: dict[tuple[str, str], list[float]] = defaultdict(list)
    for values in steps:
        for value in values:
            if value.allowed is not None:
                limits[value.value, value.part].append(value.allowed)
    return {key: statistics.median(found) for key, found in limits.items()}


def _judged(value: StepValue, medians: dict[tuple[str, str], float]) -> StepValue:
    typical = medians.get((value.value, value.part))
    if value.allowed is None or typical is None or typical <= value.allowed:
        return value
    ratio = ratio_of(value.error, typical) or 0.0
    return dataclasses.replace(value, allowed=typical, ratio=ratio, within=within_healthy(value.error, typical))
