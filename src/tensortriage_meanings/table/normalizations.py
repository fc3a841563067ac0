"""Normalizations of rows, channels and groups: which mean, which spread, and where epsilon is added.

One grammar stands for all of them: numbers that are normalized together, what is subtracted from them, what they are
divided by, and the scale. A way changes one of these. BatchNormalization, whose statistics are stored, is elsewhere.
"""

import dataclasses
import math
from collections.abc import Iterator

from tensortriage_meanings.calls import formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

ROWS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
_ALL = (*ROWS, "InstanceNormalization", "GroupNormalization")
_UNCENTRED = ("RMSNormalization", "SimplifiedLayerNormalization")
_SCALE_BY_CHANNEL = 21
"""Opset from which a GroupNormalization has a scale by channel, not by group."""
_AXES_AS_INPUT = 18
"""Opset from which means and maxima take their axes as an input."""

_ROOT = "u = Add(v, e) w = Sqrt(u)"
_STEPS = "write the normalization in single steps, as it is meant"


@dataclasses.dataclass(frozen=True)
class _Normalized:
    """A normalization in single steps.

    Attributes:
        site: The node.
        count: How many numbers are normalized together.
        axes: Their axes in ``x``.
        grouped: Makes ``x`` of the node's input ``i0``.
        back: Makes ``r`` of the scaled ``t``, in the shape of the input.
        column: Shape of scale and shift beside ``x``, or beside ``r`` where they are applied behind; empty for theirs.
        behind: Whether scale and shift are applied behind `back`.
    """

    site: MeantNode
    count: int
    axes: list[int]
    grouped: str = "x = Identity(i0)"
    back: str = "r = Identity(t)"
    column: str = ""
    behind: bool = False

    @property
    def centred(self) -> bool:
        """Whether ONNX's operator subtracts the mean."""
        return self.site.op_type not in _UNCENTRED

    def body(self, *, centred: bool, spread: str = _ROOT, scale: str = "") -> str:
        """Return the body of a function.

        Args:
            centred: Whether the mean is subtracted.
            spread: Makes the divisor ``w`` of ``d``, what is divided, ``v``, the mean of its squares, ``e``, epsilon,
                and ``a``, the axes.
            scale: Makes another scale ``g`` of the node's, ``g0``.
        """
        names = [f"i{index}" for index, value in enumerate(self.site.node.inputs) if index and value is not None]
        wide = (
            f"k0 = Constant<value_ints={self.column}>() " + " ".join(f"n{n} = Reshape({n}, k0)" for n in names)
            if self.column
            else " ".join(f"n{n} = Identity({n})" for n in names)
        )
        even, scaled = ("t", "r") if self.behind else ("n", "n")
        applied = f"g0 = Identity(n{names[0]}) {scale or 'g = Identity(g0)'} s = Mul({scaled}, g) "
        applied += f"f = Add(s, n{names[1]})" if len(names) > 1 else "f = Identity(s)"
        ends = f"{self.back} {applied} y = Identity(f)" if self.behind else f"{applied} t = Identity(f) {self.back} "
        ends += "" if self.behind else "y = Identity(r)"
        return (
            f"{formal(self.site)} => (y) {{ {self.grouped} a = Constant<value_ints={self.axes}>() "
            f"e0 = Constant<value_float={self.site.attribute('epsilon')}>() e = CastLike(e0, i0) "
            + ("m = ReduceMean(x, a) d = Sub(x, m) " if centred else "d = Identity(x) ")
            + f"q = Mul(d, d) v = ReduceMean(q, a) {spread} {even} = Div(d, w) {wide} {ends} }}"
        )

    def way(self, words: str, *, centred: bool | None = None, spread: str = _ROOT, scale: str = "") -> Meaning:
        """Return the node with something else in one place."""
        own = self.centred if centred is None else centred
        return Meaning(
            words, body=self.body(centred=own, spread=spread, scale=scale), since=_AXES_AS_INPUT, cure=_STEPS
        )


