"""Differences in an attribute: other values in its place."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

Values = Mapping[str, Sequence[Any]]

_COORDINATES = ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
_NEAREST = ("floor", "round_prefer_floor", "round_prefer_ceil", "ceil")
_EPSILONS = (1e-5, 1e-3, 1e-6, 1e-12, 1e-8, 1e-7, 1e-4, 1e-10, 1e-2, 0.0)
_REDUCTIONS = ("none", "add", "mul", "max", "min")
_SWITCH = (0, 1)


def attributes(*ops: str, only: Mapping[str, Any] | None = None, since: int = 0, **values: Sequence[Any]) -> MeaningRow:
    """Return a row of attributes that are understood in several ways, single ones before several together.

    Args:
        ops: The operators.
        only: Required values of other attributes for the row to apply.
        since: As of `MeaningRow`.
        values: By attribute, its values elsewhere, the likeliest first.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        if any(_plain(site.attribute(name)) != value for name, value in (only or {}).items()):
            return
        known = {name: each for name, each in values.items() if site.takes(name)}
        choices = [[(name, value) for value in (None, *each)] for name, each in known.items()]
        combinations = [[(n, v) for n, v in one if v is not None] for one in itertools.product(*choices)]
        for one in sorted(combinations, key=len):
            changes = {name: value for name, value in one if not _alike(site.attribute(name), value)}
            if one and len(changes) == len(one):
                yield Meaning(_words(site, changes), attributes=changes)

    return MeaningRow(ops, ways, since)


def _words(site: MeantNode, changes: Mapping[str, Any]) -> str:
    told = (f"{name} were {shown(value)}, not {shown(site.attribute(name))}" for name, value in changes.items())
    return " and ".join(told)


def shown(value: Any) -> str:
    """Return an attribute's value as it stands in words."""
    value = _plain(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(shown, value))}]"
    return f"{value:g}" if isinstance(value, float) else "[...]" if value is None else str(value)


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _alike(given: Any, value: Any) -> bool:
    if isinstance(value, float) and isinstance(given, int | float):
        return bool(np.isclose(given, value, rtol=1e-4, atol=0.0))
    return bool(_plain(given) == value)


def axes(*ops: str, attribute: str = "axis") -> MeaningRow:
    """Return a row of an axis that others take for another one: the last, the second, or any."""

    def ways(site: MeantNode) -> Iterator[Meaning]:
        rank, given = site.rank(), site.attribute(attribute)
        if rank is None or given is None:
            return
        for axis in dict.fromkeys((rank - 1, 1, *range(rank))):
            if 0 <= axis < rank and axis != given % rank:
                yield Meaning(f"{attribute} were {axis}, not {given % rank}", attributes={attribute: axis})

    return MeaningRow(ops, ways)


