"""Differences at the border of a pooling: what counts there, and by how many numbers an average is divided."""

from collections.abc import Iterator, Mapping, Sequence

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.calls import text


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


def _body(site: MeantNode, begin: Sequence[int], end: Sequence[int], changed: Mapping[str, object]) -> str:
    """Return a pooling behind a Pad with zeros."""
    names = ("kernel_shape", "strides", "dilations", "ceil_mode")
    given = {name: site.attribute(name) for name in names if site.takes(name)}
    settings = ", ".join(f"{k}={text(value)}" for k, value in {**given, **changed}.items() if value is not None)
    both = [0, 0, *map(int, begin), 0, 0, *map(int, end)]
    return f"(x) => (y) {{ p = Constant<value_ints={both}>() l = Pad(x, p) y = {site.op_type}<{settings}>(l) }}"


POOLS: tuple[MeaningRow, ...] = (
    MeaningRow(("MaxPool",), _padded_with_zeros, since=11),
    MeaningRow(("AveragePool",), _divided_otherwise, since=11),
)
"""Poolings at the border."""