def _ways(site: MeantNode) -> Iterator[Meaning]:
    """Yield what else may be subtracted, divided by, and multiplied with."""
    one, epsilon = _normalized(site), site.attribute("epsilon")
    if one is None or epsilon is None:
        return
    if epsilon:
        yield one.way(
            f"its epsilon ({epsilon:g}) were added to the root of the variance, not under it",
            spread="u = Sqrt(v) w = Add(u, e)",
        )
        yield one.way(
            f"its epsilon ({epsilon:g}) were multiplied by the square of the largest magnitude of what is normalized "
            "together (which is scaled to 1 before, and epsilon is not)",
            spread="z = Abs(d) p = ReduceMax(z, a) p2 = Mul(p, p) pe = Mul(p2, e) u = Add(v, pe) w = Sqrt(u)",
        )
    if one.centred:
        yield one.way("its mean were not subtracted, as in RMSNormalization", centred=False)
    else:
        yield one.way("its mean were subtracted before, as in LayerNormalization", centred=True)
    if one.count > 1:
        yield one.way(
            f"the variance were divided by {one.count - 1}, one less than there are numbers (unbiased), not by "
            f"{one.count}",
            spread=f"b0 = Constant<value_float={one.count / (one.count - 1)}>() b = CastLike(b0, v) vb = Mul(v, b) "
            "u = Add(vb, e) w = Sqrt(u)",
        )
    yield one.way("it divided by the variance, not by its root", spread="w = Add(v, e)")
    for words, op in {"1 were added to its scale": "Add", "1 were subtracted from its scale": "Sub"}.items():
        scale = f"o0 = Constant<value_float=1.0>() o = CastLike(o0, g0) g = {op}(g0, o)"
        yield one.way(f"{words} (weights that are stored as differences from 1)", scale=scale)


def _apart(site: MeantNode) -> Iterator[Meaning]:
    """Yield groups of channels that lie apart, where ONNX's lie next to each other."""
    shape, groups = site.shape(), site.attribute("num_groups")
    if shape is None or len(site.node.outputs) > 1 or not 1 < groups < shape[1]:
        return
    one = _groups(site, shape, groups, apart=True)
    yield one.way(
        f"channels of a group lay {groups} apart (channel c in group c % {groups}), not next to each other: its groups "
        "are taken across",
        centred=True,
    )


def _normalized(site: MeantNode) -> _Normalized | None:
    """Return the geometry of a normalization; None where it is not known, or it has other results."""
    shape = site.shape()
    if shape is None or len(site.node.outputs) > 1 or len(site.node.inputs) < 2:
        return None
    if site.op_type in ROWS:
        axis = site.attribute("axis")
        axis = (-1 if axis is None else axis) % len(shape)
        return _Normalized(site, math.prod(shape[axis:]), list(range(axis, len(shape))))
    if site.op_type == "InstanceNormalization":
        column = str([1, -1, *[1] * (len(shape) - 2)])
        return _Normalized(site, math.prod(shape[2:]), list(range(2, len(shape))), column=column)
    return _groups(site, shape, site.attribute("num_groups"))


def _groups(site: MeantNode, shape: tuple[int, ...], groups: int, *, apart: bool = False) -> _Normalized:
    count = math.prod(shape[1:]) // groups
    by_channel = site.opset >= _SCALE_BY_CHANNEL
    column = str([1, -1, *[1] * (len(shape) - 2)] if by_channel else [1, -1, 1, 1])
    sizes = [shape[0], shape[1] // groups, groups, -1] if apart else [shape[0], groups, shape[1] // groups, -1]
    turn = "Transpose<perm=[0,2,1,3]>" if apart else "Identity"
    return _Normalized(
        site, count, [2, 3],
        grouped=f"h0 = Constant<value_ints={sizes}>() h = Reshape(i0, h0) x = {turn}(h)",
        back=f"l = {turn}(t) j = Shape(i0) r = Reshape(l, j)", column=column, behind=by_channel,
    )  # fmt: skip


NORMALIZATIONS: tuple[MeaningRow, ...] = (
    MeaningRow(_ALL, _ways),
    MeaningRow(("GroupNormalization",), _apart),
)
