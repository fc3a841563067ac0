"""Differences in an operand: an epsilon that is added, sizes for scales, the first row of a batch for all."""

from collections.abc import Callable, Iterator

import numpy as np

from tensortriage.model.sdk import array_of
from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_EPSILONS = (1e-5, 1e-3, 1e-6, 1e-12, 1e-8, 1e-7, 1e-4, 1e-10, 0.0)
_FOLDED = (
    "fold it as w * scale / sqrt(variance + epsilon) and (b - mean) * scale / sqrt(variance + epsilon) + shift, or "
    "leave the folding to the converter"
)
_NORMAL = {"fp16": 2.0**-14, "fp32 and bf16": 2.0**-126}
"""Smallest normal number of a type (IEEE 754-2008, table 3.5)."""
_FEW = 8
"""Numbers from which on a constant is a weight."""
_LARGEST = 0.011
"""Up to this a constant that is added before a root is an epsilon."""


def _epsilon(site: MeantNode) -> Iterator[Meaning]:
    """Yield other epsilons of a normalization that is written in single steps."""
    if site.feeds("Sqrt", "Pow", "Rsqrt") is None:
        return
    for index in (0, 1):
        given = site.constant(index)
        if given is not None and given.size == 1 and 0 <= float(given.reshape(-1)[0]) < _LARGEST:
            now = float(given.reshape(-1)[0])
            for other in _EPSILONS:
                if not np.isclose(other, now, rtol=1e-3, atol=0.0):
                    yield Meaning(
                        f"the epsilon under the root were {other:g}, not {now:g}",
                        operands={index: np.full_like(given, other)},
                    )


def _flipped(site: MeantNode) -> Iterator[Meaning]:
    """Yield a convolution whose kernel runs the other way: a true one, where ONNX's is a correlation."""
    given = site.constant(1)
    if given is not None and given.ndim > 2 and max(given.shape[2:]) > 1:
        axes = tuple(range(2, given.ndim))
        yield Meaning(
            "its kernel were flipped (a true convolution), which ONNX's is not",
            operands={1: np.ascontiguousarray(np.flip(given, axes))},
        )
        if given.shape[2] == given.shape[-1] and given.ndim == 4:
            yield Meaning(
                "height and width of its kernel were exchanged",
                operands={1: np.ascontiguousarray(given.swapaxes(2, 3))},
            )


def _sizes(site: MeantNode) -> Iterator[Meaning]:
    """Yield a Resize whose scales are those of its sizes, which are whole numbers."""
    made, scales = site.made(), site.constant(2)
    if made is not None and scales is not None and scales.size:
        yield Meaning(
            f"its scales were recomputed from the sizes {list(made)}, not taken as given",
            operands={2: np.zeros(0, np.float32), 3: np.array(made)},
            cure="give sizes instead of scales, or recompute_scale_factor=False to PyTorch's interpolate",
        )


def _pad_order(site: MeantNode) -> Iterator[Meaning]:
    """Yield a Pad whose last two axes are exchanged, or whose ends are."""
    given = site.constant(1)
    if given is None or given.ndim != 1 or site.constant(3) is not None:
        return
    half = given.size // 2
    begin, end = given[:half], given[half:]
    exchanged = np.arange(half)
    exchanged[-2:] = exchanged[-2:][::-1]
    for words, other in {
        "height and width of its pads were exchanged": np.concatenate([begin[exchanged], end[exchanged]]),
        "begin and end of its pads were exchanged": np.concatenate([end, begin]),
        "its pads came in PyTorch's order, the last axis first": given.reshape(2, half)[:, ::-1].T.reshape(-1),
    }.items():
        if not np.array_equal(other, given):
            yield Meaning(words, operands={1: np.ascontiguousarray(other)})


def _misfolded(site: MeantNode) -> Iterator[Meaning]:
    """Yield a BatchNormalization as it is folded wrongly: without one of its parts, or by the variance itself."""
    arrays = [site.constant(index) for index in range(1, 5)]
    if any(array is None for array in arrays):
        return
    scale, shift, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    dtype, epsilon = np.asarray(arrays[0]).dtype, site.attribute("epsilon")
    factor = scale / np.sqrt(variance + epsilon)
    others: dict[str, tuple[int, np.ndarray]] = {
        "its mean were left out": (3, np.zeros_like(mean)),
        "its scale were left out": (1, np.ones_like(scale)),
        "its shift were left out": (2, np.zeros_like(shift)),
        "it divided by the variance, not by its root": (4, variance**2 - epsilon),
        "it divided by variance + epsilon, not by its root": (4, (variance + epsilon) ** 2 - epsilon),
        "its epsilon were added to the root, not under it": (4, (np.sqrt(variance) + epsilon) ** 2 - epsilon),
    }
    made_by = site.made_by("Conv", "ConvTranspose")
    bias = array_of(made_by.inputs[2]) if made_by is not None and len(made_by.inputs) > 2 else None
    if bias is not None and bias.shape == shift.shape:
        others["it were folded without the bias before it"] = (2, shift - factor * bias)
        others["the bias before it were added unscaled"] = (2, shift + (1.0 - factor) * bias)
    for words, (index, array) in others.items():
        if not np.allclose(array, (scale, shift, mean, variance)[index - 1]):
            yield Meaning(words, operands={index: array.astype(dtype)}, cure=_FOLDED)


