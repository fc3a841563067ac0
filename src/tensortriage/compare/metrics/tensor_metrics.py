"""All numbers from one pass over a tensor pair; all later judgements are made from them.

Error statistics are over the elements that are finite on both sides; the others are counted, and no count is ever
hidden in a statistic. Where nothing can be compared the statistics are NaN, which no limit accepts.
"""

import collections
import concurrent.futures
import functools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tensortriage.compare.metrics import block_metrics, blocks, compiled_pass, dtype_pairs
from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.figures import cosine, decibels, histogram, largest_of, quantile, ratio, sorted_sample
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass

EXACT_ELEMENTS = 16384
"""Quantiles and histogram are exact up to this many elements; above that, they come from an evenly spaced sample."""
_SAMPLE_SHARE = 64
_LARGEST_SAMPLE = 131072

_TINY_ELEMENTS = blocks.BLOCK
_PARALLEL_ELEMENTS = 16 * blocks.BLOCK
_PENDING_BYTES = 64 * 1024 * 1024


@frozen_dataclass
class WorstElement:
    """One of the elements with the largest errors.

    Attributes:
        reference: The reference's value: the magnitude of a complex one, NaN for a string.
        target: The target's value, likewise.
    """

    index: tuple[int, ...]
    reference: float
    target: float


@frozen_dataclass
class Metrics:
    """The differences of a target tensor from its reference.

    "Compared" elements are those finite on both sides; integers, bools and strings always are. The error of an element
    is |target - reference|; for bools and strings it is 1 where they differ. An empty tensor is equal to its reference.

    Attributes:
        count: Elements of the tensor.
        compared: Elements finite on both sides; every error statistic is over these, NaN when there are none.
        max_abs_error: Largest error.
        mean_abs_error: Mean error.
        rms_error: Root of the mean squared error; squares are float64, so doubles beyond 1e154 make it infinite.
        l2_error: Euclidean norm of the error.
        median_abs_error: Median error; see `EXACT_ELEMENTS`.
        p90_abs_error: 90th percentile of the error, interpolated linearly.
        p99_abs_error: 99th percentile, likewise.
        max_rel_error: Largest error divided by the magnitude of the reference, where zeros count as 2.2e-16.
        mean_rel_error: Mean of those.
        relative_rms_error: rms_error / reference_rms; 0 without any error, infinite for an all-zero reference.
        cosine_similarity: Cosine of the angle between both tensors as vectors; 1 when both are zero, 0 when one is.
        sqnr_db: Signal to noise, 20 log10(reference_rms / rms_error) in dB; infinite without any error.
        max_ulp_error: Largest error in representable numbers of the coarser of both types (`ulp`); integers: in units.
        reference_rms: Root mean square of the reference over the compared elements.
        reference_max_abs: Largest finite magnitude in the reference, wherever it is; NaN when there is none.
        target_max_abs: Largest finite magnitude in the target, likewise.
        nan_reference: NaNs in the reference.
        nan_target: NaNs in the target.
        inf_reference: Infinities in the reference.
        inf_target: Infinities in the target.
        nonfinite_mismatch: Elements that are not finite on both sides and not the same (two NaNs are the same).
        mismatches: Elements that differ: nonfinite_mismatch and every compared element with an error.
        sampled: Number of compared elements in the sample for quantiles and histogram.
        histogram: (exponent e, sampled elements with 2**e <= error < 2**(e+1)), ascending; errors of zero, or
            beyond the range of float64, are left out.
        exact: Whether both sides are integers, bools or strings, where any error is a mismatch.
        worst: Up to five elements, largest error first; a non-finite mismatch comes before all others.
    """

    count: int
    compared: int
    max_abs_error: float
    mean_abs_error: float
    rms_error: float
    l2_error: float
    median_abs_error: float
    p90_abs_error: float
    p99_abs_error: float
    max_rel_error: float
    mean_rel_error: float
    relative_rms_error: float
    cosine_similarity: float
    sqnr_db: float
    max_ulp_error: float
    reference_rms: float
    reference_max_abs: float
    target_max_abs: float
    nan_reference: int
    nan_target: int
    inf_reference: int
    inf_target: int
    nonfinite_mismatch: int
    mismatches: int
    sampled: int
    histogram: tuple[tuple[int, int], ...]
    worst: tuple[WorstElement, ...]
    exact: bool = False

    @property
    def has_nan(self) -> bool:
        """Whether there is a NaN on either side."""
        return self.nan_reference + self.nan_target > 0


