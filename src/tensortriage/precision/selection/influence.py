"""The influence of each node's rounding on the outputs, with all others exact: group testing down to single nodes.

One run gives the effect of a *group* of nodes. A group with hardly any effect is not looked into; others are halved,
the worst first. So the cost follows the number of sensitive nodes, about 2 K log2(N / K) runs, and not that of nodes.
(Independent roundings add in power: the squares of the ratios. The share of each node in a group that was left whole
follows from that. The split into local error and its influence is Herbgrind's, PLDI 2018.)
"""

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.precision.goal import GoalReading

_GROUP_IGNORED = 0.1
"""Ratio (20 dB below the limit) up to which a group is not looked into: a hundred of them fill the limit."""

_GROUPS_SPARED = 0.5
"""Ratio (6 dB below the limit) that all groups not yet looked into may reach together for the search to end."""


@frozen_dataclass
class Influences:
    """Influences of nodes on the outputs.

    Attributes:
        power: Per node the squared ratio at every output of every sample; infinite where it makes NaN or Inf.
        alone: Nodes measured in isolation; the others have a share of their group.
    """

    power: Mapping[str, np.ndarray]
    alone: frozenset[str]
    runs: int

    def ratio(self, node: str) -> float:
        """Return the largest ratio that a node alone causes."""
        return math.sqrt(float(np.max(self.power[node])))

    def order(self) -> list[str]:
        """Return the nodes in the order in which they are best kept: each next one reduces the worst output most."""
        left = dict.fromkeys(self.power)
        ordered = [node for node in left if np.isinf(self.power[node]).any()]
        for node in ordered:
            del left[node]
        if left:
            names = list(left)
            rows = np.stack([self.power[node] for node in names])
            total = rows.sum(axis=0)
            open_ = np.ones(len(names), bool)
            for _ in names:
                entry = int(np.argmax(total))
                chosen = int(np.argmax(np.where(open_, rows[:, entry], -1.0)))
                open_[chosen] = False
                total = rows[open_].sum(axis=0)
                ordered.append(names[chosen])
        return ordered

    def predicted(self, low: Sequence[str]) -> float:
        """Return the ratio to expect when some nodes compute in the format."""
        if not low:
            return 0.0
        return math.sqrt(float(np.max(np.sum([self.power[node] for node in low], axis=0))))


def influences(
    items: Sequence[str],
    only: Callable[[Sequence[str]], GoalReading],
    *,
    relative: bool = False,
    expired: Callable[[], bool] = lambda: False,
    progress: Callable[[int, float], None] = lambda runs, left: None,
) -> Influences:
    """Measure the influence of nodes on the outputs.

    Args:
        items: Nodes, in topological order (neighbours are often sensitive together).
        only: Reading when only these nodes compute in the format.
        relative: Whether `_GROUP_IGNORED`, the ratio up to which a group is left whole, is a share of the largest
            finite ratio met instead of the limit.
        expired: Whether the time for it is over: then groups stay as they are.
        progress: Receives the readings so far and a rough number of those to come.
    """
    power: dict[str, np.ndarray] = {}
    alone: set[str] = set()
    count = itertools.count()
    heap: list[tuple[float, int, tuple[str, ...], GoalReading]] = []
    runs = 0
    scale = 0.0

    def add(group: tuple[str, ...]) -> None:
        nonlocal runs, scale
        if not group:
            return
        reading = only(group)
        runs += 1
        scale = max(scale, reading.ratio if math.isfinite(reading.ratio) else 0.0)
        heapq.heappush(heap, (-reading.ratio, next(count), group, reading))

    add(tuple(items))
    while heap:
        negative, _, group, reading = heapq.heappop(heap)
        threshold = _GROUP_IGNORED * scale if relative else _GROUP_IGNORED
        done = expired() or (not relative and _together(reading, heap) <= _GROUPS_SPARED)
        if len(group) > 1 and -negative > threshold and not done:
            middle = len(group) // 2
            add(group[:middle])
            add(group[middle:])
            progress(runs, sum(2.0 * math.log2(len(g)) for r, _, g, _ in heap if -r > threshold and len(g) > 1))
            continue
        share = np.square(np.asarray(reading.ratios)) / len(group)
        power.update((node, share) for node in group)
        if len(group) == 1:
            alone.update(group)
    return Influences({node: power[node] for node in items}, frozenset(alone), runs)


def _together(reading: GoalReading, heap: Sequence[tuple[float, int, tuple[str, ...], GoalReading]]) -> float:
    """Return the ratio that some groups cause together."""
    rows = [np.square(np.asarray(known.ratios)) for known in (reading, *(entry[3] for entry in heap))]
    return math.sqrt(float(np.max(np.sum(rows, axis=0))))
