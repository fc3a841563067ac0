"""The numbers of one made-up input: by its role in the model, or of a range, as Polygraphy draws them."""

import math

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.inputs.syntax import Range
from tensortriage.inputs.synthetic.input_roles import Role, Use
from tensortriage.values.dtype import DType

_WORDS = ("the", "model", "is", "right", "in", "one", "engine", "")


def uniform(
    generator: np.random.RandomState, name: str, dtype: DType, shape: tuple[int, ...], wanted: Range
) -> np.ndarray:
    """Draw numbers of a range, as Polygraphy's ArraySampler does (``polygraphy/comparator/data_loader.py``).

    Raises:
        UsageError: For a range that the type cannot hold (``range-malformed``), or a type without a range
            (``random-unsupported``).
    """
    if dtype.is_integer or dtype is DType.BOOL:
        return _uniform_integers(generator, name, dtype, shape, wanted)
    if not dtype.is_float:
        raise _unsupported(name, dtype)
    low, high = float(wanted[0]), float(wanted[1])
    scale, shift = high - low, low
    if math.isinf(low):
        scale, shift = low, 0.0
    if math.isinf(high):
        scale = high
    with np.errstate(all="ignore"):
        return np.asarray(generator.random_sample(shape) * scale + shift).astype(dtype.numpy)


def _uniform_integers(
    generator: np.random.RandomState, name: str, dtype: DType, shape: tuple[int, ...], wanted: Range
) -> np.ndarray:
    drawn = dtype.numpy if dtype.numpy.num < 256 else np.dtype(np.int64)  # numpy draws no int4.
    try:
        low, high = (bool(wanted[0]), bool(wanted[1])) if dtype is DType.BOOL else (int(wanted[0]), int(wanted[1]))
        return np.asarray(generator.randint(low, high + 1, shape, dtype=drawn)).astype(dtype.numpy)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"[{wanted[0]},{wanted[1]}] is no range for input '{name}' of type {dtype.label}: {error}",
            slug="range-malformed",
            cure="give a range that the type can hold",
        ) from error


def sensible(generator: np.random.RandomState, role: Role, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Draw the numbers that an input needs by its role."""
    if dtype is DType.STRING:
        words = np.array(_WORDS, dtype=object)
        return np.asarray(words[generator.randint(0, len(_WORDS), shape)], dtype=object).reshape(shape)
    if role.use is Use.FILL:
        values = np.full(shape, role.low)
    elif role.use is Use.RESHAPE:
        values = np.ones(shape)
        values.reshape(-1)[:1] = -1
    elif role.use is Use.COUNT_UP:
        counted = np.arange(shape[-1] if shape else 1) % (role.high + 1)
        values = np.broadcast_to(counted, shape) if shape else counted[0]
    elif role.use is Use.INDEX:
        values = generator.randint(0, min(int(role.high), 2**31 - 2) + 1 if math.isfinite(role.high) else 10, shape)
    elif dtype.is_float or dtype in (DType.COMPLEX64, DType.COMPLEX128):
        values = _floats(generator, role.use, shape)
    elif dtype is DType.BOOL:
        values = generator.randint(0, 2, shape)
    else:
        values = _integers(generator, role.use, dtype, shape)
    return np.asarray(values).astype(dtype.numpy)


def _floats(generator: np.random.RandomState, use: Use, shape: tuple[int, ...]) -> np.ndarray:
    if use is Use.FREE:
        return np.asarray(generator.standard_normal(shape))
    low, high = {
        Use.POSITIVE: (0.1, 2.0), Use.AT_LEAST_ONE: (1.0, 3.0), Use.UNIT: (0.0, 1.0), Use.SYMMETRIC: (-0.95, 0.95),
    }[use]  # fmt: skip
    return np.asarray(generator.uniform(low, high, shape))


def _integers(generator: np.random.RandomState, use: Use, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    low, high = (0 if use is Use.FREE else 1), 9
    if dtype in (DType.UINT8, DType.INT8) and use is Use.FREE:
        low, high = (0, 255) if dtype is DType.UINT8 else (-128, 127)
    elif dtype.bits < 8:
        signed = 0 if dtype.name.startswith("U") else 1
        low, high = max(low, -signed << (dtype.bits - 1)), (1 << (dtype.bits - signed)) - 1
    return np.asarray(generator.randint(low, high + 1, shape))


def _unsupported(name: str, dtype: DType) -> UsageError:
    return UsageError(
        f"no random values can be drawn for input '{name}' of type {dtype.label}",
        slug="random-unsupported",
        cure="give real data with --inputs",
    )
