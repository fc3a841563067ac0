"""MatMul, Gemm and Conv with the operands, the accumulator and the order of sums that an accelerator chooses.

Products of two 11-bit mantissas are exact in float32; an accelerator is free in the way it adds them. Here a block of
terms is summed in float32 (float64 where its accumulator truncates or is exact), then added to the accumulator, which
is rounded after every block, as tensor cores do (`tensortriage_testing.simulated.formats` names the source).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage_testing.simulated import winograd
from tensortriage_testing.simulated.formats import SimulatedFormat, rounded
from tensortriage_testing.simulated.freedoms import Freedoms


def product(left: np.ndarray, right: np.ndarray, freedoms: Freedoms) -> np.ndarray:
    """Return the matrix product of float arrays of at least two axes, as float32 or float64 before it is stored."""
    pairs = _operands(left, right, freedoms.operands)
    parts = [_summed(one, other, freedoms) for one, other in pairs]
    return parts[0] if len(parts) == 1 else np.add.reduce(parts)


def _operands(left: np.ndarray, right: np.ndarray, how: str) -> list[tuple[np.ndarray, np.ndarray]]:
    left, right = left.astype(np.float32), right.astype(np.float32)
    if how == "fp32":
        return [(left, right)]
    if how == "bf16x3":  # high and low halves; the product of the low ones is dropped
        high, other_high = rounded(left, SimulatedFormat.BF16), rounded(right, SimulatedFormat.BF16)
        low, other_low = rounded(left - high, SimulatedFormat.BF16), rounded(right - other_high, SimulatedFormat.BF16)
        return [(high, other_high), (high, other_low), (low, other_high)]
    word, _, truncated = how.partition("-")
    to = SimulatedFormat(word)
    return [(rounded(left, to, toward_zero=bool(truncated)), rounded(right, to, toward_zero=bool(truncated)))]


def _summed(left: np.ndarray, right: np.ndarray, freedoms: Freedoms) -> np.ndarray:
    depth = left.shape[-1]
    block = 1 if freedoms.order == "sequential" else freedoms.block or depth
    exact = freedoms.accumulator is SimulatedFormat.FP64 or freedoms.toward_zero
    if exact:
        left, right = left.astype(np.float64), right.astype(np.float64)
    starts = list(range(0, depth, max(1, block)))
    if freedoms.order == "reversed":
        left, right = left[..., ::-1], right[..., ::-1, :]
    if len(starts) < 2:
        return rounded(np.matmul(left, right), freedoms.accumulator, toward_zero=freedoms.toward_zero)
    total: np.ndarray = np.zeros((), left.dtype)
    for start in starts:
        part = np.matmul(left[..., start : start + block], right[..., start : start + block, :])
        total = rounded(total + part, freedoms.accumulator, toward_zero=freedoms.toward_zero)
    return total


def matmul(inputs: Sequence[np.ndarray | None], freedoms: Freedoms) -> np.ndarray:
    """ONNX MatMul."""
    left, right = (np.asarray(each) for each in inputs[:2])
    row, column = left.ndim == 1, right.ndim == 1
    made = product(left[None, :] if row else left, right[:, None] if column else right, freedoms)
    made = made[..., 0] if column else made
    return np.asarray(np.squeeze(made, axis=-1 if column else -2)) if row else made


def gemm(inputs: Sequence[np.ndarray | None], attributes: Mapping[str, object], freedoms: Freedoms) -> np.ndarray:
    """ONNX Gemm; scaling and bias follow in float32."""
    left, right = (np.asarray(each) for each in inputs[:2])
    made = product(left.T if _number(attributes, "transA", 0) else left,
                   right.T if _number(attributes, "transB", 0) else right, freedoms)  # fmt: skip
    made = made * made.dtype.type(_number(attributes, "alpha", 1))
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is not None:
        made = made + made.dtype.type(_number(attributes, "beta", 1)) * bias.astype(made.dtype)
    return np.asarray(made)


def conv(inputs: Sequence[np.ndarray | None], attributes: Mapping[str, object], freedoms: Freedoms) -> np.ndarray:
    """ONNX Conv of any rank, as a product of patches and filters; 3x3 ones by Winograd where that is chosen."""
    data, weight = (np.asarray(each) for each in inputs[:2])
    bias = inputs[2] if len(inputs) > 2 else None
    kernel = weight.shape[2:]
    strides, dilations = (_whole(attributes, word, len(kernel)) for word in ("strides", "dilations"))
    groups = int(_number(attributes, "group", 1))
    padded = np.pad(data, [(0, 0), (0, 0), *_padding(attributes, data.shape[2:], kernel, strides, dilations)])
    plain = (*strides, *dilations) == (1, 1, 1, 1) and kernel == (3, 3)
    results = []
    for part, filters in zip(np.split(padded, groups, axis=1), np.split(weight, groups), strict=True):
        if plain and freedoms.winograd:
            made = winograd.convolved(part, filters, freedoms.winograd, lambda x, y: product(x, y, freedoms))
        else:
            made = _direct(part, filters, strides, dilations, freedoms)
        results.append(made)
    whole = np.concatenate(results, axis=1)
    return whole if bias is None else whole + bias.astype(whole.dtype).reshape(1, -1, *(1 for _ in kernel))


def _direct(
    data: np.ndarray, weight: np.ndarray, strides: Sequence[int], dilations: Sequence[int], freedoms: Freedoms
) -> np.ndarray:
    kernel, rank = weight.shape[2:], weight.ndim - 2
    spans = [(size - 1) * gap + 1 for size, gap in zip(kernel, dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(data, spans, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, step) for step in (1, 1, *strides, *dilations)]
    windows = windows[tuple(steps)]
    places = windows.shape[2 : 2 + rank]
    order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
    patches = windows.transpose(order).reshape(len(data), int(np.prod(places)), -1)
    made = product(patches, weight.reshape(len(weight), -1).T, freedoms)
    return np.ascontiguousarray(made.transpose(0, 2, 1)).reshape(len(data), len(weight), *places)


def _padding(
    attributes: Mapping[str, object],
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:
    how = str(attributes.get("auto_pad", "NOTSET"))
    if how in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for size, span, step, gap in zip(sizes, kernel, strides, dilations, strict=True):
            needed = max(0, (-(-size // step) - 1) * step + (span - 1) * gap + 1 - size)
            small, large = needed // 2, needed - needed // 2
            found.append((small, large) if how == "SAME_UPPER" else (large, small))
        return found
    pads = attributes.get("pads") if how == "NOTSET" else None
    values = [int(value) for value in pads] if isinstance(pads, tuple | list) else [0] * 2 * len(kernel)
    return list(zip(values[: len(kernel)], values[len(kernel) :], strict=True))


def _whole(attributes: Mapping[str, object], word: str, rank: int) -> tuple[int, ...]:
    given = attributes.get(word)
    return tuple(int(value) for value in given) if isinstance(given, tuple | list) else (1,) * rank


def _number(attributes: Mapping[str, object], word: str, default: float) -> float:
    return float(str(attributes.get(word, default)))
