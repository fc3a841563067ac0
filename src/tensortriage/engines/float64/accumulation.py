"""Order and format of sums of products: the freedom of engines in Conv, MatMul and reductions.

Units that multiply matrices add a block of products at high precision, then round the running sum to the accumulator's
type: cuBLAS and TensorRT's FP16 kernels keep it in float16, most others in float32. Which block comes first is free as
well. An `Accumulation` is one such choice; kernels of sums ask it for products and sums and know nothing of types.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from tensortriage.engines.float64.number_rounding import rounded, shortened
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.block_format import BlockFormat
from tensortriage.values.dtype import DType

_FLOAT32_BITS = 23  # of the fraction

PADDED_CHANNELS = 8
"""Channels that convolutions on units for float16 take at least, zeros where there are fewer: NHWC tensors with C
padded to 8 (NVIDIA Deep Learning Performance guide, convolutional layers)."""


@frozen_dataclass
class Accumulation:
    """One way to add up.

    Attributes:
        accumulator: Type of the running sum: float32, float16, bfloat16; None adds everything in float64.
        block: How many terms are added, in float32, before the running sum is rounded. With a float32 accumulator
            nothing needs rounding there, and the block sets the order of the terms. Blocks are added from the last to
            the first.
        truncate: Whether the running sum of products is rounded towards zero instead of to nearest.
        operand_bits: Bits of the fraction that operands of products keep; None for all.
        operand_truncate: Whether operands are cut off instead of rounded to nearest.
        operand_blocks: Format of blocks that operands are rounded to along the axis that is summed over; None for none.
    """

    accumulator: DType | None = None
    block: int = 32
    truncate: bool = False
    operand_bits: int | None = None
    operand_truncate: bool = False
    operand_blocks: BlockFormat | None = None

    def over_channels(self, count: int) -> "Accumulation":
        """Return the accumulation of a convolution whose kernels read this many channels.

        A narrow running sum is rounded once per tap where channels are few: the unit multiplies padding for the rest
        of its block. Measured on TensorRT 8.5.3 (H200, FP16): a Conv over 3 x 16 x 16 products is off by 2.35e-3, as
        one rounding for every 3 products makes it, and not by the 1.07e-3 of a MatMul over as many.

        Args:
            count: Channels of a group.
        """
        if self.accumulator in (None, DType.FLOAT) or count >= PADDED_CHANNELS:
            return self
        return dataclasses.replace(self, block=min(self.block, max(1, count)))

    def operand(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return an operand of `product`, rounded as operands are and in the order of addition.

        Args:
            x: float64 or float32; arrays of other types stay as they are.
            axis: The axis of x that is summed over, or that sets the order of the sum.
        """
        if x.dtype.kind != "f":
            return x
        if self.operand_blocks is not None:
            x = self.operand_blocks.rounded(x.astype(np.float64, copy=False), axis)
        if self.accumulator is None and self.operand_bits is None:
            return x.astype(np.float64, copy=False)
        narrow = _last_block_first(x, axis, self.block) if self._by_order else x.astype(np.float32)
        if self.operand_bits is not None:
            short = shortened(narrow, _FLOAT32_BITS - self.operand_bits, truncate=self.operand_truncate)
            narrow = np.where(np.isfinite(narrow), short, narrow)
        return narrow if self.accumulator is not None else narrow.astype(np.float64)

    @property
    def _by_order(self) -> bool:
        """Whether only a float32 matrix product in another order is needed."""
        return self.accumulator is DType.FLOAT and not self.truncate

    def matmul(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the matrix product as numpy.matmul shapes it.

        Args:
            left: ``[..., m, k]`` or ``[k]``.
            right: ``[..., k, n]`` or ``[k]``, of the same type.
        """
        return self.product(self.operand(left, -1), self.operand(right, -2 if right.ndim > 1 else -1))

    def product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the matrix product of two arrays that went through `operand`; float64 for floating-point ones.

        Args:
            left: ``[..., m, k]`` or ``[k]``; float32 where an accumulator is emulated.
            right: ``[..., k, n]`` or ``[k]``, of the same type.
        """
        if self.accumulator is None or left.dtype != np.float32:
            return np.asarray(np.matmul(left, right))
        if self._by_order or not left.shape[-1]:
            return np.asarray(np.matmul(left, right).astype(np.float64))
        rows, columns = left if left.ndim > 1 else left[None], right if right.ndim > 1 else right[:, None]
        total = self._blocked(rows, columns)
        if right.ndim == 1:
            total = total[..., 0]
        if left.ndim == 1:
            total = total[..., 0, :] if right.ndim > 1 else total[..., 0]
        return total.astype(np.float64)

    def _blocked(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        total: np.ndarray | None = None
        for start in reversed(range(0, rows.shape[-1], self.block)):
            part = np.matmul(rows[..., start : start + self.block], columns[..., start : start + self.block, :])
            total = self.stored(np.asarray(part if total is None else self._added(total, part)))
        assert total is not None
        return total

    def _added(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        if self.accumulator is DType.FLOAT and self.truncate:
            return np.asarray(total.astype(np.float64) + part)
        return np.asarray(total + part)

    def stored(self, total: np.ndarray) -> np.ndarray:
        """Return a running sum as the accumulator holds it; float32.

        Args:
            total: Float32, of any shape.
        """
        if self.accumulator is None:
            return total
        if self.truncate:
            return _truncated(total, self.accumulator)
        return rounded(total, self.accumulator)

    def term(self, x: np.ndarray) -> np.ndarray:
        """Return an array of terms of `total` in the type of the sum."""
        return x if self.accumulator is None else x.astype(np.float32)

    def kept(self, total: np.ndarray) -> np.ndarray:
        """Return a float64 running sum rounded to the accumulator, still float64.

        Args:
            total: Float64, of any shape.
        """
        return total if self.accumulator is None else self.stored(total.astype(np.float32)).astype(np.float64)

    def total(self, terms: Iterable[np.ndarray]) -> np.ndarray:
        """Return the sum of equally shaped terms, at least one; a term may be overwritten once the next one is drawn.

        Args:
            terms: Arrays in the order of the sum, as `term` returns them.
        """
        running: np.ndarray | None = None
        part: np.ndarray | None = None
        for count, term in enumerate(terms, 1):
            if part is None:
                part = np.array(term)
            else:
                part += term
            if self.accumulator is not None and count % self.block == 0:
                running, part = self.stored(part if running is None else self._added(running, part)), None
        if self.accumulator is None:
            assert part is not None
            return part
        if part is not None:
            running = self.stored(part if running is None else self._added(running, part))
        assert running is not None
        return running.astype(np.float64)

    def sum(self, x: np.ndarray, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> np.ndarray:
        """Return the sum over axes, in the type of x.

        Args:
            x: Array of any type.
            axis: Axes that are summed over; None for all.
            keepdims: Whether they stay, with size 1.
        """
        axes = tuple(axis) if isinstance(axis, Sequence) else axis
        if self.accumulator is None or x.dtype != np.float64:
            return np.asarray(np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype))
        return self._sum(x, axes, keepdims=keepdims)

    def mean(self, x: np.ndarray, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> np.ndarray:
        """Return the mean over axes, float64 for integers as well.

        Args:
            x: Array of any type.
            axis: Axes that are averaged over; None for all.
            keepdims: Whether they stay, with size 1.
        """
        axes = tuple(axis) if isinstance(axis, Sequence) else axis
        if self.accumulator is None or x.dtype != np.float64:
            return np.asarray(np.mean(x, axis=axes, keepdims=keepdims))
        total = self._sum(x, axes, keepdims=keepdims)
        return np.asarray(total / (x.size / total.size if total.size else 1))

    def _sum(self, x: np.ndarray, axis: int | tuple[int, ...] | None, *, keepdims: bool) -> np.ndarray:
        """Return the sum over axes: blocks of neighbours first, then block by block from the last to the first."""
        given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(sorted(a % x.ndim for a in given))
        last = np.moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
        outer = last.shape[: x.ndim - len(axes)]
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        rows = last.astype(np.float32).reshape(*outer, count)
        whole = count - count % self.block
        parts = rows[..., :whole].reshape(*outer, -1, self.block).sum(axis=-1)
        rest = rows[..., whole:].sum(axis=-1)
        for index in reversed(range(parts.shape[-1])):
            rest = rest + parts[..., index]
        total = rest.astype(np.float64)
        return np.expand_dims(total, axes) if keepdims else total


EXACT_SUMS = Accumulation()
"""Everything in float64."""


def _last_block_first(x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Return a float32 copy in which the blocks along an axis come from the last to the first."""
    source = np.moveaxis(x, axis, -1)
    y = np.empty_like(x, np.float32)  # in the order in which x lies in memory
    target = np.moveaxis(y, axis, -1)
    rest = source.shape[-1] % block
    whole = source.shape[-1] - rest
    target[..., :rest] = source[..., whole:]
    blocks = (*source.shape[:-1], whole // block, block)
    # Splitting an axis gives a view, however the array lies in memory.
    target[..., rest:].reshape(blocks)[...] = source[..., :whole].reshape(blocks)[..., ::-1, :]
    return y


def _truncated(total: np.ndarray, dtype: DType) -> np.ndarray:
    """Return a running sum rounded towards zero to a type, as float32; overflow becomes the largest number."""
    if dtype is DType.FLOAT:
        narrow = total.astype(np.float32)
        over = np.abs(narrow) > np.abs(total)
        return np.where(over, np.nextafter(narrow, np.float32(0)), narrow)
    narrow = total.astype(np.float32)
    info = dtype.finfo
    short = shortened(narrow, _FLOAT32_BITS - info.nmant, truncate=True)
    step, normal, largest = (np.float32(x) for x in (info.smallest_subnormal, info.smallest_normal, info.max))
    small = np.abs(short) < normal
    short = np.where(small, np.trunc(np.where(small, short, 0) / step) * step, short)
    return np.where(np.isfinite(narrow), np.clip(short, -largest, largest), narrow)
