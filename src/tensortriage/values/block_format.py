"""Formats in which a block of numbers shares a scale: MXFP8, MXFP6, MXFP4 and NVFP4.

OCP Microscaling Formats (MX) Specification 1.0, 2023: blocks of 32, a scale of type E8M0, a power of two. By its
section 6.3 the scale is the largest power of two that is not above the block's largest magnitude, divided by the
largest power of two of the element type; elements are rounded to nearest, ties to even, and larger ones become the
largest element. NVFP4 (NVIDIA, "Introducing NVFP4", 2025): blocks of 16, a scale of type E4M3 that is rounded to
nearest, and one float32 scale for the whole tensor, which makes the largest block scale the largest E4M3 number.
"""

import math
from typing import Any

import ml_dtypes
import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision

_finfo: Any = ml_dtypes.finfo  # its constructor is not annotated
SCALE_EXPONENTS = (-127, 127)
"""Exponents of E8M0: 2**-127 to 2**127 (MX specification, 5.4.1)."""


@frozen_dataclass
class BlockFormat:
    """A format of blocks.

    Attributes:
        element: Type of the elements.
        block: How many share a scale.
        scaled_twice: Whether block scales are E4M3, with a float32 scale for the tensor above them (NVFP4); else they
            are powers of two.
    """

    element: np.dtype[Any]
    block: int = 32
    scaled_twice: bool = False

    @property
    def largest(self) -> float:
        """The largest element."""
        return float(_finfo(self.element).max)

    @property
    def largest_exponent(self) -> int:
        """Exponent of the largest power of two among the elements: emax of the MX specification, table 1."""
        return math.frexp(self.largest)[1] - 1

    def rounded(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return numbers as the format holds them, in the type and shape they came in.

        Args:
            x: float32 or float64; rounded to float32 before the conversion.
            axis: Along which neighbours share a scale; a last block may be shorter. Blocks that hold NaN or Inf become
                NaN.
        """
        if not x.size:
            return x.copy()
        moved = np.moveaxis(x, axis, -1).astype(np.float32)
        count = moved.shape[-1]
        padded = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, -count % self.block)])
        blocks = padded.reshape(*padded.shape[:-1], -1, self.block)
        largest = np.abs(blocks).max(axis=-1, keepdims=True)
        passed = self._by_two_scales(blocks, largest) if self.scaled_twice else self._by_powers(blocks, largest)
        passed = np.where(np.isfinite(largest), passed, np.float32(np.nan))
        back = passed.reshape(padded.shape)[..., :count]
        return np.ascontiguousarray(np.moveaxis(back, -1, axis)).astype(x.dtype)

    def scales(self, largest: np.ndarray) -> np.ndarray:
        """Return the powers of two that blocks with these largest magnitudes are divided by; float64.

        Args:
            largest: Largest magnitudes, finite, float32.
        """
        _, exponents = np.frexp(largest)
        powers = np.clip(exponents - 1 - self.largest_exponent, *SCALE_EXPONENTS)
        return np.asarray(np.where(largest > 0, np.ldexp(1.0, powers), 2.0 ** SCALE_EXPONENTS[0]))

    def _by_powers(self, blocks: np.ndarray, largest: np.ndarray) -> np.ndarray:
        scale = self.scales(np.where(np.isfinite(largest), largest, 0))
        return np.asarray(self._elements(blocks / scale) * scale, np.float32)

    def _by_two_scales(self, blocks: np.ndarray, largest: np.ndarray) -> np.ndarray:
        scale_type = np.dtype(ml_dtypes.float8_e4m3fn)
        finite = np.where(np.isfinite(largest), largest, np.float32(0))
        top = np.float32(_finfo(scale_type).max) * np.float32(self.largest)
        tensor = np.float32(finite.max() / top) or np.float32(1)
        wanted = np.minimum(finite / np.float32(self.largest) / tensor, np.float32(_finfo(scale_type).max))
        scale = wanted.astype(scale_type).astype(np.float32) * tensor
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            divided = np.where(scale > 0, blocks / scale, np.float32(0))
        return np.asarray(self._elements(divided) * scale, np.float32)

    def _elements(self, x: np.ndarray) -> np.ndarray:
        """Return numbers as elements, in float64; to nearest, ties to even, saturating."""
        limited = np.clip(np.where(np.isfinite(x), x, 0), -self.largest, self.largest)
        return np.asarray(limited.astype(np.float32).astype(self.element).astype(np.float64))


BLOCK_FORMATS = {
    Precision.MXFP8E4M3: BlockFormat(np.dtype(ml_dtypes.float8_e4m3fn)),
    Precision.MXFP8E5M2: BlockFormat(np.dtype(ml_dtypes.float8_e5m2)),
    Precision.MXFP6E2M3: BlockFormat(np.dtype(ml_dtypes.float6_e2m3fn)),
    Precision.MXFP6E3M2: BlockFormat(np.dtype(ml_dtypes.float6_e3m2fn)),
    Precision.MXFP4: BlockFormat(np.dtype(ml_dtypes.float4_e2m1fn)),
    Precision.NVFP4: BlockFormat(np.dtype(ml_dtypes.float4_e2m1fn), block=16, scaled_twice=True),
}
"""By the precision that computes with them."""
