"""The spec of a value before it has numbers: its name, element type and shape."""

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType


@frozen_dataclass
class ValueSpec:
    """Name, element type and shape of one tensor.

    Attributes:
        name: ONNX value name (never empty, never an engine's own name).
        dtype: Element type; None when unknown.
        shape: One entry per axis: an int, the name of a symbolic dimension, or None for an unknown one. None when even
            the rank is unknown.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | str | None, ...] | None

    @property
    def is_static(self) -> bool:
        """Whether dtype and every dimension are known."""
        return self.dtype is not None and self.is_sized

    @property
    def is_sized(self) -> bool:
        """Whether every dimension is known."""
        return self.shape is not None and len(self.sizes) == len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The known dimensions, in their order."""
        return tuple(size for size in self.shape or () if isinstance(size, int))

    @classmethod
    def of(cls, name: str, array: np.ndarray) -> "ValueSpec":
        """Return the spec of a concrete array.

        Args:
            name: Name of the value.
            array: Array of any shape; its type numpy's or ml_dtypes's for an ONNX type.
        """
        return cls(name, DType.from_numpy(array.dtype), tuple(array.shape))

    def filled_in(self, inferred: "ValueSpec") -> "ValueSpec":
        """Return this spec with its open parts filled in; a number overrides a symbol, a symbol an open size."""
        shape = inferred.shape if self.shape is None else self.shape
        if self.shape and inferred.shape and len(self.shape) == len(inferred.shape):
            shape = tuple(map(_known, self.shape, inferred.shape))
        return ValueSpec(self.name, self.dtype or inferred.dtype, shape)


def _known(declared: int | str | None, inferred: int | str | None) -> int | str | None:
    if isinstance(declared, int) or (declared is not None and not isinstance(inferred, int)):
        return declared
    return inferred
