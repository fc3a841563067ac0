"""The effect of a planted fault on one tensor, in numpy.

Each kind is a function of the right value and, for faults of an algorithm, of the operator's operands. Amounts are
relative to the tensor (its root mean square, its largest magnitude, its length), so that one default works for every
tensor of every model.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import ml_dtypes
import numpy as np

from tensortriage.engines.sdk import UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """Everything a fault may look at.

    Attributes:
        right: The operator's right result.
        previous: Its result in the run before; None in the first.
        operands: Arrays of the operator's inputs; None where one is omitted.
        op_type: E.g. ``MatMul``.
        attributes: The operator's attributes.
        amount: How much, in the unit of the kind; None for the default.
        seed: For kinds that draw numbers.
    """

    right: np.ndarray
    previous: np.ndarray | None
    operands: Sequence[np.ndarray | None]
    op_type: str
    attributes: Mapping[str, object]
    amount: float | None
    seed: int

    def amount_or(self, default: float) -> float:
        """Return the amount, or a kind's default."""
        return default if self.amount is None else self.amount

    @property
    def exact(self) -> np.ndarray:
        """The right value in float64."""
        return self.right.astype(np.float64)

    @property
    def rms(self) -> float:
        """Root mean square of the finite elements of the right value; 0 when there are none."""
        finite = self.exact[np.isfinite(self.exact)]
        return math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0


def apply(change: Callable[[Site], np.ndarray], site: Site) -> np.ndarray:
    """Return the faulty value in the dtype of the right one; integers are rounded."""
    wrong = np.asarray(change(site))
    dtype = site.right.dtype
    if dtype.kind in "iu" and wrong.dtype.kind == "f":
        limits = np.iinfo(dtype)
        wrong = np.clip(np.rint(wrong), float(limits.min), float(limits.max))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(wrong.astype(dtype)).reshape(wrong.shape)


def scale(site: Site) -> np.ndarray:
    """Multiply by the amount (1.05)."""
    return site.exact * site.amount_or(1.05)


def offset(site: Site) -> np.ndarray:
    """Add the amount (0.1) times the root mean square."""
    return site.exact + site.amount_or(0.1) * site.rms


def noise(site: Site) -> np.ndarray:
    """Add normal noise of the amount (0.05) times the root mean square, the same in every run."""
    rng = np.random.default_rng(site.seed)
    return site.exact + site.amount_or(0.05) * site.rms * rng.standard_normal(site.right.shape)


def nondeterministic(site: Site) -> np.ndarray:
    """Add normal noise of the amount (0.05) times the root mean square, another one in every run."""
    rng = np.random.default_rng()
    return site.exact + site.amount_or(0.05) * site.rms * rng.standard_normal(site.right.shape)


def sign(site: Site) -> np.ndarray:
    """Flip the sign."""
    return -site.exact


def saturate(site: Site) -> np.ndarray:
    """Clip to the amount (0.5) times the largest finite magnitude."""
    finite = np.abs(site.exact[np.isfinite(site.exact)])
    bound = site.amount_or(0.5) * (float(finite.max()) if finite.size else 0.0)
    clipped: np.ndarray = np.clip(site.exact, -bound, bound)
    return clipped


def clip(site: Site) -> np.ndarray:
    """Clip to plus and minus the amount (1), as a cast to a type of smaller range does: other data may show nothing."""
    bound = site.amount_or(1.0)
    clipped: np.ndarray = np.clip(site.exact, -bound, bound)
    return clipped


def flush(site: Site) -> np.ndarray:
    """Zero everything smaller than the amount (0.1) times the root mean square, as hardware flushes subnormals."""
    return np.where(np.abs(site.exact) < site.amount_or(0.1) * site.rms, 0.0, site.exact)


def coarse(site: Site) -> np.ndarray:
    """Round to the amount (32) steps over the range, as a table that is too small does."""
    finite = site.exact[np.isfinite(site.exact)]
    if not finite.size or finite.min() == finite.max():
        return site.exact
    step = (float(finite.max()) - float(finite.min())) / max(1.0, site.amount_or(32.0))
    rounded: np.ndarray = finite.min() + np.rint((site.exact - finite.min()) / step) * step
    return rounded


def inf(site: Site) -> np.ndarray:
    """Make one element infinite: the one with the flat index given by the amount (0)."""
    return _one_element(site, "inf", np.inf)


def nan(site: Site) -> np.ndarray:
    """Make one element NaN: the one with the flat index given by the amount (0)."""
    return _one_element(site, "nan", np.nan)


def _one_element(site: Site, kind: str, number: float) -> np.ndarray:
    if site.right.dtype.kind in "iub":
        raise unsupported(kind, "the value is not floating point")
    wrong = site.right.copy()
    if wrong.size:
        wrong.reshape(-1)[int(site.amount_or(0)) % wrong.size] = number
    return wrong


