"""Matches tensors of the target to tensors of the reference by their values alone, and only when the match is certain.

The distance of two fingerprints estimates the relative RMS difference of two tensors. The true counterpart of a tensor
is as far away as rounding made it; any other tensor is further. With m independent estimates of each, the logarithm of
the ratio of two squared distances has a standard deviation of ``sqrt(4 / m)``; a match needs a ratio that equally
distant tensors would show with a probability below ``1 - confidence``, over all candidates together, and needs it in
both directions: a tensor whose counterpart is missing has a neighbour, but that neighbour has a nearer one.
"""

import dataclasses
import enum
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.alignment.tensor_fingerprint import PROJECTIONS, Fingerprint
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.grouping import grouped

_MATCH_FARTHEST = 0.2
"""Relative difference beyond which nothing is a match, however far the others are."""

_MATCH_FARTHEST_SORTED = 1e-3
"""The same of sorted values, in which unrelated tensors differ by far less."""

_MATCH_SAME = 3e-5
"""Relative difference up to which tensors of the reference hold the same values: float32 rounding of projections."""

_MATCH_ALIKE = 1e-3
"""Largest such difference of tensors to be called the same when the target's own error hides which of them it is."""

MATCH_SCALE = 0.02
"""Relative difference of two RMS up to which there is no factor between tensors; rounding to bf16 makes 0.4 %."""

_MATCH_SCALE_DISTANCES, _MATCH_ALIKE_DISTANCES = 2.0, 3.0
"""The same as multiples of the distance between two tensors, where that is more; and how many of it apart tensors may
be to be alike. An error moves the RMS, and the distance of a copy, by less than itself."""

_MATCH_UNUSUAL = 6.0
"""Matches further than so many times the median one are not given: rounding leaves true pairs about as near."""


class Relation(enum.Enum):
    """The correspondence of a matched pair's elements; the value is the word in files."""

    EQUAL = "equal"
    RESHAPED = "reshaped"
    TRANSPOSED = "transposed"
    REORDERED = "reordered"


@frozen_dataclass
class ValueMatch:
    """One tensor recognised.

    Attributes:
        target: Its name in the target.
        reference: Its name in the reference.
        aliases: Other tensors of the reference with the same values, up to order; the values cannot decide between
            them, and it makes no difference.
        relation: How the elements correspond. REORDERED: known only to be the same when sorted.
        scale: ``target = scale * reference``; exactly 1 when the factor is within the error.
        distance: Estimated relative RMS difference of the squashed values.
    """

    target: str
    reference: str
    aliases: tuple[str, ...]
    relation: Relation
    scale: float
    distance: float


def match(
    reference: Mapping[str, Fingerprint], target: Mapping[str, Fingerprint], *, confidence: float = 0.999
) -> dict[str, ValueMatch]:
    """Match tensors by value.

    Robust to rounding, to reshaping or transposing (either, not both), to a factor, and to tensors that only one side
    has. Several targets may match one reference: engines keep copies. The confidence is that of choosing among the
    given tensors: if the counterpart of a target is not among them, a neighbour in the graph whose own counterpart is
    missing too (a product without its small bias) can be mistaken for it; so give every tensor of the reference.

    Args:
        reference: Fingerprints by name.
        target: Fingerprints by other names.
        confidence: Probability that none of the matches is wrong, 0.5 to below 1.

    Returns:
        The matches by target, in the order of the target. A tensor has none when it resembles nothing, or several
        tensors, or has too little information (tiny, constant, all zero).

    Raises:
        UsageError: For a confidence outside of that (``confidence-range``).
    """
    if not 0.5 <= confidence < 1.0:
        raise UsageError(f"confidence {confidence} is not in [0.5, 1)", slug="confidence-range", cure="use e.g. 0.999")
    ours, theirs = (_by_count(side) for side in (reference, target))
    found: dict[str, ValueMatch] = {}
    for count, names in theirs.items():
        if count in ours:
            odds = (1.0 - confidence) / (max(len(target), 1) * len(ours[count]))
            group = _Group({n: reference[n] for n in ours[count]}, {n: target[n] for n in names}, odds)
            found |= {made.target: made for made in group.matches()}
    found = _usual(found)
    return {name: found[name] for name in target if name in found}


