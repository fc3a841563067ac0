"""Running totals over the blocks of a tensor pair; totals of different blocks add up, from any thread."""

import dataclasses

import numpy as np

from tensortriage.compare.metrics.peaks import SMALL, peaks, places_reaching

WORST_COUNT = 5


@dataclasses.dataclass(slots=True)
class BlockTotals:
    """Totals of given blocks of one tensor pair; "compared" elements are those that are finite on both sides.

    Attributes:
        stride: Every stride-th element goes into the sample for quantiles.
        samples: Errors of the sampled compared elements, in no particular order; ``zero_samples`` more were zero.
        worst: (error, flat index), largest error first, then lowest index; an infinite error stands for a value that
            is non-finite on one side only.
        agreeing_zeros: Whether places were met where both sides are zero; later blocks are then expected to have some.
    """

    stride: int
    compared: int = 0
    nonzero_errors: int = 0
    zero_samples: int = 0
    nan_reference: int = 0
    nan_target: int = 0
    inf_reference: int = 0
    inf_target: int = 0
    nonfinite_mismatch: int = 0
    error_sum: float = 0.0
    error_square_sum: float = 0.0
    error_max: float = 0.0
    relative_sum: float = 0.0
    relative_max: float = 0.0
    ulp_max: float = 0.0
    reference_square_sum: float = 0.0
    target_square_sum: float = 0.0
    product_sum: float = 0.0
    reference_max: float = -1.0
    target_max: float = -1.0
    samples: list[np.ndarray] = dataclasses.field(default_factory=list)
    worst: list[tuple[float, int]] = dataclasses.field(default_factory=list)
    agreeing_zeros: bool = False

    def merge(self, other: "BlockTotals") -> None:
        """Add the totals of other blocks."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _MAXED:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.samples += other.samples
        self._keep_worst(other.worst)

    def add_relative(self, largest: float, total: float) -> None:
        """Add relative errors of a block."""
        self.relative_max = max(self.relative_max, largest)
        self.relative_sum += total

    def add_products(self, reference_squares: float, target_squares: float, products: float) -> None:
        """Add sums of squares and of products of both sides."""
        self.reference_square_sum += reference_squares
        self.target_square_sum += target_squares
        self.product_sum += products

    def add_maxima(self, reference: float, target: float, distance: float) -> None:
        """Add the largest magnitudes and the largest distance in representable numbers."""
        self.reference_max = max(self.reference_max, reference)
        self.target_max = max(self.target_max, target)
        self.ulp_max = max(self.ulp_max, distance)

    def consider(self, errors: np.ndarray, largest: float, start: int) -> None:
        """Remember the largest errors of a block, given its maximum and the flat index of that.

        Args:
            errors: Absolute errors of one block, flat, finite.
            largest: Their maximum.
            start: Flat index of the block's first element in its tensor.
        """
        bound = self.worst[-1][0] if len(self.worst) == WORST_COUNT else 0.0
        if not largest > bound:
            return
        if errors.size > SMALL:
            maxima = peaks(errors)  # At least five elements reach the fifth largest of these.
            found = places_reaching(errors, maxima, max(_fifth_largest(maxima), bound))
        else:
            found = np.flatnonzero(errors >= max(_fifth_largest(errors), bound))
        if found.size > WORST_COUNT:
            found = found[np.argsort(-errors[found], kind="stable")[:WORST_COUNT]]
        # Stable, so that of equal errors those with the lowest indices stay, whatever the blocks.
        self._keep_worst(
            [(error, start + at) for error, at in zip(errors[found].tolist(), found.tolist(), strict=True)]
        )

    def consider_nonfinite(self, positions: np.ndarray, start: int) -> None:
        """Remember positions that are non-finite on one side only.

        Args:
            positions: Flat indices in the block, whole numbers, ascending.
            start: Flat index of the block's first element in the tensor.
        """
        self._keep_worst([(float("inf"), start + int(at)) for at in positions[:WORST_COUNT]])

    def _keep_worst(self, more: list[tuple[float, int]]) -> None:
        found = sorted([*self.worst, *more], key=lambda item: (-item[0], item[1]))[:WORST_COUNT]
        self.worst = [item for item in found if item[0] > 0]


_MAXED = ("error_max", "relative_max", "ulp_max", "reference_max", "target_max")
_ADDED = tuple(
    field.name
    for field in dataclasses.fields(BlockTotals)
    if field.name not in {*_MAXED, "stride", "samples", "worst", "agreeing_zeros"}
)


def _fifth_largest(values: np.ndarray) -> float:
    place = max(values.size - WORST_COUNT, 0)
    return float(np.partition(values, place)[place])