def off_by_one(site: Site) -> np.ndarray:
    """Give every row (second to last axis) its neighbour's content; the amount (1) is the distance."""
    if site.right.ndim == 0:
        return site.right
    return np.roll(site.right, int(site.amount_or(1)), axis=max(-2, -site.right.ndim))


def zero_tail(site: Site) -> np.ndarray:
    """Zero the last part of the last axis: the amount (0.25) of it, at least one element."""
    wrong = site.right.copy()
    if wrong.ndim and wrong.size:
        count = max(1, round(site.amount_or(0.25) * wrong.shape[-1]))
        wrong[..., -count:] = np.zeros((), wrong.dtype)
    return wrong


def tile_tail(site: Site) -> np.ndarray:
    """Fill the rest of the last axis behind its last full tile, of the amount (3) wide, from the tile before.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    width = max(2, int(site.amount_or(3)))
    wrong = site.right.copy()
    length = wrong.shape[-1] if wrong.ndim else 0
    rest = length % width
    if rest == 0 or length < width:
        raise unsupported("tile-tail", f"the last axis, {length} long, has no rest behind tiles of {width}")
    wrong[..., -rest:] = site.right[..., -rest - width : length - width]
    return wrong


def broadcast(site: Site) -> np.ndarray:
    """Give all along the first axis the content of the first.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    if site.right.ndim < 2 or site.right.shape[0] < 2:
        raise unsupported("broadcast", "there is one along the first axis")
    return np.broadcast_to(site.right[:1], site.right.shape)


def channels_last(site: Site) -> np.ndarray:
    """Read the elements in the order of another layout, with the second axis last (NHWC for NCHW).

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    if site.right.ndim < 3:
        raise unsupported("channels-last", "the value has fewer than three axes")
    return np.ascontiguousarray(np.moveaxis(site.right, 1, -1)).reshape(site.right.shape)


def permute(site: Site) -> np.ndarray:
    """Read the elements in the order of the transposed tensor (last two axes): right numbers in wrong places."""
    if site.right.ndim < 2:
        return site.right[::-1] if site.right.ndim else site.right
    return np.ascontiguousarray(site.right.swapaxes(-1, -2)).reshape(site.right.shape)


def wrong_axis(site: Site) -> np.ndarray:
    """Normalise along the axis before the right one; Softmax and LogSoftmax only.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    data = site.operands[0]
    if site.op_type not in ("Softmax", "LogSoftmax") or data is None or data.ndim < 2:
        raise unsupported("wrong-axis", f"{site.op_type} is not a Softmax or LogSoftmax of at least two axes")
    axis = int(str(site.attributes.get("axis", -1))) % data.ndim
    shifted = data.astype(np.float64)
    shifted = shifted - shifted.max(axis=axis - 1, keepdims=True)
    total = np.exp(shifted).sum(axis=axis - 1, keepdims=True)
    wrong: np.ndarray = shifted - np.log(total) if site.op_type == "LogSoftmax" else np.exp(shifted) / total
    return wrong


def row(site: Site) -> np.ndarray:
    """Give the row (second to last axis) of index amount (the last) the values of the row before it.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    axis = max(-2, -site.right.ndim)
    if site.right.ndim == 0 or site.right.shape[axis] < 2:
        raise unsupported("row", "there is one row")
    rows = np.moveaxis(site.right.copy(), axis, 0)
    index = int(site.amount_or(-1)) % len(rows)
    rows[index] = rows[index - 1]
    return np.moveaxis(rows, 0, axis)


def tile(site: Site) -> np.ndarray:
    """Halve the last tile, of the amount (16) squared, of the last two axes, as if half of its sum never arrived."""
    wrong, width = site.exact.copy(), max(1, int(site.amount_or(16)))
    places = [slice(None)] * max(0, wrong.ndim - 2) + [slice(-width, None)] * min(2, wrong.ndim)
    wrong[tuple(places)] *= 0.5
    return wrong


def epsilon(site: Site) -> np.ndarray:
    """Normalise with the amount (0.1) as epsilon: LayerNormalization, BatchNormalization, or the Add of an epsilon.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    data, given = site.operands[0], site.amount_or(0.1)
    if site.op_type == "Add":
        small = next(
            (x for x in site.operands if x is not None and x.size == 1 and 0 < float(x.ravel()[0]) < 1e-2), None
        )
        if small is not None:
            return site.exact + (given - float(small.ravel()[0]))
    if data is None or site.op_type not in ("LayerNormalization", "BatchNormalization"):
        raise unsupported("epsilon", f"{site.op_type} has no epsilon")
    if site.op_type == "BatchNormalization":
        scale, bias, mean, variance = (
            np.asarray(x, np.float64).reshape(1, -1, *(1,) * (data.ndim - 2)) for x in site.operands[1:5]
        )
        return np.asarray(scale * (data - mean) / np.sqrt(variance + given) + bias)
    axes = tuple(range(int(str(site.attributes.get("axis", -1))) % data.ndim, data.ndim))
    centred = data.astype(np.float64) - data.mean(axis=axes, keepdims=True, dtype=np.float64)
    normal = centred / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + given)
    weight, moved = (*site.operands[1:3], None)[:2]
    scaled = normal if weight is None else normal * weight
    return np.asarray(scaled if moved is None else scaled + moved)


