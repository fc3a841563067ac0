"""Which transform of the inputs makes the target's outputs of the reference's model, where nothing but outputs is seen?

The reference is cheap to ask: every candidate is, by itself first, then those of different families together, the
likeliest first, while time allows. A candidate that comes near is for the judge to confirm.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage_feeds.catalogue import InputCandidates, candidates
from tensortriage_feeds.solved_search import solved_candidates
from tensortriage_feeds.tokens import exchanges, token_candidates
from tensortriage_feeds.transforms import Tensors, Transform, composed, of_all

SECONDS = 10.0
"""How long candidates are tried at most, if each takes as long as the fastest: what else the machine does must not
decide what is found."""
SOLVED = 0.4
"""By what share of that numbers are solved for behind it."""
LONGEST = 30.0
"""How long at most however slow the machine is, in seconds."""
NEAR = 100.0
"""How many limits of the outputs a candidate may be off by that the judge is asked about: another feed has other
floors, and wrong candidates are 1e4 limits off and more."""
CLEARLY = 30.0
"""By so much nearer than the right feed a candidate has to come that no limit confirms: what programs round on their
way (bytes of another space of colours leave 1/600) no two do alike. On the 14 networks of `bench/programs.py` with a
weight or an op that is off, the best of all candidates that may be told so comes 1.6 times nearer."""
_AS_WEIGHTS = ("scale", "normalization", "constant", "gamma", "function", "filter", "interpolation", "resampling")
"""Kinds that a weight or an op which is off makes as well, nearly: they have to be within limits."""
_TOGETHER_PLACES = 8
"""So many of a family's candidates of places are tried together with others."""

