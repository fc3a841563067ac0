"""Whole numbers of 64 bits that a runtime computes in a narrower type."""

from collections.abc import Iterator

import numpy as np
import onnx

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

IN_FLOAT32 = "large whole numbers were computed in float32, which is exact up to 2^24 only"
_SHORT = 2
"""Bytes of the types whose arithmetic processors have with saturation as well (SSE2, NEON)."""
IN_RANGE = "keep the numbers within that range, or compute them in another type"


def narrow(ops: str, number: int, words: str) -> MeaningRow:
    """Return a row of whole numbers of 64 bits that are computed in another type.

    Args:
        ops: Names of operators, with spaces between.
        number: ONNX's number of the type.
        words: As of `Meaning`.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        if any(value is None or site.dtype(value) != np.int64 for value in site.node.inputs):
            return
        names = {index: f"n{index}" for index in range(len(site.node.inputs))}
        given = " ".join(f"{name} = Cast<to={number}>(i{index})" for index, name in names.items())
        text = f"{formal(site)} => (y) {{ {given} r = {call(site, names)} y = Cast<to=7>(r) }}"
        yield Meaning(words, body=text, cure=IN_RANGE)

    return MeaningRow(tuple(ops.split()), ways)


def wrapped(ops: str, number: int, words: str) -> MeaningRow:
    """Return a row of whole numbers of 64 bits that are computed in a narrower type, where they wrap.

    Sums and products wrap alike at every step and at the end, so that the result alone need be cut.

    Args:
        ops: Names of operators, with spaces between.
        number: ONNX's number of the type.
        words: As of `Meaning`.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        value = site.node.inputs[0]
        if value is None or site.dtype(value) != np.int64:
            return
        text = f"{formal(site)} => (y) {{ r = {call(site)} n = Cast<to={number}>(r) y = Cast<to=7>(n) }}"
        yield Meaning(words, body=text, cure=IN_RANGE)

    return MeaningRow(tuple(ops.split()), ways)


def narrow_constants(ops: str) -> MeaningRow:
    """Return a row of constants beyond int32 that were stored in it, while everything else has 64 bits.

    Args:
        ops: Names of operators, with spaces between.
    """
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max

    def ways(site: MeantNode) -> Iterator[Meaning]:
        for index, value in enumerate(site.node.inputs):
            array = site.constant(index)
            if value is None or array is None or array.dtype != np.int64 or not array.size:
                continue
            far = int(array.ravel()[np.argmax(np.abs(array))])
            if low <= far <= high:
                continue
            told = f"the constant '{value.name}', which holds {far:,}, was stored in 32 bits (int32)"
            ends = f"lo = Constant<value_int={low}>() hi = Constant<value_int={high}>()"
            cut = f"{ends} a = Max(i{index}, lo) n = Min(a, hi)"
            wrap = f"a = Cast<to=6>(i{index}) n = Cast<to=7>(a)"
            for words, body in (("cut off at its ends", cut), ("which wraps at 2^31", wrap)):
                text = f"{formal(site)} => (y) {{ {body} y = {call(site, {index: 'n'})} }}"
                yield Meaning(f"{told}, {words}", body=text, cure=IN_RANGE)

    return MeaningRow(tuple(ops.split()), ways)


def saturated(ops: str) -> MeaningRow:
    """Return a row of whole numbers of 8 and 16 bits that stop at the ends of their type, where they wrap.

    Args:
        ops: Names of operators, with spaces between.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        kind = site.dtype(site.node.outputs[0])
        if kind is None or kind.kind not in "iu" or kind.itemsize > _SHORT:
            return
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        wide = {index: f"w{index}" for index in range(len(site.node.inputs))}
        given = " ".join(f"{name} = Cast<to=7>(i{index})" for index, name in wide.items())
        yield Meaning(
            f"results beyond the ends of {kind} stopped there (it saturated), where they wrap around",
            body=f"{formal(site)} => (y) {{ {given} r = {call(site, wide)} l = Constant<value_int={least}>() "
            f"h = Constant<value_int={most}>() a = Max(r, l) b = Min(a, h) "
            f"y = Cast<to={onnx.helper.np_dtype_to_tensor_dtype(kind)}>(b) }}",
            cure="cast to a wider type before it, and Clip before the cast back",
        )

    return MeaningRow(tuple(ops.split()), ways)


INTEGERS: tuple[MeaningRow, ...] = (
    saturated("Add Sub Mul Neg Sum"),
    narrow_constants("Add Sub Mul Div Mod Max Min Clip Equal Less LessOrEqual Greater GreaterOrEqual Where"),
    narrow(
        "Mod Clip Abs Add Sub Mul Div Neg Max Min Sign Pow",
        6,
        "whole numbers of 64 bits were computed in 32 bits (int32), where they wrap at 2^31",
    ),
    wrapped(
        "CumSum ReduceSum ReduceProd MatMul Gather",
        6,
        "whole numbers of 64 bits were computed in 32 bits (int32), where they wrap at 2^31",
    ),
    wrapped(
        "Add Sub Mul CumSum ReduceSum ReduceProd MatMul Gather",
        12,
        "whole numbers of 64 bits were computed in 32 bits (uint32), where they wrap at 2^32",
    ),
    *(
        wrapped(
            "Add Sub Mul CumSum ReduceSum MatMul Gather", number, f"whole numbers of 64 bits were computed in {bits}"
        )
        for number, bits in (
            (5, "16 bits (int16), where they wrap at 2^15"),
            (3, "8 bits (int8), where they wrap at 2^7"),
            (2, "8 bits (uint8), where they wrap at 2^8"),
        )
    ),
    narrow("Clip Abs Add Sub Mul Div Neg Max Min Pow", 1, IN_FLOAT32),
)