def pads(*ops: str) -> MeaningRow:
    """Return a row of padding elsewhere: at the other end of an axis, one more or less, or read as pairs by axis.

    WebNN's are begin and end of each axis in turn, PyTorch's as well, the last axis first.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        if site.text("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
            other = "SAME_LOWER" if site.text("auto_pad") == "SAME_UPPER" else "SAME_UPPER"
            yield Meaning(f"auto_pad were {other}, not {site.text('auto_pad')}", attributes={"auto_pad": other})
            return
        given = [int(each) for each in site.attribute("pads") or ()]
        if not any(given):
            return
        half = len(given) // 2
        begin, end = np.array(given[:half]), np.array(given[half:])
        moves: Sequence[tuple[Any, Any]] = (
            (end, begin),
            (begin - 1, end),
            (begin - 1, end + 1),
            (begin, end - 1),
            (begin + 1, end - 1),
            (begin[::-1], end[::-1]),
            (np.array(given[::2]), np.array(given[1::2])),
            (np.array(given[-2::-2]), np.array(given[::-2])),
        )
        for first, last in moves:
            moved = [*map(int, first), *map(int, last)]
            if min(moved) >= 0 and moved != given:
                yield Meaning(f"pads were {moved}, not {given}", attributes={"pads": moved})

    return MeaningRow(ops, ways)


def perms() -> MeaningRow:
    """Return a row of a Transpose that moves axes the other way round, at the same sizes."""

    def ways(site: MeantNode) -> Iterator[Meaning]:
        perm, shape = site.attribute("perm"), site.shape()
        if not perm or shape is None:
            return
        made = [shape[axis] for axis in perm]
        tried = [
            list(np.argsort(perm)),
            [*perm[:-2], perm[-1], perm[-2]],
            [0, *range(2, len(perm)), 1],
            *itertools.islice(itertools.permutations(range(len(perm))), 120),
        ]
        for other in dict.fromkeys(tuple(map(int, each)) for each in tried):
            if (
                sorted(other) == list(range(len(perm)))
                and other != tuple(perm)
                and [shape[axis] for axis in other] == made
            ):
                yield Meaning(f"perm were {list(other)}, not {list(perm)}", attributes={"perm": list(other)})

    return MeaningRow(("Transpose",), ways)


def _undivided(site: MeantNode) -> Iterator[Meaning]:
    """Yield an LRN whose alpha is not divided by its size: TensorFlow's and Core ML's are not."""
    alpha, size = site.attribute("alpha"), site.attribute("size")
    for words, other in {"not divided by its size": alpha * size, "divided by its size twice": alpha / size}.items():
        yield Meaning(f"its alpha were {words} (alpha {other:g}, not {alpha:g})", attributes={"alpha": other})


ATTRIBUTES: tuple[MeaningRow, ...] = (
    attributes(
        "Resize",
        "Upsample",
        only={"mode": "linear"},
        since=11,
        coordinate_transformation_mode=_COORDINATES,
        antialias=_SWITCH,
    ),
    attributes(
        "Resize",
        "Upsample",
        only={"mode": "nearest"},
        since=11,
        coordinate_transformation_mode=_COORDINATES,
        nearest_mode=_NEAREST,
    ),
    attributes(
        "Resize",
        only={"mode": "cubic"},
        since=11,
        coordinate_transformation_mode=_COORDINATES,
        cubic_coeff_a=(-0.5, -0.75),
        antialias=_SWITCH,
        exclude_outside=_SWITCH,
    ),
    attributes("Resize", "Upsample", since=11, mode=("nearest", "linear", "cubic")),
    attributes("AveragePool", count_include_pad=_SWITCH, ceil_mode=_SWITCH),
    attributes("MaxPool", "LpPool", ceil_mode=_SWITCH),
    pads("AveragePool", "MaxPool", "Conv", "ConvTranspose", "LpPool", "ConvInteger", "QLinearConv"),
    attributes("Pad", mode=("constant", "reflect", "edge", "wrap")),
    attributes(
        "BatchNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "GroupNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        epsilon=_EPSILONS,
    ),
    axes("LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization"),
    attributes("Gelu", approximate=("tanh", "none")),
    attributes(
        "GridSample",
        align_corners=_SWITCH,
        padding_mode=("zeros", "border", "reflection"),
        mode=("bilinear", "linear", "nearest", "bicubic", "cubic"),
    ),
    attributes("LeakyRelu", "ThresholdedRelu", alpha=(0.01, 0.1, 0.2, 0.3, 0.05, 0.02, 0.25, 0.5, 0.0, 1.0)),
    attributes("Elu", "Celu", alpha=(1.0, 0.1, 0.5, 0.2, 0.01)),
    attributes("HardSigmoid", alpha=(0.2, 1 / 6), beta=(0.5,)),
    perms(),
    MeaningRow(("LRN",), _undivided),
    attributes("DepthToSpace", mode=("DCR", "CRD")),
    attributes("ScatterND", "ScatterElements", reduction=_REDUCTIONS),
    attributes("LSTM", "GRU", "RNN", direction=("forward", "reverse")),
    attributes(
        "RoiAlign",
        since=16,
        coordinate_transformation_mode=("half_pixel", "output_half_pixel"),
        mode=("avg", "max"),
        sampling_ratio=(0, 1, 2),
    ),
    attributes("GroupQueryAttention", local_window_size=(-1,)),
    attributes("LpNormalization", p=(1, 2)),
    attributes("BitShift", direction=("LEFT", "RIGHT")),
)
