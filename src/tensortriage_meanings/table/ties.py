"""Choices between equals that ONNX leaves open: nobody is wrong who makes another one."""

from collections.abc import Iterator

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode


def _last_box_first(site: MeantNode) -> Iterator[Meaning]:
    """Yield a NonMaxSuppression of boxes and scores backwards, whose indices are counted back.

    The operator is defined by descending scores alone; TensorRT and OpenVINO sort on a GPU without a stable order.
    """
    if len(site.node.inputs) < 2 or None in site.node.inputs:
        return
    operands = [f"v{index}" for index in range(len(site.node.inputs))]
    rest = "".join(f", {name}" for name in operands[2:])
    yield Meaning(
        "of boxes with equal scores the last one came first",
        body=f"({', '.join(operands)}) => (y) {{ e = Constant<value_ints=[-1]>() "
        "f = Constant<value_ints=[-9223372036854775807]>() o = Constant<value_ints=[1]>() "
        "t = Constant<value_ints=[2]>() p = Constant<value_ints=[0, 1]>() b = Slice(v0, e, f, o, e) "
        "s = Slice(v1, e, f, t, e) "
        f"n = NonMaxSuppression<center_point_box={site.attribute('center_point_box') or 0}>(b, s{rest}) "
        "h = Shape(v1) l = Gather(h, t) a = Sub(l, o) c = Gather<axis=1>(n, t) i = Sub(a, c) "
        "w = Gather<axis=1>(n, p) y = Concat<axis=1>(w, i) }",
        since=11,
        cure="no cure is needed; for one order everywhere, make scores differ, or compare boxes and scores as sets",
        is_open=True,
    )


TIES = (MeaningRow(("NonMaxSuppression",), _last_box_first),)
