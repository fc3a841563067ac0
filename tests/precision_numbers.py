"""Outputs whose error is known: each node adds so much noise power, some pairs add more, some nodes make NaN."""

import math

from tensortriage.precision.goal import Reading


class Additive:
    """Readings of an engine made of numbers; counts what was asked."""

    def __init__(self, ratios, *, pairs=(), worse=1.0, floor=0.0):
        self.ratios = ratios
        self.pairs = pairs
        self.worse = worse
        self.floor = floor
        self.asked = []

    @property
    def items(self):
        return tuple(self.ratios)

    def read(self, kept):
        self.asked.append(frozenset(kept))
        low = [name for name in self.ratios if name not in kept]
        power = sum(self.ratios[name] ** 2 for name in low) + self.floor**2
        power += sum(extra**2 for one, other, extra in self.pairs if one in low and other in low)
        ratio = math.sqrt(power) * self.worse
        return Reading(ratio <= 1.0, ratio, ratio / 100.0, 10_000, "y", "sample", (ratio,))

    def only(self, low):
        return self.read(frozenset(self.ratios) - set(low))