def _flushed(site: MeantNode) -> Iterator[Meaning]:
    """Yield a constant whose subnormal numbers are 0: of fp16 where a weight is kept in it, of fp32 and bf16."""
    for index in range(len(site.node.inputs)):
        given = site.constant(index)
        if given is None or given.dtype.kind != "f" or given.size < _FEW:
            continue
        for types, least in _NORMAL.items():
            small = (given != 0) & (np.abs(given) < least)
            if small.any() and not small.all():
                yield Meaning(
                    f"numbers of its input {site.input_name(index)} below {least:.3g}, which are subnormal in {types}, "
                    "were 0",
                    operands={index: np.where(small, 0, given).astype(given.dtype)},
                    cure="scale that weight up and the result down, or keep that op in fp32",
                )


def _row(ways: Callable[[MeantNode], Iterator[Meaning]], *ops: str, since: int = 0) -> MeaningRow:
    return MeaningRow(ops, ways, since)


OPERANDS: tuple[MeaningRow, ...] = (
    _row(_epsilon, "Add"),
    _row(_flipped, "Conv", "ConvTranspose"),
    _row(_sizes, "Resize", since=11),
    _row(_pad_order, "Pad"),
    _row(_misfolded, "BatchNormalization"),
    _row(_flushed),
)


_AXES = {0: "row of the batch (axis 0)", 1: "head (axis 1)"}
_HEADS = 4
"""Axes of an operand whose second one is that of the heads."""
_NAMES = {
    "MultiHeadAttention": (
        "query", "key", "value", "bias", "key_padding_mask", "attention_bias", "past_key", "past_value"
    ),
}  # fmt: skip
"""Inputs of operators of ONNX Runtime, whose definitions onnx does not have (its `ContribOperators.md`)."""
_CURE = "expand that operand to all rows and heads of the scores (Expand) before it"


def _first_for_all(site: MeantNode) -> Iterator[Meaning]:
    """Yield each operand (bias, mask, past, lengths) as its first index of the batch, or of the heads, has it."""
    for index, value in enumerate(site.node.inputs):
        shape = site.shape(index)
        if value is None or shape is None:
            continue
        for axis, whose in _AXES.items():
            if axis >= len(shape) or shape[axis] < 2 or (axis and len(shape) != _HEADS):
                continue
            outputs = ", ".join(f"y{at}" for at in range(len(site.node.outputs)))
            read = (
                f"z = Constant<value_ints={[0] * shape[axis]}>() n = Gather<axis={axis}>(i{index}, z) "
                f"{outputs} = {call(site, {index: 'n'})}"
            )
            yield Meaning(
                f"its input {_name(site, index)} were that of the first {whose} for every one of {shape[axis]}",
                body=f"{formal(site)} => ({outputs}) {{ {read} }}",
                cure=_CURE,
            )


def _name(site: MeantNode, index: int) -> str:
    names = _NAMES.get(site.op_type, ())
    return names[index] if site.schema is None and index < len(names) else site.input_name(index)


def _mask_itself(site: MeantNode) -> Iterator[Meaning]:
    """Yield a fused attention with a mask where a file has the number of its ones: those are the first tokens.

    ONNX Runtime's optimizer fuses to that number, which is right for padding at the right alone.
    """
    index = _MASKS[site.op_type]
    maker = site.made_by("ReduceSum", index=index)
    mask = maker.inputs[0] if maker is not None else None
    if mask is None or (site.rank(index) or 0) != 1:
        return
    yield Meaning(
        f"its mask were '{mask.name}' itself, not how many ones that has, which stand for as many first tokens (right "
        "for padding at the right alone)",
        wired={index: mask.name or ""},
        cure=f"give '{site.node.name}' the mask itself, or pad at the right",
    )


_MASKS = {"Attention": 3, "QAttention": 5, "MultiHeadAttention": 4}
"""Index of ``mask_index`` and ``key_padding_mask``: a number for each row, or a mask (its `ContribOperators.md`)."""

BATCHES: tuple[MeaningRow, ...] = (
    MeaningRow(tuple(_MASKS), _mask_itself),
    MeaningRow(
        (
            "MultiHeadAttention",
            "Attention",
            "GroupQueryAttention",
            "DecoderMaskedMultiHeadAttention",
            "PackedAttention",
        ),
        _first_for_all,
        since=12,
    ),
)