def measure(reference: np.ndarray, target: np.ndarray, *, workers: int | None = None) -> Metrics:
    """Compare two tensors of one shape, in any layout and any pair of ONNX element types.

    Mixed types are compared in a type that holds both exactly (float32, else float64, to which a 64-bit integer is
    rounded when the other side is a float); two 64-bit integers are subtracted without overflow or rounding. Neither
    tensor is copied as a whole, so memory-mapped ones may be larger than memory.

    Args:
        reference: Tensor assumed to be right.
        target: Tensor under suspicion.
        workers: Threads for a large tensor; None for one per available core.

    Returns:
        Everything about the pair.

    Raises:
        DataError: When the shapes differ (``shape-mismatch``) or only one side holds strings (``dtype-mismatch``).
        UsageError: For a numpy type without ONNX counterpart (``dtype-unknown``).

    Example:
        >>> measure(np.float32([1, 2]), np.float32([1, 4])).max_abs_error
        2.0
    """
    pair = _Pair(np.asarray(reference), np.asarray(target))
    workers = workers or _cores()
    if workers == 1 or pair.count < _PARALLEL_ELEMENTS:
        return pair.finish(pair.tally(pair.parts(1)[0]))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return pair.finish(_merged(list(pool.map(pair.tally, pair.parts(4 * workers)))))


def measure_many(
    pairs: Iterable[tuple[str, np.ndarray, np.ndarray]], *, workers: int | None = None
) -> Iterator[tuple[str, Metrics]]:
    """Compare many pairs, in order, with a bounded number of them in flight.

    Args:
        pairs: (name, reference, target), consumed lazily, at most about 64 MiB of tensors ahead.
        workers: Threads; None for one per available core.

    Yields:
        (name, metrics) for every pair.

    Raises:
        DataError, UsageError: As `measure`; the message names the pair.
    """
    workers = workers or _cores()
    queue: collections.deque[tuple[str, _Pair, list[_Pending]]] = collections.deque()
    queued_bytes = 0
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for name, reference, target in pairs:
            pair = _Pair(np.asarray(reference), np.asarray(target), name)
            queue.append((name, pair, _begin(pair, pool, workers)))
            queued_bytes += pair.nbytes
            while len(queue) > 4 * workers or (queued_bytes > _PENDING_BYTES and len(queue) > 1):
                done, pair, pending = queue.popleft()
                queued_bytes -= pair.nbytes
                yield done, _end(pair, pending)
        for done, pair, pending in queue:
            yield done, _end(pair, pending)


def _begin(pair: "_Pair", pool: concurrent.futures.ThreadPoolExecutor, workers: int) -> "list[_Pending]":
    if pair.count < _TINY_ELEMENTS:  # Handing it to a thread would cost more.
        return [pair.tally(pair.parts(1)[0])]
    parts = pair.parts(1 if pair.count < _PARALLEL_ELEMENTS else 4 * workers)
    return [pool.submit(pair.tally, part) for part in parts]


def _end(pair: "_Pair", pending: "list[_Pending]") -> Metrics:
    return pair.finish(_merged([item if isinstance(item, BlockTotals) else item.result() for item in pending]))


_Pending = BlockTotals | concurrent.futures.Future[BlockTotals]


