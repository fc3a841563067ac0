"""Why a node needs more bits, judged by the values that it reads and produces in the reference run.

A format fails in few ways: a value beyond its largest number, a value so small that it falls between its smallest
numbers, whole numbers that it does not have, angles of many turns, a difference of large numbers that leaves a small
one. Any other failure is plain rounding that matters.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.runs.analyses.merged_integers import merged_integers
from tensortriage.values.dtype import Precision
from tensortriage.values.text import magnitude, percent

_CANCELS = 100.0
"""Operands this many times the result are named as a cancellation: two decimal digits are gone."""

_UNDERFLOW_SHARE = 0.01
"""Share of nonzero elements below the smallest normal number from which underflow is named."""

_LOST_ANGLE = 0.1
"""Error of an angle, in radians, from which it is named: a sine of it has no second digit."""

_WIDE = (np.float32, np.float64)
PERIODIC = frozenset({"Sin", "Cos", "Tan"})


def reason_for(node: Node, values: Mapping[str, np.ndarray], graph: Graph, precision: Precision) -> str:
    """Return in a few words why a format is too narrow for a node; empty if its values show no reason.

    Args:
        node: The node.
        values: The reference's values, inputs of the model included, by name.
        graph: Its graph, for constants.
        precision: The format.
    """
    if not precision.dtype.is_float:
        return ""
    finfo = precision.dtype.finfo
    largest, smallest = float(finfo.max), float(finfo.smallest_normal)
    made = [values[name] for name in node.outputs if name in values]
    read = dict(_operands(node, values, graph))
    if (reach := _reach(made)) > largest:
        return f"max {magnitude(reach)} > {magnitude(largest, 6)}"
    for name, array in read.items():
        if (reach := _reach([array])) > largest:
            kind = "constant" if name in graph.constants else "operand"
            return f"{kind} '{name}' reaches {magnitude(reach)} > {magnitude(largest, 6)}"
    if (share := _underflow(made, smallest)) > _UNDERFLOW_SHARE:
        return f"{percent(share)} of its result is below {magnitude(smallest, 2)}"
    if words := _integers(made, precision) or _angles(node, made, read, graph, precision):
        return words
    if node.op_type in ("Add", "Sub", "Sum", "MatMul", "Gemm", "ReduceMean", "ReduceSum") and made:
        before, after = _rms(read.values()), _rms(made)
        if after > 0.0 and before / after > _CANCELS:
            return f"cancellation: operands of {magnitude(before, 2)} leave {magnitude(after, 2)}"
    return ""


def _operands(node: Node, values: Mapping[str, np.ndarray], graph: Graph) -> Iterable[tuple[str, np.ndarray]]:
    for name in node.uses:
        if name in values:
            array = values[name]
        elif name in graph.constants and graph.constants[name].dtype is not None:
            array = graph.weight(name)
        else:
            continue
        if array.dtype in _WIDE:
            yield name, array


def _reach(arrays: Iterable[np.ndarray]) -> float:
    reach = 0.0
    for array in arrays:
        if array.dtype in _WIDE and array.size:
            finite = np.abs(array[np.isfinite(array)])
            reach = max(reach, float(finite.max()) if finite.size else 0.0)
    return reach


def _underflow(arrays: Iterable[np.ndarray], smallest: float) -> float:
    share = 0.0
    for array in arrays:
        if array.dtype in _WIDE and array.size:
            magnitude = np.abs(array)
            share = max(share, float(np.mean((magnitude > 0) & (magnitude < smallest))))
    return share


def _integers(made: Iterable[np.ndarray], precision: Precision) -> str:
    for array in made:
        if array.dtype in _WIDE and np.isfinite(array).all() and (found := merged_integers(np.abs(array), precision)):
            return (
                f"whole numbers up to {magnitude(_reach([array]), 6)}; {precision.value} has all only up to "
                f"{magnitude(found.exact, 6)}"
            )
    return ""


def _angles(
    node: Node, made: Sequence[np.ndarray], read: Mapping[str, np.ndarray], graph: Graph, precision: Precision
) -> str:
    """Return the error of angles that a node reads or makes, in words: half a step of the largest."""
    makes = any(user.op_type in PERIODIC for name in node.outputs for user in graph.consumers(name))
    reach = _reach(read.values()) if node.op_type in PERIODIC else _reach(made) if makes else 0.0
    if reach == 0.0:
        return ""
    off = float(precision.dtype.finfo.eps) / 2.0 * 2.0 ** math.floor(math.log2(reach))
    return (
        f"angles up to {magnitude(reach, 4)} rad, off by up to {magnitude(off, 2)} rad in {precision.value}"
        if off > _LOST_ANGLE
        else ""
    )


def _rms(arrays: Iterable[np.ndarray]) -> float:
    squares = [float(np.mean(np.square(a, dtype=np.float64))) for a in arrays if a.dtype in _WIDE and a.size]
    return math.sqrt(max(squares, default=0.0))