def shape(site: Site) -> np.ndarray:
    """Lose the first axis of length 1; without one, the last element along the first axis.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    if 1 in site.right.shape:
        return np.squeeze(site.right, axis=site.right.shape.index(1))
    if site.right.ndim == 0 or site.right.shape[0] < 2:
        raise unsupported("shape", "the value is a scalar or empty")
    return site.right[:-1]


def warm_up(site: Site) -> np.ndarray:
    """Return zeros in the first run of a session, as from an uninitialized buffer; later runs are right."""
    return np.zeros_like(site.right) if site.previous is None else site.right


def stale(site: Site) -> np.ndarray:
    """Return the previous run's result; the first run is right."""
    fits = site.previous is not None and site.previous.shape == site.right.shape
    return site.previous if fits and site.previous is not None else site.right


def bf16_accumulate(site: Site) -> np.ndarray:
    """Round the running sum of a MatMul, Gemm, ReduceSum or ReduceMean to bfloat16 after every amount (1) terms.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    step = max(1, int(site.amount_or(1)))
    data = site.operands[0]
    if data is not None and site.op_type == "MatMul" and site.operands[1] is not None:
        return _product(data, site.operands[1], step).reshape(site.right.shape)
    if data is not None and site.op_type == "Gemm" and site.operands[1] is not None:
        return _gemm(site, data, site.operands[1], step)
    if data is not None and site.op_type in ("ReduceSum", "ReduceMean"):
        return _reduction(site, data, step)
    raise unsupported("bf16-accumulate", f"{site.op_type} is not a MatMul, Gemm, ReduceSum or ReduceMean")


def _rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def _product(left: np.ndarray, right: np.ndarray, step: int) -> np.ndarray:
    left, right = left.astype(np.float32), right.astype(np.float32)
    left = left[None, :] if left.ndim == 1 else left
    right = right[:, None] if right.ndim == 1 else right
    total = np.zeros((), np.float32)
    for start in range(0, left.shape[-1], step):
        part = np.matmul(left[..., start : start + step], right[..., start : start + step, :])
        total = _rounded(total + part)
    return total


def _gemm(site: Site, left: np.ndarray, right: np.ndarray, step: int) -> np.ndarray:
    def attribute(name: str, default: float) -> float:
        return float(str(site.attributes.get(name, default)))

    left = left.T if attribute("transA", 0) else left
    right = right.T if attribute("transB", 0) else right
    total = np.float32(attribute("alpha", 1)) * _product(left, right, step)
    bias = site.operands[2] if len(site.operands) > 2 else None
    return total if bias is None else total + np.float32(attribute("beta", 1)) * bias


def _reduction(site: Site, data: np.ndarray, step: int) -> np.ndarray:
    axes = site.attributes.get("axes")
    if axes is None and len(site.operands) > 1 and site.operands[1] is not None:
        axes = tuple(int(axis) for axis in site.operands[1])
    given = tuple(int(str(axis)) % data.ndim for axis in axes) if isinstance(axes, tuple | list) and axes else None
    reduced = tuple(range(data.ndim)) if given is None else given
    kept = tuple(axis for axis in range(data.ndim) if axis not in reduced)
    terms = data.astype(np.float32).transpose((*kept, *reduced))
    terms = terms.reshape((*(data.shape[axis] for axis in kept), -1))
    total = np.zeros(terms.shape[:-1], np.float32)
    for start in range(0, terms.shape[-1], step):
        total = _rounded(total + terms[..., start : start + step].sum(axis=-1))
    if site.op_type == "ReduceMean":
        total = total / np.float32(max(1, terms.shape[-1]))
    return total.reshape(site.right.shape)


def unsupported(kind: str, reason: str) -> UsageError:
    """Return the error for a fault that cannot be planted at a place."""
    return UsageError(
        f"fault '{kind}' cannot be planted there: {reason}",
        slug="fault-unsupported",
        cure="choose another node or kind",
    )
