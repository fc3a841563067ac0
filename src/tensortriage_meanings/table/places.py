"""Differences of place: the order in which elements come, and those that a smaller operand reaches.

Each is written as a body, as in `tensortriage_meanings.table.bodies`.
"""

from collections.abc import Iterator

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode


def _channels_last(site: MeantNode) -> Iterator[Meaning]:
    """Yield a flattening of the elements in the order of a layout with channels last."""
    shape, made = site.shape(), site.made()
    if shape is not None and len(shape) > 2 and (site.op_type == "Flatten" or (made and len(made) < len(shape))):
        perm = [0, *range(2, len(shape)), 1]
        operands = "x" if site.op_type == "Flatten" else "x, s"
        axis = f"<axis={site.attribute('axis')}>" if site.op_type == "Flatten" else ""
        given = operands.replace("x", "t")
        yield Meaning(
            "channels came last in the order of elements, not first",
            body=f"({operands}) => (y) {{ t = Transpose<perm={perm}>(x) y = {site.op_type}{axis}({given}) }}",
            cure="transpose before it, or reorder the columns of the weight behind it",
        )


def _by_channel(site: MeantNode) -> Iterator[Meaning]:
    """Yield a SpaceToDepth whose result has the pixels of a block next to each other, as PyTorch's pixel_unshuffle."""
    shape, size = site.shape(), site.attribute("blocksize")
    if shape is None or len(shape) != 4 or not size or shape[1] == 1:
        return
    yield Meaning(
        "the pixels of a block came within each channel (as PyTorch's pixel_unshuffle), not the channels within each "
        "pixel of a block",
        body=f"(x) => (y) {{ d = SpaceToDepth<blocksize={size}>(x) s = Shape(d) "
        f"r = Constant<value_ints=[0, {size * size}, {shape[1]}, -1]>() b = Reshape(d, r) "
        "t = Transpose<perm=[0, 2, 1, 3]>(b) y = Reshape(t, s) }",
        cure="reorder the input channels of the weight behind it, or write Reshape, Transpose and Reshape",
    )


def _first_alone(site: MeantNode) -> Iterator[Meaning]:
    """Yield a sum, or another function of two operands, whose smaller one reaches the first of its repetitions only."""
    shapes = (site.shape(0), site.shape(1))
    for large, small in ((0, 1), (1, 0)):
        wide, narrow = shapes[large], shapes[small]
        if (
            wide is None
            or narrow is None
            or site.made() != wide
            or len(narrow) > len(wide)
            or max(narrow, default=1) < 2
        ):
            continue
        sizes = (*[1] * (len(wide) - len(narrow)), *narrow)
        axis = next((axis for axis, (n, size) in enumerate(zip(sizes, wide, strict=True)) if n == 1 < size), None)
        if axis is None or max(sizes) < 2:
            continue
        operands = ("f", "b") if small else ("a", "f")
        yield Meaning(
            f"operand {small} were broadcast to the first index of axis {axis} alone, and the others left as they are",
            body=f"(a, b) => (y) {{ x = Constant<value_ints=[{axis}]>() z = Constant<value_ints=[0]>() "
            f"o = Constant<value_ints=[1]>() e = Constant<value_ints=[{wide[axis]}]>() "
            f"f = Slice({'ab'[large]}, z, o, x) r = Slice({'ab'[large]}, o, e, x) "
            f"s = {site.op_type}({', '.join(operands)}) y = Concat<axis={axis}>(s, r) }}",
            cure="write an Expand of that operand to the shape of the other before it",
        )


PLACES: tuple[MeaningRow, ...] = (
    MeaningRow(("SpaceToDepth",), _by_channel),
    MeaningRow(("Add", "Sub", "Mul", "Div"), _first_alone, since=10),
    MeaningRow(("Flatten", "Reshape"), _channels_last),
)
"""Other orders of elements, and operands that reach some of them."""
