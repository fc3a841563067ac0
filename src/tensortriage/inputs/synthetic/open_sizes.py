"""Concrete sizes for the dimensions that a model leaves open.

A name stands for one size wherever it appears, so that inputs fit each other; a sum of names (``past + sequence``) is
the sum of their sizes. The sizes are the smallest that models usually accept: 1 along a leading axis (the batch),
unless its name or a recurrent layer says that it is time, 64 for the height and width of images, 1024 for samples of
sound, by their name or a convolution, 8 for everything else.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from tensortriage.errors import UsageError
from tensortriage.inputs.conform import show_shape
from tensortriage.inputs.syntax import Shape
from tensortriage.model.io.check_limits import check_rank
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import whole_number

BATCH = 1
SEQUENCE = 8
IMAGE = 64
SIGNAL = 1024
_TIME = re.compile(r"seq|time|frame|step|token|^t$")
"""Words for a leading axis that is no batch."""
SOUND = re.compile(r"sample|audio|wav|signal|sound|speech|pcm")
"""Words for a last axis that is sound."""
SMALL_BYTES = 16 << 20
"""Numbers so large that Python with its packages takes several times as much: whether they fit is not asked."""
MAX_MADE_UP_BYTES = 2 << 30
"""A declared size costs its writer nothing. 268 million numbers are 1,780 images of 224 x 224 in colour; who needs more
asks for it with --input-shapes, or has real data."""


Dimension = str | tuple[str, int]
"""An open dimension: its name, or the input and the axis of one without a name."""
_NONE_CHOSEN: Mapping[Dimension, int] = MappingProxyType({})


def concrete_shapes(
    specs: Sequence[ValueSpec],
    shapes: Mapping[str, Shape],
    convolved: Collection[str] = (),
    timed: Collection[str] = (),
    chosen: Mapping[Dimension, int] = _NONE_CHOSEN,
) -> dict[str, tuple[int, ...]]:
    """Return a shape of known sizes for every input.

    Args:
        specs: The model's inputs.
        shapes: The shape of each as far as it is known (see `given_shapes`); sizes that the user gave also hold for
            the same dimension names of other inputs.
        convolved: Names of inputs that enter a convolution.
        timed: Names of inputs whose leading axis is time, as recurrent layers have it.
        chosen: Sizes of open dimensions in place of the usual ones.
    """

    def usual(spec: ValueSpec, axis: int) -> int:
        return SEQUENCE if axis == 0 and spec.name in timed else _default(spec, axis, spec.name in convolved)

    sizes: dict[Dimension, int] = {}
    for spec in specs:
        for wanted, size in zip(spec.shape or (), shapes[spec.name], strict=False):
            if isinstance(wanted, str) and isinstance(size, int):
                sizes.setdefault(wanted, size)
    declared = (*shapes.values(), *(spec.shape or () for spec in specs))
    symbols = {d for shape in declared for d in shape if isinstance(d, str)}
    for spec in sorted(specs, key=lambda spec: -len(shapes[spec.name])):  # A batch is known by the larger inputs.
        for axis, wanted in enumerate(shapes[spec.name]):
            if isinstance(wanted, str) and not _terms(wanted, symbols):
                sizes.setdefault(wanted, chosen.get(wanted, usual(spec, axis)))
    return {spec.name: _concrete(spec, shapes[spec.name], {**chosen, **sizes}, symbols, usual) for spec in specs}


def open_dimensions(specs: Sequence[ValueSpec], shapes: Mapping[str, Shape]) -> dict[Dimension, tuple[ValueSpec, int]]:
    """Return every dimension whose size is free, with an input and the axis at which it stands.

    Args:
        specs: The model's inputs.
        shapes: The shape of each as far as it is known (see `given_shapes`).
    """
    symbols = {d for shape in shapes.values() for d in shape if isinstance(d, str)}
    fixed = {
        wanted
        for spec in specs
        for wanted, size in zip(spec.shape or (), shapes[spec.name], strict=False)
        if isinstance(wanted, str) and isinstance(size, int)
    }
    found: dict[Dimension, tuple[ValueSpec, int]] = {}
    for spec in specs:
        for axis, size in enumerate(shapes[spec.name]):
            if size is None:
                found[spec.name, axis] = spec, axis
            elif isinstance(size, str) and size not in fixed and not _terms(size, symbols):
                found.setdefault(size, (spec, axis))
    return found


def require_room(
    specs: Sequence[ValueSpec], shapes: Mapping[str, tuple[int, ...]], given: Collection[str] = ()
) -> None:
    """Refuse to make up more numbers than the free memory of this machine holds; they are drawn in 64 bits.

    Args:
        specs: The model's inputs.
        shapes: The shape of each.
        given: Inputs whose shapes the user chose; those of the others are the model's, which are bounded by
            `MAX_MADE_UP_BYTES` too.

    Raises:
        UsageError: ``feed-too-large``.
    """
    for spec in specs:
        check_rank(len(shapes[spec.name]), f"input '{spec.name}'")
    needed = {spec.name: 8 * math.prod(shapes[spec.name]) for spec in specs}
    if sum(needed.values()) <= SMALL_BYTES:
        return
    import psutil  # 20 ms that only commands that make up much need to spend

    free = psutil.virtual_memory().available
    if not given:
        free = min(free, MAX_MADE_UP_BYTES)
    if sum(needed.values()) > free:
        largest = max(needed, key=needed.__getitem__)
        raise UsageError(
            f"the values of input '{largest}', {show_shape(shapes[largest])}, would need {needed[largest] >> 20} MB; "
            f"{free >> 20} MB may be used",
            slug="feed-too-large",
            cure="give its dynamic dimensions smaller sizes with --input-shapes, or give real data with --inputs",
        )


def _concrete(
    spec: ValueSpec,
    shape: Shape,
    sizes: Mapping[Dimension, int],
    symbols: Collection[str],
    usual: Callable[[ValueSpec, int], int],
) -> tuple[int, ...]:
    found = []
    for axis, wanted in enumerate(shape):
        if isinstance(wanted, int):
            found.append(wanted)
        elif isinstance(wanted, str) and wanted in sizes:
            found.append(sizes[wanted])
        elif isinstance(wanted, str) and (terms := _terms(wanted, symbols)):
            found.append(sum(_term(term, sizes) for term in terms))
        else:
            found.append(sizes.get((spec.name, axis), usual(spec, axis)))
    return tuple(found)


def _terms(symbol: str, symbols: Collection[str]) -> list[str]:
    """Return the names whose sizes add up to a dimension, as exporters write it; empty for a plain name."""
    if "+" in symbol:
        return [term.strip() for term in symbol.split("+")]
    if symbol.startswith("total_") and f"past_{symbol[6:]}" in symbols and symbol[6:] in symbols:
        return [f"past_{symbol[6:]}", symbol[6:]]
    return []


def _term(term: str, sizes: Mapping[Dimension, int]) -> int:
    number = whole_number(term)
    return sizes.get(term, SEQUENCE) if number is None else number


def _default(spec: ValueSpec, axis: int, is_convolved: bool) -> int:
    shape = spec.shape or ()
    rank, name = len(shape), shape[axis] if shape else None
    if axis == 0 and rank > 1:
        word = name.lower() if isinstance(name, str) else ""
        return SEQUENCE if "batch" not in word and _TIME.search(word) else BATCH
    channels_last = rank in (4, 5) and isinstance(shape[-1], int) and not isinstance(shape[1], int)
    if is_convolved and rank in (4, 5) and axis >= (1 if channels_last else 2):
        return IMAGE
    sounds = spec.dtype is not None and spec.dtype.is_float and SOUND.search(f"{name} {spec.name}".lower())
    return SIGNAL if axis == rank - 1 and (is_convolved or sounds) else SEQUENCE
