"""Differences whose body depends on the shapes, the axes or the neighbours of the node; see `bodies`."""

from collections.abc import Iterator

import numpy as np

from tensortriage_meanings.site import Meaning, MeantNode


def flattened(site: MeantNode) -> Iterator[Meaning]:
    """Yield the Softmax of before opset 13 where it is a later one, and the later one where it is that of before."""
    axis, rank = site.attribute("axis"), site.rank()
    if rank is None or axis is None:
        return
    axis %= rank
    op, last = site.op_type, rank - 1
    upgrade = "raise the opset with onnx.version_converter, not by its number alone"
    if site.opset >= 13 and axis < last:
        yield Meaning(
            f"all axes from axis {axis} on were one, as before opset 13, not axis {axis} alone",
            body=f"(x) => (y) {{ s = Shape(x) f = Flatten<axis={axis}>(x) r = {op}<axis=1>(f) y = Reshape(r, s) }}",
            cure=upgrade,
        )
    elif site.opset < 13 and axis < last:
        perm = [*(each for each in range(rank) if each != axis), axis]
        back = np.argsort(perm).tolist()
        yield Meaning(
            f"it ran along axis {axis} alone, as from opset 13 on, not along all axes from axis {axis} on flattened "
            "into one",
            body=f"(x) => (y) {{ t = Transpose<perm={perm}>(x) r = {op}<axis={last}>(t) "
            f"y = Transpose<perm={back}>(r) }}",
            cure=upgrade,
        )


def padded_with_zeros(site: MeantNode) -> Iterator[Meaning]:
    """Yield a MaxPool whose border counts as 0, where ONNX leaves it out."""
    given = site.attribute("pads")
    if not given or not any(given) or len(site.node.outputs) > 1:
        return
    half = len(given) // 2
    both = [0, 0, *given[:half], 0, 0, *given[half:]]
    kept = {name: site.attribute(name) for name in ("kernel_shape", "strides", "dilations", "ceil_mode")}
    settings = ", ".join(
        f"{name}={list(v) if isinstance(v, list | tuple) else v}" for name, v in kept.items() if v is not None
    )
    yield Meaning(
        "the border counted as 0, which is not in the window by ONNX",
        body=f"(x) => (y) {{ p = Constant<value_ints={both}>() l = Pad(x, p) y = MaxPool<{settings}>(l) }}",
        cure="write a Pad with the number that the border is to be, and pads of 0",
    )


def channels_last(site: MeantNode) -> Iterator[Meaning]:
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


def by_batch(site: MeantNode) -> Iterator[Meaning]:
    """Yield a BatchNormalization by the statistics of its own batch."""
    rank, epsilon = site.rank(), site.attribute("epsilon")
    if rank is None or site.attribute("training_mode"):
        return
    axes = [0, *range(2, rank)]
    column = [1, -1, *[1] * (rank - 2)]
    yield Meaning(
        "it took mean and variance of its own batch, as in training, not those that are stored",
        body=f"(x, g, b, m, v) => (y) {{ a = Constant<value_ints={axes}>() c = Constant<value_ints={column}>() "
        "mean = ReduceMean(x, a) d = Sub(x, mean) q = Mul(d, d) var = ReduceMean(q, a) "
        f"e0 = Constant<value_float={epsilon}>() e = CastLike(e0, x) w = Add(var, e) s = Sqrt(w) n = Div(d, s) "
        "gg = Reshape(g, c) bb = Reshape(b, c) r = Mul(n, gg) y = Add(r, bb) }",
        since=18,
        cure="put the network into evaluation mode (model.eval()) before it is run or exported",
    )


def unbiased(site: MeantNode) -> Iterator[Meaning]:
    """Yield a mean of squares that is divided by one less than their number."""
    square = site.made_by("Mul", "Pow")
    shape, made = site.shape(), site.made()
    if (
        square is None
        or shape is None
        or made is None
        or (square.op_type == "Mul" and square.inputs[0] is not square.inputs[1])
    ):
        return
    count = int(np.prod(shape)) // max(int(np.prod(made)), 1)
    if count < 2:
        return
    settings = f"<axes={list(site.attribute('axes') or ())}, keepdims={site.attribute('keepdims')}>"
    if site.takes("axes") is False:
        settings = f"<keepdims={site.attribute('keepdims')}>"
    operands = ", ".join(f"v{i}" for i in range(len(site.node.inputs)))
    yield Meaning(
        f"the variance were divided by {count - 1}, one less than there are numbers (unbiased), not by {count}",
        body=f"({operands}) => (y) {{ m = {site.op_type}{settings}({operands}) "
        f"f0 = Constant<value_float={count / (count - 1)}>() f = CastLike(f0, m) y = Mul(m, f) }}",
        cure="give the same correction on both sides (unbiased, ddof)",
    )
