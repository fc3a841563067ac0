"""Does a file have the weights of a network? A few numbers of each weight decide.

So weights are the same whatever an exporter called them, transposed, multiplied by a norm or put into another order.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.sdk import WEIGHTS_ALIKE, Graph
from tensortriage_torch.premises import NetworkPremises
from tensortriage_torch.worker.premises import quantiles, sample

_NARROW = {"bfloat16": 2.0**-7}


@dataclasses.dataclass(frozen=True)
class HeldWeights:
    """The weights of a network, compared with those of a file; a module is judged by the farthest of its weights.

    Attributes:
        same: Modules whose weights the file has.
        other: Modules for which the file has other numbers, and their relative difference, the furthest first.
        missing: Modules without any weight of their size in the file.
    """

    same: frozenset[str]
    other: Mapping[str, float]
    missing: frozenset[str]


def held_weights(graph: Graph, network: NetworkPremises) -> HeldWeights:
    """Return which modules' weights a file has.

    Where it has none of the name, the nearest with as many elements counts: exporters rename weights that they
    transpose. Whole numbers, as in quantized files, are not compared.
    """
    by_size: dict[int, list[str]] = {}
    for name, spec in graph.constants.items():
        by_size.setdefault(math.prod(spec.sizes), []).append(name)
    known: dict[str, _Weight] = {}

    def weight(name: str) -> _Weight:
        if name not in known:
            known[name] = _Weight(graph.weight(name))
        return known[name]

    errors: dict[str, float] = {}
    missing: set[str] = set()
    for name, shape in network.shapes.items():
        module = name.rpartition(".")[0]
        alike = by_size.get(math.prod(shape), [])
        candidates = [each for each in map(weight, [name] if name in alike else alike) if each.rounding]
        numbers = shape, network.samples[name], network.quantiles[name]
        distances = [each.distance(*numbers) for each in candidates if each.fits(shape)]
        if distances:
            errors[module] = max(errors.get(module, 0.0), min(distances))
        elif not alike:
            missing.add(module)
    other = {module: error for module, error in errors.items() if error > 0.0}
    return HeldWeights(
        same=frozenset(errors) - other.keys() - missing,
        other=dict(sorted(other.items(), key=lambda item: -item[1])),
        missing=frozenset(missing),
    )


class _Weight:
    """A weight of the file, and its identifying numbers, computed once.

    Attributes:
        rounding: Relative rounding error of its format; 0 for whole numbers.
    """

    def __init__(self, array: np.ndarray) -> None:
        floats = array.dtype.kind == "f"
        self.rounding = _NARROW.get(array.dtype.name) or (float(np.finfo(array.dtype).eps) if floats else 0.0)
        self._array = array

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it may be a weight of a shape: as it is, transposed, or with dimensions of size 1 more or less."""
        own, other = (tuple(size for size in each if size != 1) for each in (self._array.shape, shape))
        return own in (other, other[::-1])

    def distance(self, shape: tuple[int, ...], network: np.ndarray, ordered: np.ndarray) -> float:
        """Return the relative difference from a network's weight of a shape and its numbers; 0 within rounding."""
        own = self._array.shape
        errors = [_difference(ordered, self._quantiles)] if own not in (shape, shape[::-1]) else []
        if own == shape:
            errors += _differences(network, self._sample)
        if own == shape[::-1]:
            errors += _differences(network.T, self._sample)
        return 0.0 if min(errors) <= WEIGHTS_ALIKE * self.rounding else min(errors)

    @functools.cached_property
    def _sample(self) -> np.ndarray:
        return sample(self._array).astype(np.float32)

    @functools.cached_property
    def _quantiles(self) -> np.ndarray:
        return quantiles(self._array.astype(np.float32))


def _differences(one: np.ndarray, other: np.ndarray) -> list[float]:
    """Return relative differences: as they are, and of filters with a factor for each input, or each output."""
    found = [_difference(one, other)]
    for axis in (0, 1) if one.ndim > 2 else ():
        rows = (np.moveaxis(each, axis, 0).reshape(each.shape[axis], -1) for each in (one, other))
        left, right = (each.astype(np.float64) for each in rows)
        if left.shape[1] > 1:
            power = (left * left).sum(1, keepdims=True)
            factor = np.divide((left * right).sum(1, keepdims=True), power, out=np.zeros_like(power), where=power > 0)
            found.append(_difference(left * factor, right))
    return found


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the relative RMS difference of two arrays of one shape."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    power = float((one * one).sum())
    off = float(((one - other) ** 2).sum())
    return (off / power) ** 0.5 if power else float("inf") if off else 0.0
