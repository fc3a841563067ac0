"""Differences in LRN's window: which neighbours are counted with a number, and along which axis."""

from collections.abc import Iterator

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

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