class _Pair:
    """A checked pair of tensors, cut into blocks."""

    def __init__(self, reference: np.ndarray, target: np.ndarray, name: str = "") -> None:
        label = f" of '{name}'" if name else ""
        if reference.shape != target.shape:
            raise DataError(
                f"shapes{label} differ: reference {list(reference.shape)}, target {list(target.shape)}",
                slug="shape-mismatch",
                cure="compare outputs of the same model on the same feed",
            )
        way = dtype_pairs.lane(reference.dtype, target.dtype)
        if way is None:
            raise DataError(
                f"types{label} cannot be compared: reference {reference.dtype}, target {target.dtype}",
                slug="dtype-mismatch",
                cure="compare outputs of the same model",
            )
        self._lane = way
        self.reference, self.target = reference, target
        self.count = reference.size
        self.nbytes = reference.nbytes + target.nbytes
        self._stride = sample_stride(self.count)
        self._flat = blocks.is_flat(reference) and blocks.is_flat(target)
        self._is_compiled = compiled_pass.takes(way)

    def parts(self, wanted: int) -> list[list[tuple[int, blocks.Index]]]:
        """Return the blocks in at most ``wanted`` runs, each for one `tally`; at least one, possibly empty."""
        if self.count == 0:
            return [[]]
        longest = compiled_pass.RUN if self._is_compiled and self._flat else blocks.BLOCK
        every = blocks.cut(self.reference.shape, flat=self._flat, longest=longest)
        length = -(-len(every) // wanted)
        return [every[begin : begin + length] for begin in range(0, len(every), length)]

    def tally(self, part: Sequence[tuple[int, blocks.Index]]) -> BlockTotals:
        """Return the totals over some blocks."""
        tally = BlockTotals(self._stride)
        reference, target = self.reference, self.target
        if self._flat:
            reference, target = reference.reshape(-1), target.reshape(-1)
        with np.errstate(all="ignore"):
            for start, index in part:
                sides = blocks.take(reference, index), blocks.take(target, index)
                if self._is_compiled:
                    tally.merge(compiled_pass.totals(self._lane, *sides, start, self._stride))
                else:
                    block_metrics.tally_block(tally, self._lane, *sides, start)
        return tally

    def finish(self, tally: BlockTotals) -> Metrics:
        """Turn totals over all blocks into metrics."""
        return _finish(tally, self.count, self._worst(tally), self._lane.ulp is None)

    def _worst(self, tally: BlockTotals) -> tuple[WorstElement, ...]:
        indices = [_unravel(position, self.reference.shape) for _, position in tally.worst]
        return tuple(
            WorstElement(index, _number(self.reference[index]), _number(self.target[index])) for index in indices
        )


def _finish(tally: BlockTotals, count: int, worst: tuple[WorstElement, ...], exact: bool) -> Metrics:
    compared = tally.compared
    undefined = compared == 0 and count > 0
    size = math.nan if undefined else max(compared, 1)
    sample = sorted_sample(tally) if tally.nonzero_errors else None
    quantiles = [quantile(sample, share) for share in (0.5, 0.9, 0.99)] if sample is not None else [size * 0.0] * 3
    rms_error = math.sqrt(tally.error_square_sum / size)
    reference_rms = math.sqrt(tally.reference_square_sum / size)
    return Metrics(
        count=count,
        compared=compared,
        max_abs_error=math.nan if undefined else tally.error_max,
        mean_abs_error=tally.error_sum / size,
        rms_error=rms_error,
        l2_error=math.nan if undefined else math.sqrt(tally.error_square_sum),
        median_abs_error=quantiles[0],
        p90_abs_error=quantiles[1],
        p99_abs_error=quantiles[2],
        max_rel_error=math.nan if undefined else tally.relative_max,
        mean_rel_error=tally.relative_sum / size,
        relative_rms_error=ratio(rms_error, reference_rms),
        cosine_similarity=math.nan if undefined else cosine(tally),
        sqnr_db=decibels(reference_rms, rms_error),
        max_ulp_error=math.nan if undefined else tally.ulp_max,
        reference_rms=reference_rms,
        reference_max_abs=largest_of(tally.reference_max, count),
        target_max_abs=largest_of(tally.target_max, count),
        nan_reference=tally.nan_reference,
        nan_target=tally.nan_target,
        inf_reference=tally.inf_reference,
        inf_target=tally.inf_target,
        nonfinite_mismatch=tally.nonfinite_mismatch,
        mismatches=tally.nonfinite_mismatch + tally.nonzero_errors,
        sampled=tally.zero_samples + sum(part.size for part in tally.samples),
        histogram=() if sample is None else histogram(sample),
        worst=worst,
        exact=exact,
    )


def _merged(tallies: list[BlockTotals]) -> BlockTotals:
    merged = tallies[0]
    for tally in tallies[1:]:
        merged.merge(tally)
    return merged


def sample_stride(count: int) -> int:
    """Return the spacing of a sample: without small factors, or it would always hit the same few channels."""
    if count <= EXACT_ELEMENTS:
        return 1
    stride = count // min(max(count // _SAMPLE_SHARE, EXACT_ELEMENTS), _LARGEST_SAMPLE)
    while stride > 1 and any(stride % factor == 0 for factor in (2, 3, 5, 7)):
        stride += 1
    return stride


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


def _number(value: Any) -> float:
    if isinstance(value, str | bytes):
        return math.nan
    return float(abs(value)) if isinstance(value, np.complexfloating) else float(value)


@functools.cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
