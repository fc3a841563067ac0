"""Whole numbers of 64 bits that a runtime computes in a narrower type."""

from collections.abc import Iterator

import numpy as np

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

IN_FLOAT32 = "large whole numbers were computed in float32, which is exact up to 2^24 only"
IN_RANGE = "keep the numbers within that range, or compute them in another type"


def narrow(ops: str, number: int, words: str) -> MeaningRow:
    """Return a row of whole numbers of 64 bits that are computed in another type.

    Args:
        ops: Names of operators, with spaces between.
        number: ONNX's number of the type.
        words: As of `Meaning`.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        names = [f"v{i}" for i in range(len(site.node.inputs))]
        if any(value is None or site.dtype(value) != np.int64 for value in site.node.inputs):
            return
        given = " ".join(f"n{name} = Cast<to={number}>({name})" for name in names)
        fmod = _attributes(site)
        operands = ", ".join(f"n{name}" for name in names)
        text = f"({', '.join(names)}) => (y) {{ {given} r = {site.op_type}{fmod}({operands}) y = Cast<to=7>(r) }}"
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
        names = [f"v{i}" for i in range(len(site.node.inputs))]
        given = ", ".join(f"{name} = {list(kept) if isinstance(kept, tuple) else kept}"
                          for name in site.node.attributes if (kept := site.attribute(name)) is not None)  # fmt: skip
        call = f"{site.op_type}{f'<{given}>' if given else ''}({', '.join(names)})"
        text = f"({', '.join(names)}) => (y) {{ r = {call} n = Cast<to={number}>(r) y = Cast<to=7>(n) }}"
        yield Meaning(words, body=text, cure=IN_RANGE)

    return MeaningRow(tuple(ops.split()), ways)


def _attributes(site: MeantNode) -> str:
    return f"<fmod={site.attribute('fmod')}>" if site.op_type == "Mod" else ""


INTEGERS: tuple[MeaningRow, ...] = (
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
