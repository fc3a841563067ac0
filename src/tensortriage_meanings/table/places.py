"""Differences of place: the order in which elements come, and those that a smaller operand reaches.

Each is written as a body, as in `tensortriage_meanings.table.bodies`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import BROADCASTING, Meaning, MeaningRow, MeantNode


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


def _along_another_axis(site: MeantNode) -> Iterator[Meaning]:
    """Yield an operand of fewer axes that meets others than the last ones, as the first in older frameworks."""
    made = site.made()
    for index in range(len(site.node.inputs)):
        shape = site.shape(index)
        if made is None or shape is None or max(shape, default=1) < 2 or len(shape) > len(made):
            continue
        now = (*[1] * (len(made) - len(shape)), *shape)
        for other in _placed(now, made):
            yield Meaning(
                f"its input {site.input_name(index)} {list(shape)} lay {_along(other)}, not {_along(now)}",
                body=f"{formal(site)} => (y) {{ s = Constant<value_ints={list(other)}>() "
                f"r = Reshape(i{index}, s) y = {call(site, {index: 'r'})} }}",
                cure="reshape that input to as many axes as the other, with sizes of 1",
            )


def _placed(now: Sequence[int], made: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the other places of the axes between the first and the last that are not 1, from the first place on."""
    wide = [axis for axis, size in enumerate(now) if size > 1]
    block = tuple(now[wide[0] : wide[-1] + 1])
    for first in range(len(made) - len(block) + 1):
        other = (*[1] * first, *block, *[1] * (len(made) - first - len(block)))
        if other != tuple(now) and all(size in (1, wanted) for size, wanted in zip(other, made, strict=True)):
            yield other


def _along(sizes: Sequence[int]) -> str:
    wide = [axis for axis, size in enumerate(sizes) if size > 1]
    return f"along axis {wide[0]}" if len(wide) == 1 else f"along axes {wide[0]} to {wide[-1]}"


def _transposed(site: MeantNode) -> Iterator[Meaning]:
    """Yield an operand with its last two axes exchanged, where they have one size."""
    for index in range(len(site.node.inputs)):
        shape = site.shape(index)
        if shape is None or len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            continue
        perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        what = "its weight" if site.constant(index) is not None else f"its input {site.input_name(index)}"
        yield Meaning(
            f"{what} were transposed",
            body=f"{formal(site)} => (y) {{ t = Transpose<perm={perm}>(i{index}) y = {call(site, {index: 't'})} }}",
            cure=f"transpose {what.removeprefix('its ')} before it",
        )


def _heads_in_turn(site: MeantNode) -> Iterator[Meaning]:
    """Yield an Attention whose heads of keys are repeated in turn, where each serves neighbouring heads of queries."""
    queries, keys, rank = site.attribute("q_num_heads"), site.attribute("kv_num_heads"), site.rank()
    if rank == 4:
        shapes = site.shape(0), site.shape(1)
        queries, keys = (None if shape is None else shape[1] for shape in shapes)
    if not queries or not keys or keys == 1 or queries % keys or queries == keys:
        return
    axis = 1 if rank == 4 else 2
    made = ", ".join(f"y{index}" for index in range(len(site.node.outputs)))
    parts = " ".join(f"k{i} = Concat<axis={axis}>({', '.join([f'i{i}'] * (queries // keys))})" for i in (1, 2))
    text = call(site, {1: "k1", 2: "k2"}).replace(f"kv_num_heads={keys}", f"kv_num_heads={queries}")
    yield Meaning(
        f"head n of the queries took head n modulo {keys} of the keys, not that of its group of {queries // keys}",
        body=f"{formal(site)} => ({made}) {{ {parts} {made} = {text} }}",
        cure="repeat keys and values before it (Unsqueeze, Expand, Reshape)",
    )


def _begins_elsewhere(site: MeantNode) -> Iterator[Meaning]:
    """Yield a Slice along one axis that begins elsewhere, of the same size: at 0, or next to where it should."""
    shape, made, start, axis = site.shape(), site.made(), site.constant(1), site.constant(3)
    if (
        shape is None
        or made is None
        or start is None
        or start.size != 1
        or axis is None
        or site.constant(4) is not None
    ):
        return
    along = int(axis.reshape(-1)[0]) % len(shape)
    now = int(start.reshape(-1)[0])
    begin, size = now + shape[along] if now < 0 else now, made[along]
    for other in dict.fromkeys((0, begin - 1, begin + 1, shape[along] - size)):
        if other != begin and 0 <= other <= shape[along] - size:
            operands = {index: np.full_like(start, value) for index, value in ((1, other), (2, other + size))}
            yield Meaning(f"it began at {other}, not at {begin} (starts {now})", operands=operands)


def _in_turn(site: MeantNode) -> Iterator[Meaning]:
    """Yield a Tile that repeats each element next to itself (PyTorch's repeat_interleave), not all of them in turn."""
    shape, repeats = site.shape(), site.constant(1)
    axes = [] if repeats is None else np.flatnonzero(repeats.reshape(-1) > 1).tolist()
    if shape is None or len(axes) != 1 or shape[axes[0]] == 1:
        return
    axis, times = axes[0], int(np.asarray(repeats).reshape(-1)[axes[0]])
    places = np.repeat(np.arange(shape[axis]), times).tolist()
    yield Meaning(
        f"each index of axis {axis} were repeated next to itself (as PyTorch's repeat_interleave), not all in turn",
        body=f"(x, r) => (y) {{ i = Constant<value_ints={places}>() y = Gather<axis={axis}>(x, i) }}",
        cure="write Unsqueeze, Expand and Reshape where each is to be next to itself",
    )


def _from_the_end(site: MeantNode) -> Iterator[Meaning]:
    """Yield negative indices that are not counted from the end."""
    if site.kind(1) != "i" or ((given := site.constant(1)) is not None and given.size and given.min() >= 0):
        return
    yield Meaning(
        f"negative indices were taken as 0, not counted from the end as ONNX's {site.op_type} does",
        body=f"{formal(site)} => (y) {{ z = Sub(i1, i1) n = Less(i1, z) j = Where(n, z, i1) "
        f"y = {call(site, {1: 'j'})} }}",
        cure="give indices from 0 on",
    )


PLACES: tuple[MeaningRow, ...] = (
    MeaningRow(("MatMul", "Einsum", "Attention", *BROADCASTING), _transposed),
    MeaningRow(("Attention",), _heads_in_turn),
    MeaningRow(("Slice",), _begins_elsewhere, since=10),
    MeaningRow(("Tile",), _in_turn),
    MeaningRow(("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"), _from_the_end, since=10),
    MeaningRow(("SpaceToDepth",), _by_channel),
    MeaningRow(("Add", "Sub", "Mul", "Div"), _first_alone, since=10),
    MeaningRow(("Flatten", "Reshape"), _channels_last),
    MeaningRow(BROADCASTING, _along_another_axis, since=10),
)
"""Other orders of elements, and operands that reach some of them."""
