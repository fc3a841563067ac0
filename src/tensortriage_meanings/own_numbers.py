"""Is an op's result off by a factor that is a number of its own? The elements of its window, a root of its width.

A mean for a sum, an average taken twice, a scale that is left out or used twice: the factor of the error is then a
number that stands in the op's attributes, constants or shapes, or that quantizers and pictures are made with.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

EXACT = 1e-4
"""Relative uncertainty of a measured factor up to which it is compared with numbers: of about fifty numbers and roots,
spread over the nine e-folds from 1/100 to 100, one agrees by chance with one factor in a thousand."""
_ERRORS = 4.0
"""Standard errors within which a factor is a number."""
_ROUNDED = 2.0**-22
"""Least relative uncertainty: two roundings of float32, the number's and the product's."""
_FEWEST = 8
"""Elements from which on a factor is measured."""
_LEAST_ROOTED = 4.0
"""Up to this a root is none: every doubling would be that of 4."""

_POOLS = ("AveragePool", "LpPool", "MaxPool")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "GlobalAveragePool",
               "GlobalLpPool")  # fmt: skip
_NORMALIZATIONS = ("LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization",
                   "MeanVarianceNormalization", "LpNormalization")  # fmt: skip
_COMMON = ((255.0, "the largest uint8 number"), (127.5, "half of the largest uint8 number"), (256.0, "2^8"),
           (127.0, "the largest int8 number"), (128.0, "2^7"), (65535.0, "the largest uint16 number"),
           (32767.0, "the largest int16 number"), (math.log(2.0), "ln 2"), (math.log(10.0), "ln 10"),
           (math.pi / 180.0, "radians of a degree"))  # fmt: skip

Tensors = Mapping[str, np.ndarray]


def factor_rows(ours: Tensors, theirs: Tensors) -> tuple[MeaningRow, ...]:
    """Return a row of the ops whose result in ``theirs`` is that in ``ours`` times a number of their own."""
    factors = {name: found for name, array in theirs.items() if (found := factor(ours.get(name), array))}

    def ways(site: MeantNode) -> Iterator[Meaning]:
        result = site.node.outputs[0].name or ""
        if result not in factors or len(site.node.outputs) != 1 or site.node.domain:
            return
        if any(one.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for one in site.node.attributes.values()):
            return
        for number, words in named_numbers(site):
            if (meaning := _as(site, number, words, *factors[result])) is not None:
                yield meaning

    return (MeaningRow((), ways),) if factors else ()


def factor(ours: np.ndarray | None, theirs: np.ndarray, *, fewest: int = _FEWEST) -> tuple[float, float] | None:
    """Return the factor between two tensors and its relative uncertainty; None where there is none, or it is 1.

    The uncertainty is that of the slope of a least-squares line through 0: the standard deviation of what is left,
    divided by the root of the sum of squares of ``ours``.

    Args:
        ours: The right result.
        theirs: The other one.
        fewest: Elements from which on it is measured.
    """
    if ours is None or ours.shape != theirs.shape or not (ours.dtype.kind == theirs.dtype.kind == "f"):
        return None
    x, y = ours.astype(np.float64).reshape(-1), theirs.astype(np.float64).reshape(-1)
    square = float(np.dot(x, x))
    if x.size < fewest or not 0.0 < square < math.inf or not np.isfinite(y).all():
        return None
    slope = float(np.dot(x, y)) / square
    if slope == 0.0:
        return None
    left = y - slope * x
    uncertain = math.sqrt(float(np.dot(left, left)) / (x.size - 1) / square) / abs(slope)
    uncertain = max(_ERRORS * uncertain, _ROUNDED)
    return (slope, uncertain) if uncertain <= EXACT and abs(slope - 1.0) > uncertain else None


def named_numbers(site: MeantNode) -> Iterator[tuple[float, str]]:
    """Yield the numbers of an op with their meaning, its own ones first."""
    yield from _sizes(site)
    for name, attribute in site.node.attributes.items():
        if attribute.type in (ir.AttributeType.FLOAT, ir.AttributeType.INT) and name not in ("axis", "to"):
            yield float(attribute.value), f"its {name}"
    for index in range(len(site.node.inputs)):
        array = site.constant(index)
        if array is not None and array.size and array.dtype.kind == "f" and (array == array.reshape(-1)[0]).all():
            value = site.node.inputs[index]
            yield float(array.reshape(-1)[0]), f"its operand '{value.name if value is not None else index}'"
    yield from _COMMON


def _sizes(site: MeantNode) -> Iterator[tuple[float, str]]:
    shape, made = site.shape(), site.made()
    if site.op_type in _POOLS and (window := site.attribute("kernel_shape")):
        yield float(math.prod(window)), f"the number of elements of its window ({_product(window)})"
    if site.op_type in _REDUCTIONS and shape and made and math.prod(made):
        yield math.prod(shape) / math.prod(made), "the number of elements that it reduces to one"
    if site.op_type in _NORMALIZATIONS and shape and (count := _normalized(site, shape)) > 1:
        yield float(count), "the number of elements that it normalizes together"
        yield count / (count - 1), f"{count} / {count - 1}, the correction of an unbiased variance"
    if site.op_type in ("MatMul", "Gemm") and shape:
        axis = -2 if site.op_type == "Gemm" and site.attribute("transA") else -1
        yield float(shape[axis]), "the number of products that each of its results sums up"
    if site.op_type in ("Conv", "ConvTranspose") and (weight := site.shape(1)):
        yield float(math.prod(weight[1:])), f"the number of products that each of its results sums up {weight[1:]}"
        yield float(math.prod(weight[2:])), f"the number of elements of its kernel ({_product(weight[2:])})"


def _normalized(site: MeantNode, shape: Sequence[int]) -> int:
    if site.op_type == "InstanceNormalization":
        return math.prod(shape[2:])
    if site.op_type == "GroupNormalization":
        return math.prod(shape[1:]) // int(site.attribute("num_groups") or 1)
    axis = site.attribute("axis")
    return math.prod(shape[axis:]) if isinstance(axis, int) else 0


def _product(sizes: Sequence[int]) -> str:
    return " x ".join(str(size) for size in sizes)


def _as(site: MeantNode, number: float, words: str, slope: float, uncertain: float) -> Meaning | None:
    """Return a way in which a result is multiplied or divided by a number or its root; None where that is not it."""
    if number <= 0.0 or number == 1.0:
        return None
    for power in (1.0, -1.0, 0.5, -0.5):
        value = number**power
        if abs(slope / value - 1.0) > uncertain or (abs(power) < 1.0 and number <= _LEAST_ROOTED):
            continue
        how = "multiplied" if power > 0 else "divided"
        what = f"{number:.6g}" + (f", {words}" if words else "")
        root = "the root of " if abs(power) < 1.0 else ""
        return Meaning(
            f"its result were {how} by {root}{what}",
            body=_times(site.node, value),
            cure=f"put a Mul by {value:.6g} behind it",
        )
    return None


def _times(node: ir.Node, value: float) -> str:
    """Return the body of a node, and of a product with its result."""
    proto = ir.to_proto(node)
    assert isinstance(proto, onnx.NodeProto)
    names = [f"v{index}" for index in range(len(proto.input))]
    del proto.output[:]
    proto.output.append("m")
    proto.input[:] = [name if given else "" for name, given in zip(names, proto.input, strict=True)]
    for field in ("name", "doc_string"):
        proto.ClearField(field)
    del proto.metadata_props[:]
    text = onnx.printer.to_text(proto)
    return (
        f"({', '.join(names)}) => (y) {{ {text} f0 = Constant<value_float={value!r}>() f = CastLike(f0, m) "
        "y = Mul(m, f) }"
    )
