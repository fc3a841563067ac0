"""Differences in the windows of a pooling, at its border, and of LRN: what counts, and by how many it is divided."""

from collections.abc import Iterator, Mapping, Sequence

from tensortriage_meanings.calls import text
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode


def _padded_with_zeros(site: MeantNode) -> Iterator[Meaning]:
    """Yield a MaxPool whose border counts as 0, where ONNX leaves it out."""
    given = site.attribute("pads")
    if not given or not any(given) or len(site.node.outputs) > 1:
        return
    half = len(given) // 2
    yield Meaning(
        "the border counted as 0, which is not in the window by ONNX",
        body=_body(site, given[:half], given[half:], {}),
        cure="write a Pad with the number that the border is to be, and pads of 0",
    )


def _divided_otherwise(site: MeantNode) -> Iterator[Meaning]:
    """Yield an AveragePool whose windows at the end are divided by other numbers than those of ONNX."""
    shape, made, kernel = site.shape(), site.made(), site.attribute("kernel_shape")
    if shape is None or made is None or not kernel or site.text("auto_pad") not in ("", "NOTSET"):
        return
    rank = len(kernel)
    pads = site.attribute("pads") or [0] * (2 * rank)
    strides, dilations = (site.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    begin, end = list(pads[:rank]), list(pads[rank:])
    ends = [(size - 1) * step + (k - 1) * wide + 1
            for size, step, k, wide in zip(made[2:], strides, kernel, dilations, strict=True)]  # fmt: skip
    beyond = [max(last - b - size, 0) for last, b, size in zip(ends, begin, shape[2:], strict=True)]
    if beyond != end:
        yield Meaning(
            "every window were divided by the size of its kernel, also where ceil_mode lets it reach beyond the border",
            body=_body(site, begin, beyond, {"ceil_mode": 0}),
            cure="give pads that the windows fill, and ceil_mode=0",
        )
    if site.attribute("count_include_pad") and any(end):
        after = {"pads": [*[0] * rank, *end], "count_include_pad": 0}
        yield Meaning(
            "the end of its padding were not counted, as its begin is (count_include_pad)",
            body=_body(site, begin, [0] * rank, after),
            cure="write a Pad before it, and pads of 0",
        )
    rest = [max(after - before, 0) for before, after in zip(begin, end, strict=True)]
    if site.attribute("count_include_pad") and any(rest) and rest != end:
        counted = [after - more for after, more in zip(end, rest, strict=True)]
        after = {"pads": [*[0] * rank, *rest], "count_include_pad": 0}
        yield Meaning(
            "what its padding has more at the end than at the beginning were not counted: room for the windows of "
            "ceil_mode, which are divided by the elements that they have (count_include_pad)",
            body=_body(site, begin, counted, after),
            cure=f"give pads of {[*begin, *counted]} and ceil_mode=1",
        )


def _moved_into_the_picture(site: MeantNode) -> Iterator[Meaning]:
    """Yield a dilated pooling whose windows that begin in the padding begin at 0, step from there, and end as before.

    CUDA's kernel of ONNX Runtime did so (microsoft/onnxruntime#29637).
    """
    shape, made, kernel, dilations = (
        site.shape(), site.made(), site.attribute("kernel_shape"), site.attribute("dilations")
    )  # fmt: skip
    if shape is None or made is None or not kernel or not dilations or site.text("auto_pad") not in ("", "NOTSET"):
        return
    rank = len(kernel)
    pads, strides = site.attribute("pads") or [0] * (2 * rank), site.attribute("strides") or [1] * rank
    given = {"strides": strides, "dilations": dilations, "ceil_mode": site.attribute("ceil_mode")}
    for at, (wide, step) in enumerate(zip(dilations, strides, strict=True)):
        count, axis = min(-(-pads[at] // step), made[at + 2]), at + 2
        if wide < 2 or not count or len(site.node.outputs) > 1:
            continue
        ends = (number * step - pads[at] + (kernel[at] - 1) * wide + 1 for number in range(count))
        inner = [0 if place % rank == at else pad for place, pad in enumerate(pads)]
        firsts = "".join(
            f"q{number} = {_pool(site, {**given, 'kernel_shape': _with(kernel, at, -(-end // wide)), 'pads': inner})} "
            f"f{number} = Gather<axis={axis}>(q{number}, z) "
            for number, end in enumerate(ends)
        )
        yield Meaning(
            f"windows that begin in the padding of axis {axis} began at index 0, and stepped by its dilation to other "
            "elements from there",
            body=f"(x) => (y) {{ z = Constant<value_ints=[0]>() {firsts}"
            f"r = {_pool(site, {**given, 'kernel_shape': kernel, 'pads': pads})} n = Constant<value_ints=[{count}]>() "
            f"e = Constant<value_ints=[{made[axis]}]>() a = Constant<value_ints=[{axis}]>() l = Slice(r, n, e, a) "
            f"y = Concat<axis={axis}>({', '.join(f'f{number}' for number in range(count))}, l) }}",
            cure="write a Pad with the lowest number of the type before it, and pads of 0",
        )


def _with(sizes: Sequence[int], at: int, size: int) -> list[int]:
    return [size if place == at else each for place, each in enumerate(sizes)]


def _pool(site: MeantNode, attributes: Mapping[str, object]) -> str:
    return f"{site.op_type}<{', '.join(f'{name}={text(value)}' for name, value in attributes.items())}>(x)"


def _body(site: MeantNode, begin: Sequence[int], end: Sequence[int], changed: Mapping[str, object]) -> str:
    """Return a pooling behind a Pad with zeros."""
    names = ("kernel_shape", "strides", "dilations", "ceil_mode")
    given = {name: site.attribute(name) for name in names if site.takes(name)}
    settings = ", ".join(f"{k}={text(value)}" for k, value in {**given, **changed}.items() if value is not None)
    both = [0, 0, *map(int, begin), 0, 0, *map(int, end)]
    return f"(x) => (y) {{ p = Constant<value_ints={both}>() l = Pad(x, p) y = {site.op_type}<{settings}>(l) }}"


POOLS: tuple[MeaningRow, ...] = (
    MeaningRow(("MaxPool",), _padded_with_zeros, since=11),
    MeaningRow(("MaxPool",), _moved_into_the_picture, since=12),
    MeaningRow(("AveragePool",), _divided_otherwise, since=11),
)
"""Poolings at the border."""


_CURE = "write the normalization out: squares, AveragePool or ReduceSum over the window, Pow and Div"


def _windows(site: MeantNode) -> Iterator[Meaning]:
    """Yield an LRN with another window; it counts ``size`` channels around each."""
    size, rank = site.attribute("size"), site.rank()
    if size is None or rank is None or rank < 3:
        return
    attributes = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    alpha, beta, bias = (float(site.attribute(name) or other) for name, other in attributes.items())
    lrn = f"LRN<size={size}, alpha={alpha!r}, beta={beta!r}, bias={bias!r}>"
    given = (
        f"b0 = Constant<value_float={bias!r}>() b = CastLike(b0, x) "
        f"e0 = Constant<value_float={beta!r}>() e = CastLike(e0, x) "
    )
    yield Meaning(
        "only as many channels as its input has rows (axis 0) had neighbours, and no sum of squares were added to bias "
        "in the others (a loop over the batch where one over the channels is meant)",
        body=f"(x) => (y) {{ r = {lrn}(x) {given}p = Pow(b, e) q = Div(x, p) h = Shape(x) "
        "z = Constant<value_ints=[0]>() o = Constant<value_ints=[1]>() n = Gather(h, z) c = Gather(h, o) m = Min(n, c) "
        "u = Slice(r, z, m, o) v = Slice(q, m, c, o) y = Concat<axis=1>(u, v) }",
        since=13,
        cure=_CURE,
    )
    yield Meaning(
        "no neighbouring channels were counted, each its own square alone",
        attributes={"size": 1, "alpha": alpha / size},
        cure=_CURE,
    )
    back = [1, 0, *range(2, rank)]
    yield Meaning(
        "its window ran over the batch (axis 0), not over the channels",
        body=f"(x) => (y) {{ t = Transpose<perm={back}>(x) r = {lrn}(t) y = Transpose<perm={back}>(r) }}",
        cure=_CURE,
    )
    last = [0, rank - 1, *range(2, rank - 1), 1]
    yield Meaning(
        f"its window ran over the last axis ({rank - 1}), as for NHWC data, not over the channels",
        body=f"(x) => (y) {{ t = Transpose<perm={last}>(x) r = {lrn}(t) y = Transpose<perm={last}>(r) }}",
        cure=_CURE,
    )
    if rank == 4:
        before, behind = (size - 1) // 2, size // 2
        pool = f"kernel_shape=[{size}, {size}], pads=[{before}, {before}, {behind}, {behind}], count_include_pad=1"
        yield Meaning(
            "its window ran over the pixels of a channel (Caffe's WITHIN_CHANNEL), not over the channels",
            body=f"(x) => (y) {{ s = Mul(x, x) a = AveragePool<{pool}>(s) {given}"
            f"k0 = Constant<value_float={alpha!r}>() k = CastLike(k0, x) "
            "d = Mul(a, k) f = Add(d, b) g = Pow(f, e) y = Div(x, g) }",
            cure=_CURE,
        )


NEIGHBOURS: tuple[MeaningRow, ...] = (MeaningRow(("LRN",), _windows),)
"""LRN, a pooling of squares over channels."""
