"""A feed either fits the model, or is converted without loss, or is refused.

The rule for element types: an array may come in another number type when every one of its values is exactly
representable in the model's type (int32 ids for an int64 input, float64 numbers that happen to be float32 ones, a mask
of 0.0 and 1.0 for a bool input); NaN stays NaN. Anything else would silently test other data than the user saved, so
it is an error that names the conversion. `Casting.ROUND` is that conversion, on explicit request.

The rule for shapes: known dimensions must be equal. There is no transposing and no reshaping.
"""

import enum
import logging
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np

from tensortriage.errors import DataError, UsageError, did_you_mean
from tensortriage.inputs.feed import LABEL_NAMES, Feed, LazyTensors
from tensortriage.inputs.syntax import Shape
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_logger = logging.getLogger(__name__)


class Casting(enum.Enum):
    """Permitted changes to the numbers of a feed, to fit the model's element types."""

    EXACT = "exact"
    """Only where every value stays the same."""
    ROUND = "round"
    """As ``array.astype`` does (floats are rounded, fractions cut off); values out of range are still refused."""


def check_feed(feed: Feed, specs: Sequence[ValueSpec], *, casting: Casting = Casting.EXACT) -> Feed:
    """Return the feed with exactly the model's inputs, in their order, element types and shapes.

    Args:
        feed: What was read or made up.
        specs: The model's inputs; an unknown dtype or dimension accepts anything.
        casting: How far numbers may change.

    Tensors that are no inputs become labels where no input is missing: a file of all layers' values feeds any part.

    Raises:
        DataError: For a missing input (``feed-input-missing``, or ``feed-input-unknown`` where the feed has another
            name instead), a shape (``feed-shape-mismatch``) or an element type (``feed-dtype-mismatch``) that does not
            fit.
    """
    _check_names(feed, specs)
    tensors = {spec.name: _conform(feed.tensors[spec.name], spec, feed.name, casting) for spec in specs}
    others = [name for name in feed.tensors if name not in tensors]  # which may still be on disk
    labels = LazyTensors({name: partial(feed.tensors.__getitem__, name) for name in others})
    return Feed(feed.name, tensors, feed.origin, labels if others else feed.labels)


def near(word: str, known: Collection[str]) -> str:
    """Return ``, did you mean 'x'?`` for the known word nearest to a wrong one, or an empty string."""
    meant = did_you_mean(word, known)
    return f", {meant}" if meant else ""


def fits(shape: Sequence[int], spec: ValueSpec) -> bool:
    """Return whether a concrete shape agrees with every known dimension of a spec."""
    if spec.shape is None:
        return True
    return len(shape) == len(spec.shape) and all(
        not isinstance(wanted, int) or wanted == size for size, wanted in zip(shape, spec.shape, strict=True)
    )


def show_shape(shape: Sequence[int | str | None] | None) -> str:
    """Return a shape for people: ``[batch, 3, ?]``, or ``of any rank``."""
    return "of any rank" if shape is None else "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"


def _check_names(feed: Feed, specs: Sequence[ValueSpec]) -> None:
    wanted = [spec.name for spec in specs]
    missing = [name for name in wanted if name not in feed.tensors]
    unknown = [name for name in feed.tensors if name not in set(wanted)]
    if unknown and not missing:
        if odd := [name for name in unknown if name.lower() not in LABEL_NAMES]:
            _logger.warning("%s: left out, not inputs of the model: %s", feed.name, _listed(odd))
        return
    if unknown:
        raise DataError(
            f"{feed.name}: '{unknown[0]}' is not an input of the model{near(unknown[0], missing)}",
            slug="feed-input-unknown",
            cure=f"name the arrays after the model's inputs: {_listed(wanted)}; leave out all others",
        )
    if missing:
        raise DataError(
            f"{feed.name}: input '{missing[0]}' is missing" + (f" ({len(missing)} in all)" if missing[1:] else ""),
            slug="feed-input-missing",
            cure=f"the model takes {_listed(wanted)}; merge files with: triage data merge FILE FILE -o OUT.json",
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names[:8]) + (f" and {len(names) - 8} more" if names[8:] else "")


def _conform(value: object, spec: ValueSpec, where: str, casting: Casting) -> np.ndarray:
    array = np.asarray(value)
    if not fits(array.shape, spec):
        raise DataError(
            f"{where}: input '{spec.name}' has shape {show_shape(array.shape)}, the model takes "
            f"{show_shape(spec.shape)}",
            slug="feed-shape-mismatch",
            cure=_shape_cure(array.shape, spec),
        )
    return array if spec.dtype is None else _convert(array, spec.name, spec.dtype, where, casting)


