"""The meaning of quantizers, and of numbers that a file stores rounded: as they are, or as before rounding.

A quantized file stands for a network: the one that it computes where no quantizer rounds. A quantizer that does not
round still clips values beyond its range, because a Clip or Relu of the network may live in it; that is left out on
request. The numbers before rounding are unknown: each is within half a step of the stored one, and a draw takes one for
each at random, which shows how far apart two roundings of one network may lie.
"""

import enum
import zlib

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

_LEAST_WRITTEN = 2.0**-23
"""Largest of the numbers in fp16 that stand for anything smaller: onnxconverter-common writes 1e-7 for numbers below it
(its ``min_positive_val``), which fp16 holds as twice its spacing there. Such a one was up to twice that away."""


class CutsOff(enum.Enum):
    """Values that quantizers clip."""

    RANGE = "values beyond the range of their integers"
    SIGN = "values beyond 0 where a range ends there, and beyond a whole number at its other end, as of Relu and Relu6"
    NOTHING = "nothing"


@frozen_dataclass
class StoredNumbers:
    """A policy.

    Attributes:
        rounds: Whether quantizers round.
        cuts: Values that quantizers cut off when they do not round; when they round, all values beyond their range.
        draw: Which original values to assume for stored numbers; 0 for the stored numbers themselves.
        but: Nodes whose quantizers still round.
        at: Nodes whose stored numbers a draw moves, and constants; empty for all.
    """

    rounds: bool = True
    cuts: CutsOff = CutsOff.RANGE
    draw: int = 0
    but: frozenset[str] = frozenset()
    at: frozenset[str] = frozenset()

    def of_node(self, name: str) -> "StoredNumbers":
        """Return the policy of one node, which may be a step of the body of a node: that has its name and a number."""
        if not self.but and not self.at:
            return self
        owner, _, number = name.rpartition("/")
        names = {name, owner} if number.isdigit() else {name}
        rounds = not self.but.isdisjoint(names)
        draw = self.draw if not self.at or not self.at.isdisjoint(names) else 0
        return StoredNumbers(rounds or self.rounds, CutsOff.RANGE if rounds else self.cuts, draw)

    def quantized(
        self,
        shifted: np.ndarray,
        limits: tuple[float, float],
        zero: np.ndarray | float = 0.0,
        scale: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """Return the values behind a quantizer that does not round.

        Args:
            shifted: They, over the scale and plus the zero point, float64.
            limits: Lowest and highest integer of its type.
            zero: Zero points that broadcast over them.
            scale: Scales that do.
        """
        if self.cuts is CutsOff.NOTHING:
            return shifted
        low, high = limits
        if self.cuts is CutsOff.RANGE:
            return np.asarray(np.clip(shifted, low, high))
        from_zero, to_zero = zero <= low, zero >= high
        whole = _is_whole((high - low) * scale)
        bottom = np.where(from_zero | (to_zero & whole), low, -np.inf)
        return np.asarray(np.clip(shifted, bottom, np.where(to_zero | (from_zero & whole), high, np.inf)))

    def dequantized(self, array: np.ndarray) -> np.ndarray:
        """Return stored quantized numbers as float64, of the same shape; unquantized values are unchanged.

        Single numbers are never moved: they are no weights.
        """
        wide = array.astype(np.float64)
        if not self.draw or array.dtype == np.float64 or array.size < 2:
            return wide
        dtype = DType.from_numpy(array.dtype)
        return wide + self._noise(array) * (_spacing(wide, dtype) if dtype.is_float else 1.0)

    def constant(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return a constant as float64 where it is moved: one in fp16 or bf16, when there is a draw.

        Args:
            name: Name of the quantizer.
            array: Any constant, in its type.
        """
        if not self.draw or array.size < 2 or array.dtype.kind not in "fV" or (self.at and name not in self.at):
            return array
        dtype = DType.from_numpy(array.dtype)
        if dtype not in (DType.FLOAT16, DType.BFLOAT16):
            return array
        wide = array.astype(np.float64)
        moved = wide + self._noise(array) * _spacing(wide, dtype)
        return np.where(np.isfinite(wide), moved, wide)

    def _noise(self, array: np.ndarray) -> np.ndarray:
        """Return numbers in steps, from -1/2 to 1/2, that depend on the draw and on the array alone."""
        stored = np.ascontiguousarray(array)
        seed = [self.draw, zlib.crc32(stored.view(np.uint8).tobytes()), stored.size]
        return np.random.default_rng(seed).uniform(-0.5, 0.5, stored.shape)


def _is_whole(widths: np.ndarray | float) -> np.ndarray:
    """Return where a range from 0 ends at a whole number, as that of Relu6, hard swish and hard sigmoid.

    A range observed by a calibrator hardly does so: a scale in float32 is within 2^-24 of the number it was calculated
    from.
    """
    return np.asarray(np.abs(widths - np.rint(widths)) <= 2.0**-22 * np.abs(widths))


def _spacing(wide: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the distance of neighbouring numbers of a floating-point type at each value."""
    size = np.maximum(np.abs(np.where(np.isfinite(wide), wide, 0.0)), float(dtype.finfo.smallest_normal))
    spacing = np.exp2(np.floor(np.log2(size))) * float(dtype.finfo.eps)
    return np.where(np.abs(wide) <= _LEAST_WRITTEN, 4 * _LEAST_WRITTEN, spacing) if dtype is DType.FLOAT16 else spacing


AS_STORED = StoredNumbers()
"""Quantizers round, and stored numbers are exact."""
