"""One pattern of a wrong tensor, in a sentence, and helpers that the searches share."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.text import magnitude

PATTERN_SHARE = 0.9
"""Share of the squared error that a pattern (a transposition, a scale) must account for to be reported: the remaining
tenth is within the cost of rounding to a narrow format."""

_PATTERN_MAJORITY = 0.7
"""Share of the wrong elements whose error a pattern must halve: it holds for most, not for a few that dominate."""

_HALVED_BY_CHANCE = 0.4
"""Share of errors that an explanation halves by chance: an independent one of their size halves a sixth of normally
distributed errors and a fifth of evenly distributed ones; where all have one sign, twice as many."""

LOG10_LUCK = -6.0
"""log10 of the chance below which a coincidence is none: once in a million tensors."""


@frozen_dataclass
class PatternFinding:
    """One peculiarity of an error.

    Attributes:
        slug: Kind of peculiarity, one of `anatomy.SLUGS`.
        sentence: The peculiarity, for people: one plain sentence without full stop.
        strength: Share of the error that it accounts for, 0..1; at most 0.3 for a mere description (`noise`).
        evidence: The figures behind the sentence, JSON-able.
    """

    slug: str
    sentence: str
    strength: float
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def effect(self) -> str:
        """An op's fault, for a headline: ``returns 1.03 times the right value``; empty if unclear."""
        known = self.evidence
        if self.sentence.startswith("in the wrong elements") or self.strength < PATTERN_SHARE:
            return ""
        if self.slug in ("through-type", "operand"):
            return str(known["effect"])
        if self.slug == "scale" and not known["offset"]:
            factor = known["factor"]
            return f"returns {magnitude(factor, 3 if abs(factor - 1.0) > 0.01 else 6)} times the right value"
        if self.slug == "constant":
            return f"returns {magnitude(known['value'])} everywhere" if "value" in known else ""
        if self.slug == "nonfinite":
            return "returns " + ("NaN" if known["NaN"] else "Inf")
        if self.slug == "direction":
            return f"is wrong in its {known['direction']} direction"
        if self.slug == "rounding":
            return f"rounds its result to {known['format']}" if "format" in known else ""
        return _EFFECTS.get(self.slug, "")


_EFFECTS: Mapping[str, str] = MappingProxyType(
    {
        "shape": "returns a tensor of another shape",
        "stale": "returns another tensor",
        "sign": "returns the right value with the wrong sign",
        "offset": "is off by a constant",
        "saturation": "cuts its result off",
        "zeros": "returns zeros",
        "wrong-axis": "works along the wrong axis",
        "slice-scale": "scales its slices by wrong factors",
    }
    | dict.fromkeys(
        ("shift", "transposition", "layout", "reordering", "permutation"), "returns right numbers in wrong places"
    )
)
"""The fault of an op by kind of error, where it is the same for all errors of the kind."""


def counted(count: int, noun: str) -> str:
    """Return ``1 element``, ``3 elements``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(indices: Sequence[int], axis_length: int) -> str:
    """Return given indices of an axis for a sentence, runs as ranges.

    Example:
        >>> listed([61, 62, 63], 64)
        'indices 61..63 of 64'
    """
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    shown = ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in runs[:6])
    if len(runs) > 6:
        return f"{len(indices)} of {axis_length} indices ({shown}, ...)"
    return f"{'index' if len(indices) == 1 else 'indices'} {shown} of {axis_length}"


def log10_binomial(count: int, chosen: int) -> float:
    """Return log10 of the number of ways to choose some of ``count`` things."""
    ways = math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)
    return ways / math.log(10.0)


def support(error: np.ndarray, rest: np.ndarray, *, parameters: int = 0) -> float:
    """Return the share of a squared error that an explanation accounts for; 0 when that may be luck.

    It is luck when it does not hold for most of the elements, but for a few that dominate the sum; or when both so good
    a fit and so many elements that profit have odds above one in a million. Of k parameters fitted to n independent
    errors, the share that is left follows a Beta((n - k) / 2, k / 2) distribution: ``P(left < x) < x ** ((n - k) / 2)``
    up to a small factor; errors of different size count as ``(sum e^2)^2 / sum e^4`` equal ones. An error halved by
    chance in at most two of five elements is halved in a share q of n with ``P < exp(-n KL(q || 0.4))`` (Chernoff).

    Args:
        error: Target minus reference, finite, of any shape.
        rest: Target minus the explanation's values, same shape.
        parameters: Numbers fitted; 0 when the explanation was there before the error.
    """
    with np.errstate(all="ignore"):
        total = energy(error)
        left = max(energy(rest) / total, 1e-12) if total > 0.0 else 1.0
        if not 1.0 - left >= PATTERN_SHARE or not math.isfinite(total):
            return 0.0
        sizes = np.abs(error)
        better = np.count_nonzero((np.abs(rest) < 0.5 * sizes) & (sizes > 0.0))
        count = float(np.count_nonzero(sizes))
        if better < _PATTERN_MAJORITY * count:
            return 0.0
        equal = count if parameters == 0 else 1.0 / energy(np.square(error / math.sqrt(total)))
    by_sum = 0.5 * max(equal - parameters, 0.0) * math.log10(left)
    by_number = -max(count - parameters, 0.0) * _divergence(better / count) / math.log(10.0)
    return 1.0 - left if min(by_sum, by_number) <= LOG10_LUCK else 0.0


def _divergence(share: float) -> float:
    """Return the Kullback-Leibler divergence of a coin that falls with this share from one with `_HALVED_BY_CHANCE`."""
    rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - _HALVED_BY_CHANCE)) if share < 1.0 else 0.0
    return share * math.log(share / _HALVED_BY_CHANCE) + rest


def energy(errors: np.ndarray) -> float:
    """Return the sum of squares.

    Args:
        errors: Errors of any shape; float64 or float32.
    """
    flat = errors.reshape(-1)
    return float(np.dot(flat, flat))