def _shape_cure(shape: tuple[int, ...], spec: ValueSpec) -> str:
    assert spec.shape is not None
    inner = ValueSpec(spec.name, spec.dtype, spec.shape[1:])
    if spec.shape and spec.shape[0] == 1 and fits(shape, inner):
        return "add the batch axis: array[None]"
    if spec.shape and spec.shape[0] == 1 and len(shape) == len(spec.shape) and fits(shape[1:], inner):
        return f"the model takes one sample at a time; save array[:, None] and all {shape[0]} are fed in turn"
    rank = len(shape)
    for axes in ((0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)) if rank > 2 else ():
        if fits([shape[axis] for axis in axes], spec):
            there = "channels last (NHWC)" if axes[1] == rank - 1 else "channels first (NCHW)"
            return f"the data have their {there}, the model expects another order: save array.transpose{axes}"
    if len(shape) == len(spec.shape) + 1:
        return "an extra leading axis means many samples only if every input has one of the same length"
    return "give every known dimension as the model declares it; nothing is transposed or reshaped"


def _convert(array: np.ndarray, name: str, wanted: DType, where: str, casting: Casting) -> np.ndarray:
    if array.dtype.type is np.void:
        array = _reinterpret(array, name, wanted, where)
    try:
        given = DType.from_numpy(array.dtype)
    except UsageError as error:
        raise DataError(
            f"{where}: input '{name}': {error.message}", slug="feed-dtype-mismatch", cure=error.cure
        ) from None
    if given is wanted:
        return _strings(array, name, where) if wanted is DType.STRING else _native(array)
    if DType.STRING in (given, wanted) or (_is_complex(given) and not _is_complex(wanted)):
        raise _mismatch(name, given, wanted, where, "the two have no values in common")
    with np.errstate(all="ignore"):
        # ml_dtypes has no casts between several of its own types.
        converted = (_exact(array) if _is_extension(given) else array).astype(wanted.numpy)
    changed = _changed(array, converted)
    if not changed.any():
        return converted
    if casting is Casting.ROUND:
        if _in_range(array, converted, wanted):
            return converted
        raise _mismatch(name, given, wanted, where, "some values are out of its range")
    first = tuple(int(i) for i in np.argwhere(changed)[0])
    detail = f"{int(changed.sum())} of {changed.size} values would change, e.g. {array[first]} at {list(first)}"
    raise _mismatch(name, given, wanted, where, detail)


def _mismatch(name: str, given: DType, wanted: DType, where: str, detail: str) -> DataError:
    if DType.STRING in (given, wanted) or "range" in detail:
        cure = f"save it as {wanted.label}"
    else:
        library = "ml_dtypes" if _is_extension(wanted) else "numpy"
        cure = f"save array.astype({library}.{wanted.label}), or: triage data convert IN -o OUT --model MODEL --cast"
    return DataError(
        f"{where}: input '{name}' is {given.label}, the model takes {wanted.label}; {detail}",
        slug="feed-dtype-mismatch",
        cure=cure,
    )


def _reinterpret(array: np.ndarray, name: str, wanted: DType, where: str) -> np.ndarray:
    """Give bf16, fp8 and int4 arrays back the type that .npy files lose (numpy saves them as raw ``V2``/``V1``)."""
    if array.dtype.itemsize == wanted.numpy.itemsize and _is_extension(wanted):
        return np.ascontiguousarray(array).view(wanted.numpy)
    raise DataError(
        f"{where}: input '{name}' holds raw {array.dtype.itemsize}-byte items, the model takes {wanted.label}",
        slug="feed-dtype-mismatch",
        cure=f"save it as {wanted.label}, or in a .safetensors file, which keeps the type",
    )


def _is_extension(dtype: DType) -> bool:
    """Return whether a type comes from ml_dtypes; numpy numbers registered types from 256 on."""
    return dtype.numpy.num >= 256


