"""Do the calibrated ranges cover the values of other samples? Clipping against rounding, tensor by tensor.

A symmetric 8-bit range of half-width ``a`` rounds in steps of ``a / 127`` and clips beyond ``a``. The noise of rounding
is ``step^2 / 12`` (uniform in a step; Widrow and Kollar, Quantization Noise, 2008, ch. 1); the noise of clipping is the
mean square of the excess. Where the second exceeds the first, the range is the trouble and not the format: the samples
that calibrated it do not represent the ones it is used on.
"""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

_STEPS = 127


@dataclasses.dataclass(slots=True)
class RangeUse:
    """Distribution of samples' values within one calibrated range.

    Attributes:
        value: Name of the tensor.
        half_width: Largest magnitude that the range holds.
        largest: Largest magnitude seen.
        count: Elements seen.
        clipped: Elements beyond the range.
        clipping_noise: Sum of squares of the excess beyond the range.
    """

    value: str
    half_width: float
    largest: float = 0.0
    count: int = 0
    clipped: int = 0
    clipping_noise: float = 0.0

    def add(self, array: np.ndarray) -> None:
        """Count the values of one array of any shape, float."""
        magnitude = np.abs(np.asarray(array, np.float64))
        beyond = magnitude - self.half_width
        beyond = beyond[beyond > 0.0]
        self.largest = max(self.largest, float(magnitude.max(initial=0.0)))
        self.count += magnitude.size
        self.clipped += beyond.size
        self.clipping_noise += float(np.sum(beyond * beyond))

    @property
    def clipped_share(self) -> float:
        """Share of the elements beyond the range, 0 to 1."""
        return self.clipped / self.count if self.count else 0.0

    @property
    def clipping_over_rounding(self) -> float:
        """Noise of clipping over noise of rounding (powers); above 1 the range is the trouble."""
        rounding = (self.half_width / _STEPS) ** 2 / 12.0
        noise = self.clipping_noise / self.count if self.count else 0.0
        return noise / rounding if rounding > 0.0 else (0.0 if noise == 0.0 else float("inf"))


def range_uses(
    ranges: Mapping[str, tuple[float, float]], arrays: Iterable[tuple[str, np.ndarray]]
) -> dict[str, RangeUse]:
    """Return how arrays lie in their calibrated ranges.

    Args:
        ranges: Lowest and highest calibrated value, by tensor name; they are made symmetric.
        arrays: Tensors by name, any number of each, in any order; those without a range are passed over.
    """
    uses: dict[str, RangeUse] = {}
    for name, array in arrays:
        if name in ranges and array.dtype.kind == "f":
            low, high = ranges[name]
            uses.setdefault(name, RangeUse(name, max(-low, high))).add(array)
    return uses


def outgrown(uses: Mapping[str, RangeUse]) -> list[RangeUse]:
    """Return the ranges that clip more than they round, worst first."""
    return sorted(
        (use for use in uses.values() if use.clipping_over_rounding > 1.0),
        key=lambda use: -use.clipping_over_rounding,
    )
