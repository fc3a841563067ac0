"""Operands of attention that are read at the wrong offset: every row of the batch, or every head, gets the first's."""

from collections.abc import Iterator

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.calls import call, formal

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


BATCHES: tuple[MeaningRow, ...] = (
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
