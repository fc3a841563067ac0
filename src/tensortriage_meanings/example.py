"""Is a constant of a file that of another size? An exporter that traces keeps numbers made of its example's sizes.

A scale ``16.0 / x.shape[-1]``, a root of a length, an offset of a window become constants: right for sizes of the
example, wrong for others. The other side's result tells the constant that belongs there; where the file's is
``k * n^p`` of a whole size ``n``, and the right one ``k * s^p`` of the size ``s`` that an input with an open shape
has here, that is the cause.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage_meanings.own_numbers import EXACT, Tensors, factor
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_FEWEST = 3
"""Elements whose common factor is none by chance: two ratios agree to 1e-4, and two numbers are whole besides."""
_WHOLE = 1e-5
"""By so much a size's factor, or its reciprocal, may be off a whole number: roundings of float32."""
_LARGEST = 1 << 16
"""Sizes beyond are no sizes of examples."""
_CURE = (
    "compute it from the input's shape where the network is traced (tensors, not Python's numbers, or a dynamic "
    "dimension of torch.export), or feed inputs of the example's size"
)


def example_rows(ours: Tensors, theirs: Tensors, sizes: Mapping[str, int]) -> tuple[MeaningRow, ...]:
    """Return a row of products and sums with a constant that is right for another size of an open dimension.

    Args:
        ours: The model's outputs.
        theirs: The other side's.
        sizes: Size of each open dimension of the model's inputs, by its name.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        name = site.node.outputs[0].name or ""
        if name not in theirs or name not in ours:
            return
        for index in range(len(site.node.inputs)):
            given = site.constant(index)
            if given is not None and given.size == 1 and given.dtype.kind in "fi":
                yield from _of_size(site, index, given, _right(site, index, ours[name], theirs[name]), sizes)

    return (MeaningRow(("Mul", "Div", "Add", "Sub"), ways),) if sizes else ()


def _right(site: MeantNode, index: int, ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float] | None:
    """Return the constant that the other side's result tells, and its absolute uncertainty; None where none does."""
    given = site.constant(index)
    if given is None or ours.shape != theirs.shape or not ours.size:
        return None
    number = float(given.reshape(-1)[0])
    if site.op_type in ("Mul", "Div"):
        found = factor(ours, theirs, fewest=_FEWEST)
        if found is None:
            return None
        slope, uncertain = found
        right = number / slope if site.op_type == "Div" and index == 1 else number * slope
        return right, abs(right) * uncertain
    apart = theirs.astype(np.float64) - ours.astype(np.float64)
    moved = float(np.mean(apart))
    spread = float(np.ptp(apart)) + float(np.spacing(np.float32(np.abs(theirs).max())))
    if not math.isfinite(spread) or apart.size < _FEWEST or spread > EXACT * abs(moved):
        return None
    return number + (-moved if site.op_type == "Sub" and index == 1 else moved), spread


def _of_size(
    site: MeantNode, index: int, given: np.ndarray, right: tuple[float, float] | None, sizes: Mapping[str, int]
) -> Iterator[Meaning]:
    """Yield the constant that belongs to a size, where the given one belongs to another."""
    number = float(given.reshape(-1)[0])
    if right is None or number == 0.0 or right[0] / number <= 0.0:
        return
    slope, uncertain = right[0] / number, right[1] / abs(number)
    for name, size in sizes.items():
        for power in _POWERS:
            example = size * slope ** (-1.0 / power)
            whole = round(example)
            if not 1 < whole <= _LARGEST or whole == size:
                continue
            if abs((size / whole) ** power - slope) > max(uncertain, _WHOLE * slope):
                continue
            if not _is_plain(number / whole**power):
                continue
            exact = number * (size / whole) ** power
            yield Meaning(
                f"its constant {number:.6g} were {exact:.6g}: the file keeps that of the example that it was exported "
                f"with, whose '{name}' was {whole}, and here that is {size}",
                operands={index: np.full_like(given, exact)},
                cure=_CURE,
            )
            return


def _is_plain(number: float) -> bool:
    """Return whether a number or its reciprocal is a whole one."""
    return any(
        abs(each - round(each)) <= _WHOLE * abs(each) and round(each) != 0
        for each in (number, 1.0 / number if number else math.inf)
        if math.isfinite(each)
    )