def _usual(found: Mapping[str, ValueMatch]) -> dict[str, ValueMatch]:
    """Return the matches whose distances are those of this engine's rounding.

    A tensor without counterpart may have a lonely neighbour, but rarely as near as rounding leaves true pairs.
    """
    if not found:
        return {}
    usual = max(_MATCH_SAME, statistics.median(made.distance for made in found.values()))
    return {name: made for name, made in found.items() if made.distance <= _MATCH_UNUSUAL * usual}


def _by_count(prints: Mapping[str, Fingerprint]) -> Mapping[int, list[str]]:
    return grouped((print_.count, name) for name, print_ in prints.items() if print_.information)


@dataclasses.dataclass(frozen=True)
class _Distances:
    """Distances of every tensor of one side from every one of another, [n, m].

    Attributes:
        in_order: With elements in memory order.
        symmetric: With axes in any order; inf where the shapes do not allow it.
        sorted_values: With elements in any order.
        signs: 1, or -1 where the negative of the other tensor is nearer, by the nearer of the first two.
        sorted_signs: 1 or -1 likewise, by the third.
    """

    in_order: np.ndarray
    symmetric: np.ndarray
    sorted_values: np.ndarray
    signs: np.ndarray
    sorted_signs: np.ndarray

    @classmethod
    def between(cls, rows: Sequence[Fingerprint], columns: Sequence[Fingerprint]) -> "_Distances":
        """Measure all pairs."""
        in_order = _both_signs([item.in_order for item in rows], [item.in_order for item in columns])
        symmetric = _both_signs([item.symmetric for item in rows], [item.symmetric for item in columns])
        values = _both_signs(
            [item.sorted_values for item in rows],
            [item.sorted_values for item in columns],
            [item.sorted_values[::-1] for item in columns],
        )
        lengths = [[tuple(sorted(n for n in item.shape if n > 1)) for item in side] for side in (rows, columns)]
        symmetric[:, [[one != other for other in lengths[1]] for one in lengths[0]]] = math.inf
        plus, minus = np.minimum(in_order, symmetric)
        return cls(
            in_order.min(axis=0),
            symmetric.min(axis=0),
            values.min(axis=0),
            np.where(minus < plus, -1.0, 1.0),
            np.where(values[1] < values[0], -1.0, 1.0),
        )

    @property
    def nearest(self) -> np.ndarray:
        """The smaller of the first two kinds: of tensors that may be reshaped or transposed."""
        return np.asarray(np.minimum(self.in_order, self.symmetric))


def _both_signs(
    rows: Sequence[Sequence[float]],
    columns: Sequence[Sequence[float]],
    negative: Sequence[Sequence[float]] | None = None,
) -> np.ndarray:
    """Return RMS differences of all pairs, and those with the columns times -1, [2, n, m]."""
    one, other, opposite = np.array(rows), np.array(columns), -np.array(columns if negative is None else negative)
    found = np.empty((2, len(one), len(other)))
    for index, row in enumerate(one):  # Expanding the square instead would lose the digits of small distances.
        for sign, side in enumerate((other, opposite)):
            found[sign, index] = np.sqrt(np.mean(np.square(side - row), axis=1))
    return found


@dataclasses.dataclass(frozen=True)
class _Level:
    """One way of comparing, with its requirements for certainty.

    Attributes:
        between: Distances of targets from references.
        signs: Signs of these.
        among_ours: Distances of references from references.
        among_theirs: Distances of targets from targets.
        ratio: How many times nearer than the next one a match must be, as a factor below 1.
        farthest: Largest distance of a match.
    """

    between: np.ndarray
    signs: np.ndarray
    among_ours: np.ndarray
    among_theirs: np.ndarray
    ratio: float
    farthest: float


