"""Weights stored in blocks, with a scale and a zero point each: read otherwise, are they the original's?

Rounding leaves a number about half a step from its original. Packers make few mistakes besides: zero points that are
moved, halves of bytes in each other's place, numbers with a sign kept as ones without, scales in another order or
unit, or one block further on. Each is tried on what is stored, next to every constant of the original's that has the
shape; the one that brings all numbers back is what was done.
"""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from tensortriage.sdk import magnitude

_ROUNDED = 0.25
"""Mean square in steps up to which a weight is its original, rounded. To nearest it is 1 / 12; tools that make up for
rounding move numbers further (as of `tensortriage.model.similarity.correspondence`)."""
_BROUGHT_BACK = 4.0
"""By so much another reading has to lower the mean square."""
_NEAREST, _HALVED = 1.2 / 12.0, 2.0
"""Mean square in steps of a weight that is rounded to nearest, and by how much its blocks' own scales have to lower it:
those of its neighbours are alike, and right integers are never nearer by them."""
_ROWS = 64
"""Rows by which a constant of the original is recognized."""
_LIKE = 0.05
"""By so much the factor of a single block may be another: 16 numbers of 4 bits tell it to 0.03."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredBlocks:
    """A weight as a file keeps it; a row is what its blocks lie in.

    Attributes:
        numbers: The stored whole numbers, float64, ``[rows, numbers]``.
        exchanged: The same with neighbours in each other's place, as halves of bytes are.
        scale: A step for each block, float64, ``[rows, blocks]``.
        zero: Likewise the zero points.
        block: Numbers of a block; the last one of a row may have fewer.
        bits: Bits of a number.
        is_signed: Whether numbers are read with a sign.
    """

    numbers: np.ndarray
    exchanged: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    block: int
    bits: int
    is_signed: bool

    def each(self, values: np.ndarray) -> np.ndarray:
        """Return one number for each number of one for each block."""
        return np.repeat(values, self.block, axis=1)[:, : self.numbers.shape[1]]

    def real(self) -> np.ndarray:
        """Return the numbers that it holds, float64, ``[rows, numbers]``."""
        return np.asarray((self.numbers - self.each(self.zero)) * self.each(self.scale))

    def apart(self, was: np.ndarray) -> np.ndarray:
        """Return how far its numbers are from others, in steps, ``[rows, numbers]``."""
        return np.asarray(self.numbers - self.each(self.zero) - was / self.each(self.scale))

    def off(self, was: np.ndarray) -> float:
        """Return the mean square of `apart`."""
        return float(np.square(self.apart(was)).mean())

    def rows(self, chosen: np.ndarray) -> "StoredBlocks":
        """Return some of its rows."""
        parts = (self.numbers, self.exchanged, self.scale, self.zero)
        numbers, exchanged, scale, zero = (part[chosen] for part in parts)
        return dataclasses.replace(self, numbers=numbers, exchanged=exchanged, scale=scale, zero=zero)


@dataclasses.dataclass(frozen=True, slots=True)
class BlocksRead:
    """Another reading of a weight.

    Attributes:
        words: The mistake that it stands for, as the rest of a sentence that begins with the weight.
        right: The weight without that mistake.
    """

    words: str
    right: StoredBlocks


def wrong_blocks(weight: StoredBlocks, originals: Iterable[np.ndarray]) -> BlocksRead | None:
    """Return what was done to a weight; None where it is one of the originals, rounded, or nothing is known.

    Args:
        weight: The weight.
        originals: Constants that it may be, float64, each in the shape of its numbers.
    """
    if not weight.scale.all() or not np.isfinite(weight.scale).all():  # ONNX Runtime's may be negative
        return None
    chosen = np.unique(np.linspace(0, len(weight.numbers) - 1, _ROWS).astype(int))
    found: list[tuple[float, np.ndarray]] = []
    for was in originals:
        if (displaced := _displaced(weight, was, chosen)) is not None:
            return displaced
        if weight.rows(chosen).off(was[chosen]) <= _ROUNDED:
            words, right = _moved(weight, was)  # few blocks may be wrong
            return BlocksRead(words, right) if words else None
        read = next(_brought_back(weight, was, chosen), None)
        if read is not None:
            found.append((read.right.off(was[chosen]), was))
    if not found:
        return None
    was = min(found, key=lambda each: each[0])[1]
    return next(_brought_back(weight, was), None)


def _displaced(weight: StoredBlocks, was: np.ndarray, chosen: np.ndarray) -> BlocksRead | None:
    """Return a weight whose scales, perhaps with zero points, are those of neighbouring blocks; of an original."""
    before = weight.rows(chosen).off(was[chosen])
    if before <= _HALVED * _NEAREST or (weight.scale == weight.scale.flat[0]).all():
        return None
    for names in (("scale",), ("scale", "zero")) if (weight.zero != weight.zero.flat[0]).any() else (("scale",),):
        for axis, place in ((1, "block"), (0, "row"), (None, "block, row by row,")):
            for step, side in ((-1, "before"), (1, "behind")):
                rolled = {name: np.roll(getattr(weight, name), step, axis) for name in names}
                right = dataclasses.replace(weight, **rolled)
                after = right.rows(chosen).off(was[chosen])
                if after <= _NEAREST and before >= _HALVED * after:
                    what = "scales and zero points" if len(names) > 1 else "scales"
                    return BlocksRead(f"has the {what} of the {place} {side} each", right)
    return None


def _brought_back(weight: StoredBlocks, was: np.ndarray, chosen: np.ndarray | None = None) -> Iterator[BlocksRead]:
    """Yield readings that make a weight an original, the plainest first; of some rows, where these are given."""
    of = was if chosen is None else was[chosen]
    before = (weight if chosen is None else weight.rows(chosen)).off(of)
    for words, arranged in _arrangements(weight):
        seen = arranged if chosen is None else arranged.rows(chosen)
        for more, read in (("", seen), _moved(seen, of), _scaled(seen, of)):
            said = " and ".join(filter(None, (words, more)))
            after = read.off(of)
            if said and after <= _ROUNDED and before >= _BROUGHT_BACK * after:
                yield BlocksRead(said, read)


def _arrangements(weight: StoredBlocks) -> Iterator[tuple[str, StoredBlocks]]:
    """Yield other arrangements of what is stored, the given one first."""
    yield "", weight
    exchanged = dataclasses.replace(weight, numbers=weight.exchanged, exchanged=weight.numbers)
    if weight.bits == 4:  # two in a byte
        yield "has the two numbers of each byte in each other's place", exchanged
    span, half = 2.0**weight.bits, 2.0 ** (weight.bits - 1)
    without, kept = ("without", "with") if weight.is_signed else ("with", "without")
    least = -half if weight.is_signed else 0.0
    beyond = weight.numbers >= least + half
    for other in (np.where(beyond, -half, half), np.where(beyond, -span, 0.0) + (span if weight.is_signed else 0.0)):
        words = f"holds numbers {without} a sign kept as ones {kept}"
        yield words, dataclasses.replace(weight, numbers=weight.numbers + other)
    for what, values in (("scales", weight.scale), ("zero points", weight.zero)):
        if min(values.shape) > 1 and (values != values.flat[0]).any():
            words = f"has its {what} in another order (row by row for block by block, or the other way round)"
            for turned in (values.reshape(values.shape[::-1]).T, np.ascontiguousarray(values.T).reshape(values.shape)):
                scale, zero = (turned, weight.zero) if what == "scales" else (weight.scale, turned)
                yield words, dataclasses.replace(weight, scale=scale, zero=zero)
    if weight.zero.any():
        yield "has zero points that were not subtracted", dataclasses.replace(weight, zero=np.zeros_like(weight.zero))


def _moved(weight: StoredBlocks, was: np.ndarray) -> tuple[str, StoredBlocks]:
    """Return a weight with the zero points that its numbers need, and how those that it has are off."""
    apart = weight.apart(was)
    missing = -apart.shape[1] % weight.block
    padded = np.pad(apart, ((0, 0), (0, missing)), constant_values=np.nan).reshape(*weight.zero.shape, weight.block)
    by = np.rint(np.nanmedian(padded, axis=2))
    before, after = (np.nanmean(np.square(each), axis=2) for each in (padded, padded - by[:, :, None]))
    by[(after > _ROUNDED) | (before < _BROUGHT_BACK * after)] = 0.0  # tools that make up for rounding move numbers
    wrong = by != 0
    if not wrong.any():
        return "", weight
    steps = sorted({int(step) for step in by[wrong]})
    where = "" if wrong.all() else f" in {np.count_nonzero(wrong)} of {by.size} blocks"
    if len(steps) == 1:
        words = f"has zero points that are {abs(steps[0])} too {'small' if steps[0] > 0 else 'large'}{where}"
        stored = {float(each) for each in weight.zero[wrong]}
        if where and len(stored) == 1:
            one = stored.pop()
            words += f", which are {one:g} there where {one + steps[0]:g} is right"
    else:
        words = f"has zero points that are off by {steps[0]} to {steps[-1]}{where}"
    return words, dataclasses.replace(weight, zero=weight.zero + by)


def _scaled(weight: StoredBlocks, was: np.ndarray) -> tuple[str, StoredBlocks]:
    """Return a weight whose scales are all multiplied by the one factor that its numbers need, and that factor."""
    centred = weight.numbers - weight.each(weight.zero)
    steps = was / weight.each(weight.scale)
    starts = np.arange(0, was.shape[1], weight.block)
    size, shared = (np.add.reduceat(each, starts, axis=1) for each in (steps * steps, steps * centred))
    size, shared = size[shared > 0.0], shared[shared > 0.0]
    factors = size / shared
    alike = np.abs(factors / np.median(factors) - 1.0) <= _LIKE if factors.size else np.zeros(1, bool)
    if alike.mean() <= 0.5:
        return "", weight
    factor = float(size[alike].sum() / shared[alike].sum())
    if abs(factor - 1.0) <= _LIKE:
        return "", weight
    by = f"{magnitude(max(factor, 1.0 / factor))} times too {'small' if factor > 1.0 else 'large'}"
    return f"has scales that are {by}", dataclasses.replace(weight, scale=weight.scale * factor)