Run = Callable[[Tensors], Tensors]
Steps = tuple[Transform, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """The target's outputs, and how near a candidate has to come.

    Attributes:
        outputs: By name.
        limits: The largest error of a healthy engine, by name of an output; 0 for exact types.
    """

    outputs: Tensors
    limits: Mapping[str, float]

    def distance(self, made: Tensors) -> float:
        """Return how many limits outputs are off by, the farthest counts; inf where they cannot be compared."""
        return max((self._of(name, made) for name in self.limits), default=math.inf)

    def _of(self, name: str, made: Tensors) -> float:
        theirs, mine = self.outputs.get(name), made.get(name)
        if theirs is None or mine is None or theirs.shape != mine.shape:
            return math.inf
        if mine.dtype.kind not in "fc":
            return 0.0 if np.array_equal(mine, theirs) else math.inf
        wide = mine.astype(np.float64)
        with np.errstate(all="ignore"):
            error = float(np.sqrt(np.mean((theirs.astype(np.float64) - wide) ** 2)))
            signal = float(np.sqrt(np.mean(wide**2)))
        found = (
            error / (signal * self.limits[name]) if signal and self.limits[name] else (0.0 if error == 0 else math.inf)
        )
        return found if math.isfinite(found) else math.inf


def bits_of(reference: Tensors, wanted: Wanted, before: Mapping[str, float]) -> float:
    """Return the significance of an agreement within the limits: bits that no chance makes.

    An element that was off by an error and is now within a limit would be so by chance once in their ratio; an exact
    one once in two.

    Args:
        reference: Outputs of the reference on the right feed.
        wanted: The target's.
        before: Errors of the target's outputs, by name.
    """
    found = 0.0
    for name, limit in wanted.limits.items():
        array = reference[name]
        if array.dtype.kind in "fc" and 0.0 < limit < before[name]:
            found += min(array.size, 64) * math.log2(min(before[name], 1.0) / limit)
        elif array.dtype.kind not in "fc":
            found += float(np.count_nonzero(array != wanted.outputs[name]))
    return max(found, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Nearest:
    """The result of a search.

    Attributes:
        steps: The transforms that come nearest; empty where none comes nearer than the right feed.
        distance: How many limits the outputs are off by with them.
        tried: How many candidates were asked about.
        left: The same distance as a share of that of the right feed.
    """

    steps: Steps
    distance: float
    tried: int
    left: float = 1.0

    @property
    def is_clear(self) -> bool:
        """Whether it comes so much nearer that the rest is how the program rounds; see `CLEARLY`."""
        return self.left * CLEARLY <= 1.0 and all(step.kind not in _AS_WEIGHTS for step in self.steps)


def search(
    tensors: Tensors, run: Run, wanted: Wanted, *, confirmed: Callable[[Steps], bool], seconds: float = LONGEST
) -> Nearest:
    """Return the first candidate that the judge confirms, or the nearest one.

    Args:
        tensors: The right feed.
        run: Runs the reference; it may raise what `UNRUNNABLE` names for a feed that the model does not take.
        wanted: The outputs to approach.
        confirmed: Whether the judge takes a candidate that came near.
        seconds: How long at most.
    """
    started = ended = time.perf_counter()
    fastest = math.inf
    best, tried = Nearest((), wanted.distance(run(tensors)), 0), 0
    first = best.distance
    seen: set[int] = set()
    for steps in combinations(tensors):
        began, ended = ended, time.perf_counter()
        fastest = min(fastest, ended - began) if tried else fastest
        if tried * fastest > SECONDS or ended - started > min(seconds, LONGEST):
            break
        fed = composed(steps, tensors)
        key = hash(tuple(fed[name].tobytes() for step in steps for name in step.inputs))
        if key in seen:
            continue
        seen.add(key)
        tried += 1
        if (distance := wanted.distance(run(fed))) < best.distance:
            best = Nearest(steps, distance, tried)
            if distance <= NEAR and confirmed(steps):
                return best
    for solved, _ in solved_candidates(tensors, run, wanted.outputs, wanted.limits, seconds=SOLVED * SECONDS):
        tried += 1
        if (distance := wanted.distance(run(solved(tensors)))) < best.distance and not is_a_factor(solved):
            best = Nearest((solved,), distance, tried)
            if distance <= NEAR and confirmed((solved,)):
                return best
    return dataclasses.replace(best, tried=tried, left=best.distance / first if np.isfinite(first) and first else 1.0)


def is_a_factor(transform: Transform) -> bool:
    """Return whether a transform is one factor of all numbers, which a first weight of another size makes as well."""
    numbers = transform.parameters
    return "scale" in numbers and len(numbers["scale"]) == 1 and numbers.get("offset") == [0.0]


def combinations(tensors: Tensors) -> Iterator[Steps]:
    """Yield candidates for a feed: each alone, then two and three of different families, in the order of likelihood."""
    known = {
        name: candidates(name, array) for name, array in tensors.items() if array.dtype.kind == "f" or array.ndim > 2
    }
    shapes = {array.shape for array in tensors.values()}
    of_shape = [{n: each for n, each in known.items() if tensors[n].shape == shape} for shape in shapes]
    together = [each for each in (known, *of_shape) if len(each) > 1]
    sets = [*itertools.chain.from_iterable(map(_alike, together)), *known.values()]
    tokens = list(token_candidates(tensors))
    yield from ((each,) for each in exchanges(tensors))
    yield from ((each,) for each in tokens)
    for each in sets:
        yield from ((one,) for one in (*each.channels, *each.numbers, *each.places))
    for each in sets:
        places = each.places[:_TOGETHER_PLACES]
        yield from itertools.product(each.channels[:1], each.numbers)
        yield from itertools.product(each.channels, places)
    for one, other in itertools.combinations(tokens, 2):
        if set(one.inputs).isdisjoint(other.inputs):
            yield one, other
    yield from itertools.chain.from_iterable(((one,) for one in each.others) for each in sets)
    for each in sets:
        yield from itertools.product(each.places[:_TOGETHER_PLACES], each.numbers)
        yield from itertools.product(each.numbers, [one for one in each.others if one.kind == "dtype"])
    for each in sets:
        yield from itertools.product(each.channels[:1], each.others)
        yield from itertools.product(each.places[:_TOGETHER_PLACES], each.channels[:1], each.numbers)
        yield from itertools.product(each.channels[1:], each.numbers)
        yield from itertools.product(each.others, each.numbers)


def _alike(known: Mapping[str, InputCandidates]) -> Iterator[InputCandidates]:
    """Yield mistakes common to all inputs, since a program has one function for all pictures."""
    families: list[Sequence[Sequence[Transform]]] = [
        [getattr(each, field.name) for each in known.values()] for field in dataclasses.fields(InputCandidates)
    ]
    together: list[tuple[Transform, ...]] = []
    for family in families:
        by_words = [{one.words: one for one in transforms} for transforms in family]
        shared = [words for words in by_words[0] if all(words in other for other in by_words[1:])]
        together.append(tuple(of_all([each[words] for each in by_words]) for words in shared))
    yield InputCandidates(*together)
