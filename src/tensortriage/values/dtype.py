"""One enum for every ONNX element type, with the facts of its number format.

The format facts (epsilon, largest value, smallest subnormal) are the basis of verdicts about rounding and range; they
come from ml_dtypes.finfo / numpy.finfo, never from literals.
"""

import enum
import functools
from typing import Any

import ml_dtypes
import numpy as np

from tensortriage.errors import UsageError


class DType(enum.Enum):
    """An ONNX tensor element type; the value is its ONNX TensorProto.DataType number."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype whose arrays hold this type in memory (sub-byte types take one byte per element)."""
        return _NUMPY[self]

    @property
    def label(self) -> str:
        """Name for people and files, e.g. ``float32``, ``bfloat16``, ``float8_e4m3fn``, ``int4``."""
        return "string" if self is DType.STRING else str(self.numpy.name)

    @property
    def bits(self) -> int:
        """Bits per element as stored by ONNX (4 for int4); 0 for strings."""
        if self is DType.STRING:
            return 0
        return _SUB_BYTE_BITS.get(self, self.numpy.itemsize * 8)

    @property
    def is_float(self) -> bool:
        """Whether this is a real floating-point type (complex is not)."""
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer type (bool is not)."""
        return self in _INTEGERS

    @property
    def finfo(self) -> Any:
        """``ml_dtypes.finfo`` of a floating type: eps, max, smallest_normal, smallest_subnormal, nmant.

        Raises:
            ValueError: For a type that is not floating point.
        """
        finfo: Any = ml_dtypes.finfo  # its constructor is not annotated
        return finfo(self.numpy)

    @classmethod
    def from_numpy(cls, dtype: Any) -> "DType":
        """Return the type of numpy arrays of ``dtype``; unicode, bytes and object arrays are STRING.

        Raises:
            UsageError: For a numpy dtype without ONNX counterpart (datetime, structured, longdouble).
        """
        dtype = np.dtype(dtype)
        if dtype.kind in "USO":
            return cls.STRING
        try:
            return _from_numpy_table()[dtype.newbyteorder("=")]
        except KeyError:
            raise UsageError(
                f"numpy dtype {dtype} has no ONNX counterpart", slug="dtype-unknown", cure="convert the array first"
            ) from None

    @classmethod
    def parse(cls, word: str) -> "DType":
        """Return the type named by a word: ONNX (``FLOAT16``), numpy (``float16``) or short (``fp16``, ``f16``).

        Raises:
            UsageError: For an unknown word; the cure lists the known ones.
        """
        key = word.strip().lower().replace("tensorproto.", "").replace("_", "")
        try:
            return _words()[key]
        except KeyError:
            raise UsageError(
                f"'{word}' is not an element type",
                slug="dtype-unknown",
                cure="use one of: " + ", ".join(d.label for d in cls),
            ) from None


_NUMPY: dict[DType, np.dtype[Any]] = {
    DType.FLOAT: np.dtype(np.float32),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT8: np.dtype(np.int8),
    DType.UINT16: np.dtype(np.uint16),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.STRING: np.dtype(np.object_),
    DType.BOOL: np.dtype(np.bool_),
    DType.FLOAT16: np.dtype(np.float16),
    DType.DOUBLE: np.dtype(np.float64),
    DType.UINT32: np.dtype(np.uint32),
    DType.UINT64: np.dtype(np.uint64),
    DType.COMPLEX64: np.dtype(np.complex64),
    DType.COMPLEX128: np.dtype(np.complex128),
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DType.UINT4: np.dtype(ml_dtypes.uint4),
    DType.INT4: np.dtype(ml_dtypes.int4),
    DType.FLOAT4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    DType.FLOAT8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DType.UINT2: np.dtype(ml_dtypes.uint2),
    DType.INT2: np.dtype(ml_dtypes.int2),
}
_SUB_BYTE_BITS = {DType.UINT4: 4, DType.INT4: 4, DType.FLOAT4E2M1: 4, DType.UINT2: 2, DType.INT2: 2}
_INTEGERS = frozenset(d for d in DType if "INT" in d.name)
_FLOATS = frozenset(d for d in DType if "FLOAT" in d.name or d is DType.DOUBLE)


@functools.cache
def _from_numpy_table() -> dict[np.dtype[Any], DType]:
    return {dtype: member for member, dtype in _NUMPY.items() if member is not DType.STRING}


@functools.cache
def _words() -> dict[str, DType]:
    words = {member.name.lower(): member for member in DType}
    words |= {member.label.replace("_", ""): member for member in DType}
    words |= {"fp64": DType.DOUBLE, "f64": DType.DOUBLE, "fp32": DType.FLOAT, "f32": DType.FLOAT}
    words |= {"fp16": DType.FLOAT16, "f16": DType.FLOAT16, "half": DType.FLOAT16, "bf16": DType.BFLOAT16}
    words |= {"fp8e4m3": DType.FLOAT8E4M3FN, "fp8e5m2": DType.FLOAT8E5M2, "i8": DType.INT8, "i32": DType.INT32}
    words |= {"i64": DType.INT64, "u8": DType.UINT8, "boolean": DType.BOOL}
    words |= {"i4": DType.INT4, "u4": DType.UINT4, "i2": DType.INT2, "u2": DType.UINT2}
    return words


class Precision(enum.Enum):
    """The compute precisions that every engine spec understands; the value is the word users write."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8E4M3 = "fp8e4m3"
    FP8E5M2 = "fp8e5m2"
    INT8 = "int8"
    MXFP8E4M3 = "mxfp8e4m3"
    MXFP8E5M2 = "mxfp8e5m2"
    MXFP6E2M3 = "mxfp6e2m3"
    MXFP6E3M2 = "mxfp6e3m2"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"

    @property
    def dtype(self) -> DType:
        """The element type that results of this precision are rounded to.

        TF32 and formats of blocks narrow the operands of products; their results are float32.
        """
        return _PRECISION_DTYPE[self]

    def narrows(self, dtype: DType) -> bool:
        """Return whether a number of a type may lose digits or range when it is stored in this precision.

        float16 and bfloat16 narrow each other: one has more digits, the other the larger range.
        """
        return dtype is not self.dtype and dtype.bits >= self.dtype.bits

    @classmethod
    def parse(cls, word: str) -> "Precision":
        """Return the precision named by a word (``fp16``, ``f16``, ``float16`` ...).

        Raises:
            UsageError: For an unknown word; the cure lists the known ones.
        """
        key = word.strip().lower()
        key = _PRECISION_ALIASES.get(key, key)
        try:
            return cls(key)
        except ValueError:
            raise UsageError(
                f"'{word}' is not a precision",
                slug="precision-unknown",
                cure="use one of: " + ", ".join(p.value for p in cls),
            ) from None


_PRECISION_DTYPE = {
    Precision.FP64: DType.DOUBLE,
    Precision.FP32: DType.FLOAT,
    Precision.TF32: DType.FLOAT,
    Precision.FP16: DType.FLOAT16,
    Precision.BF16: DType.BFLOAT16,
    Precision.FP8E4M3: DType.FLOAT8E4M3FN,
    Precision.FP8E5M2: DType.FLOAT8E5M2,
    Precision.INT8: DType.INT8,
    Precision.MXFP8E4M3: DType.FLOAT,
    Precision.MXFP8E5M2: DType.FLOAT,
    Precision.MXFP6E2M3: DType.FLOAT,
    Precision.MXFP6E3M2: DType.FLOAT,
    Precision.MXFP4: DType.FLOAT,
    Precision.NVFP4: DType.FLOAT,
}
_PRECISION_ALIASES = {
    "f64": "fp64", "float64": "fp64", "double": "fp64", "f32": "fp32", "float32": "fp32", "float": "fp32",
    "f16": "fp16", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "fp8": "fp8e4m3", "i8": "int8",
    "mxfp8": "mxfp8e4m3", "mxfp6": "mxfp6e2m3",
}  # fmt: skip