class _Group:
    """All tensors of one number of elements."""

    def __init__(self, reference: Mapping[str, Fingerprint], target: Mapping[str, Fingerprint], odds: float) -> None:
        self._ours, self._theirs = list(reference.items()), list(target.items())
        ours, theirs = list(reference.values()), list(target.values())
        self._between = between = _Distances.between(theirs, ours)
        among_ours, among_theirs = _Distances.between(ours, ours), _Distances.between(theirs, theirs)
        self._reordered = among_theirs.sorted_values <= _MATCH_SAME
        z = statistics.NormalDist().inv_cdf(1.0 - odds)
        ratio = math.exp(-0.5 * z * math.sqrt(4.0 / PROJECTIONS))
        near = _Level(between.nearest, between.signs, among_ours.nearest, among_theirs.nearest, ratio, _MATCH_FARTHEST)
        by_values = _Level(
            between.sorted_values,
            between.sorted_signs,
            among_ours.sorted_values,
            among_theirs.sorted_values,
            ratio**2,  # Quantiles are far from independent.
            _MATCH_FARTHEST_SORTED,
        )
        self._levels = (near, by_values)

    def matches(self) -> list[ValueMatch]:
        """Return the sure matches."""
        found = []
        for index in range(len(self._theirs)):
            for level in self._levels:
                if level.between[index].min() <= level.farthest:
                    if made := self._match(index, level):
                        found.append(made)
                    break
        return found

    def _match(self, index: int, level: _Level) -> ValueMatch | None:
        nearest = int(level.between[index].argmin())
        distance = float(level.between[index, nearest])
        family = _family(level.among_ours, nearest, max(_MATCH_SAME, min(_MATCH_ALIKE, 2.0 * distance)))
        others = np.delete(level.between[index], family)
        if others.size and distance > level.ratio * float(others.min()):
            return None
        rivals = self._rivals(index, level, distance)
        if rivals.any() and distance > level.ratio * float(level.between[rivals][:, family].min()):
            return None
        return self._choose(index, family, level.signs[index, family], distance)

    def _rivals(self, index: int, level: _Level, distance: float) -> np.ndarray:
        """Return the targets that claim the same reference: of the same size, and not only other copies."""
        sizes = np.array([print_.rms for _, print_ in self._theirs]) / self._theirs[index][1].rms
        rivals = np.abs(sizes - 1.0) <= max(MATCH_SCALE, _MATCH_SCALE_DISTANCES * distance)
        rivals &= ~self._reordered[index]
        rivals[
            _family(level.among_theirs, index, max(_MATCH_SAME, min(_MATCH_ALIKE, _MATCH_ALIKE_DISTANCES * distance)))
        ] = False
        return rivals

    def _choose(self, index: int, family: Sequence[int], signs: np.ndarray, distance: float) -> ValueMatch | None:
        """Choose the member of a family that a tensor matches; None when their factors leave it open."""
        name, print_ = self._theirs[index]
        factors = signs * np.array([print_.rms / self._ours[member][1].rms for member in family])
        unscaled = np.abs(factors - 1.0) <= max(MATCH_SCALE, _MATCH_SCALE_DISTANCES * distance)
        if unscaled.any():
            family, factors = [int(member) for member in np.array(family)[unscaled]], factors[unscaled]
        if float(np.ptp(factors)) > _MATCH_ALIKE * float(np.abs(factors).max()):
            return None
        best = min(family, key=lambda member: self._rank(index, member, distance))
        scale = 1.0 if unscaled.any() else float(factors[family.index(best)])
        aliases = tuple(self._ours[member][0] for member in family if member != best)
        return ValueMatch(name, self._ours[best][0], aliases, self._relation(index, best, distance), scale, distance)

    def _relation(self, index: int, member: int, distance: float) -> Relation:
        limit = 1.5 * distance + _MATCH_SAME
        if self._between.in_order[index, member] <= limit:
            same = self._theirs[index][1].shape == self._ours[member][1].shape
            return Relation.EQUAL if same else Relation.RESHAPED
        return Relation.TRANSPOSED if self._between.symmetric[index, member] <= limit else Relation.REORDERED

    def _rank(self, index: int, member: int, distance: float) -> tuple[int, float]:
        order = list(Relation).index(self._relation(index, member, distance))
        return order, float(self._between.nearest[index, member])


def _family(distances: np.ndarray, member: int, limit: float) -> list[int]:
    """Return the tensors that are the same as one up to order and factor, step by step."""
    known, new = {member}, [member]
    while new:
        near = (distances[new] <= limit).any(axis=0)
        new = [int(other) for other in np.flatnonzero(near) if int(other) not in known]
        known.update(new)
    return sorted(known)
