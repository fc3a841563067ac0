"""A constant of a file as it is stored, with the operations on it before other nodes read it.

Compressed weights are integers, or float16, behind a Convert, a Subtract and a Multiply, or a FakeQuantize; groups of
them have an axis of their own until a Reshape joins them. In ONNX that is DequantizeLinear, or a Cast.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

_INTEGERS = "iu"


@dataclasses.dataclass(frozen=True)
class StoredConstant:
    """A constant.

    Attributes:
        name: Its name in the file.
        array: The stored numbers.
        dtype: OpenVINO's word for the type that they are converted to; empty where they are not.
        zero: Zero point, subtracted then.
        scale: Scale, the factor after that.
        names: Names of the resulting value.
    """

    name: str
    array: np.ndarray
    dtype: str = ""
    zero: np.ndarray | None = None
    scale: np.ndarray | None = None

    @property
    def plain(self) -> bool:
        """Whether nothing is done to it."""
        return not self.dtype and self.scale is None

    @property
    def whole(self) -> bool:
        """Whether the stored numbers are integers, such as weights of few bits."""
        return str(self.array.dtype) in ("int4", "uint4", "int8", "uint8")

    def then(self, name: str, **changed: Any) -> Self:
        """Return it with one thing more done to it, by a layer of that name."""
        return dataclasses.replace(self, name=name, **changed)

    def reshaped(self, name: str, shape: Sequence[int]) -> Self | None:
        """Return it in another shape; None where its scales would not fit that."""
        wanted = _filled(shape, self.array.shape)
        parts = [self._reshaped(part, wanted) for part in (self.zero, self.scale)]
        if wanted is None or any(part is None for part in parts):
            return None
        zero, scale = (None if part is None or not part.size else part for part in parts)
        return self.then(name, array=self.array.reshape(wanted), zero=zero, scale=scale)

    def _reshaped(self, part: np.ndarray | None, wanted: Sequence[int] | None) -> np.ndarray | None:
        """Return scales for another shape of the numbers, empty where there are none, None where they do not fit."""
        own = self.array.shape
        if part is None or wanted is None:
            return np.empty(0)
        if part.size == 1:
            return part.reshape([1] * len(wanted))
        sizes = [1] * (len(own) - part.ndim) + list(part.shape)
        groups = (*own[:-2], own[-2] * own[-1]) if len(own) > 1 else ()
        if tuple(wanted) == groups and sizes[-1] == 1:  # groups are joined
            return part.reshape([*sizes[:-2], sizes[-2]])
        moved = np.broadcast_to(part.reshape(sizes), own).reshape(wanted)
        return _shrunk(moved)

    def transposed(self, name: str, axes: Sequence[int]) -> Self:
        """Return it with its axes in another order."""
        zero, scale = (
            None if part is None else part.transpose(axes) if part.ndim == len(axes) else part
            for part in (self.zero, self.scale)
        )
        return self.then(name, array=self.array.transpose(axes), zero=zero, scale=scale)

    def block(self) -> tuple[int | None, int | None] | None:
        """Return along which axis the scales differ, and the size of a block there if they are by blocks.

        None where they differ along several.
        """
        assert self.scale is not None, "only for quantized numbers"
        if self.scale.size == 1:
            return None, None
        sizes = [1] * (self.array.ndim - self.scale.ndim) + list(self.scale.shape)
        pairs = list(zip(sizes, self.array.shape, strict=True))
        blocked = [axis for axis, (size, own) in enumerate(pairs) if 1 < size < own and own % size == 0]
        if blocked:
            axis = blocked[0]
            others = all(size == own for number, (size, own) in enumerate(pairs) if number != axis)
            return (axis, pairs[axis][1] // pairs[axis][0]) if len(blocked) == 1 and others else None
        several = [axis for axis, (size, _) in enumerate(pairs) if size > 1]
        return (several[0], None) if len(several) == 1 else None


def _filled(shape: Sequence[int], own: Sequence[int]) -> tuple[int, ...] | None:
    sizes = [own[axis] if size == 0 and axis < len(own) else size for axis, size in enumerate(shape)]
    rest = math.prod(size for size in sizes if size >= 0)
    sizes = [math.prod(own) // max(rest, 1) if size < 0 else size for size in sizes]
    return tuple(sizes) if math.prod(sizes) == math.prod(own) else None


def _shrunk(array: np.ndarray) -> np.ndarray | None:
    """Return an array with every axis along which it is one number shrunk to one entry."""
    for axis in range(array.ndim):
        first = array.take([0], axis=axis)
        if np.array_equal(np.broadcast_to(first, array.shape), array):
            array = first
    return array