def _native(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _strings(array: np.ndarray, name: str, where: str) -> np.ndarray:
    """Return an object array of str, the form that engines take."""
    words = array.astype(object)
    flat = words.reshape(-1)
    for index, word in enumerate(flat):
        if isinstance(word, bytes):
            flat[index] = word.decode("utf-8", "surrogateescape")
        elif not isinstance(word, str):
            raise DataError(
                f"{where}: input '{name}' holds a {type(word).__name__} among its strings",
                slug="feed-dtype-mismatch",
                cure="save strings only",
            )
    return words


def _is_complex(dtype: DType) -> bool:
    return dtype in (DType.COMPLEX64, DType.COMPLEX128)


def _changed(array: np.ndarray, converted: np.ndarray) -> np.ndarray:
    """Return where a conversion changed the value; comparisons are exact, also between 64-bit ints and floats."""
    given, new = _exact(array), _exact(converted)
    kinds = {given.dtype.kind, new.dtype.kind}
    if kinds <= {"i", "u"}:
        # A wrapped integer is the only way two integer arrays differ; numpy compares int64 with uint64 exactly.
        return np.asarray(given != new)
    if kinds & {"i", "u"} and "c" not in kinds:
        return _int_differs(given, new) if given.dtype.kind in "iu" else _int_differs(new, given)
    return np.asarray(~((given == new) | (np.isnan(given) & np.isnan(new))))


def _int_differs(integers: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """Compare 64-bit integers with float64 numbers exactly.

    A float equal to the integer rounded to float64 may still differ from the integer, but only from 2**53 on; there the
    comparison is left to Python, whose int == float is exact.
    """
    differs = np.asarray(integers.astype(np.float64) != floats)
    large = np.asarray(~differs & (np.abs(floats) >= 2.0**53))
    if large.any():
        pairs = zip(integers[large].tolist(), floats[large].tolist(), strict=True)
        differs[large] = [whole != real for whole, real in pairs]
    return differs


def _exact(array: np.ndarray) -> np.ndarray:
    """Return the same values in int64, uint64, float64 or complex128, each of which holds them exactly."""
    dtype = DType.from_numpy(array.dtype)
    if _is_complex(dtype):
        return array.astype(np.complex128)
    if dtype.is_float:
        return array.astype(np.float64)
    return array.astype(np.uint64 if dtype is DType.UINT64 else np.int64)


def _in_range(array: np.ndarray, converted: np.ndarray, wanted: DType) -> bool:
    """Return whether rounding preserved every value: no finite one became infinite, none was wrapped or clipped."""
    given = _exact(array)
    if wanted is DType.BOOL:
        return False
    if wanted.is_integer:
        signed = 0 if wanted.name.startswith("U") else 1
        low, high = -signed << (wanted.bits - 1), (1 << (wanted.bits - signed)) - 1
        return bool(np.all((given >= low) & (given <= high)))
    if wanted.is_float:
        limit = float(wanted.finfo.max)
        finite = np.isfinite(given)
        rounded = _exact(converted)
        return bool(np.all(np.abs(given[finite]) <= limit) and np.all(np.isfinite(rounded[finite]))
                    and np.all(np.isnan(rounded) == np.isnan(given)))  # fmt: skip
    return True


def check_names(given: Mapping[str, object], specs: Sequence[ValueSpec], option: str) -> None:
    """Check that every name of a per-input option is an input of the model (the empty name is the default).

    Raises:
        UsageError: For an unknown name (slug ``input-unknown``).
    """
    known = [spec.name for spec in specs]
    for name in given:
        if name and name not in known:
            raise UsageError(
                f"{option} names '{name}', which is not an input of the model{near(name, known)}",
                slug="input-unknown",
                cure=f"the model takes {_listed(known)}",
            )


def given_shapes(specs: Sequence[ValueSpec], given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return the shape of every input as far as it is known: the user's, or the model's.

    Args:
        specs: The model's inputs.
        given: Shapes named by the user.

    Raises:
        UsageError: For an unknown input (``input-unknown``), or a shape that contradicts the model
            (``shape-contradicts-model``).
    """
    check_names(given, specs, "the input shape")
    known = {spec.name: spec.shape or () for spec in specs}
    return known | {spec.name: _given_shape(spec, given[spec.name]) for spec in specs if spec.name in given}


def _given_shape(spec: ValueSpec, given: Shape) -> Shape:
    """Return the given shape, with its open sizes (-1) from the model."""
    if spec.shape is None:
        return given
    concrete = ValueSpec(spec.name, None, tuple(d if isinstance(d, int) else None for d in given))
    known = tuple(d if isinstance(d, int) else 0 for d in spec.shape)
    if len(given) != len(spec.shape) or not fits(
        tuple(g if isinstance(g, int) else w for g, w in zip(given, known, strict=True)), spec
    ):
        raise UsageError(
            f"shape {show_shape(concrete.shape)} does not fit input '{spec.name}', which is {show_shape(spec.shape)}",
            slug="shape-contradicts-model",
            cure="give declared dimensions the sizes that the model declares",
        )
    return tuple(g if isinstance(g, int) else w for g, w in zip(given, spec.shape, strict=True))
