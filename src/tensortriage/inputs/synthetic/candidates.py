"""Other made-up feeds, tried in order where the usual one does not run or proves nothing.

A model does not say which sizes it takes: a Pad by reflection wants more samples than it adds, a pyramid of features
multiples of its strides, a state the size of its batch. What constants of the graph ask for stays. Of the other sizes
those that names suggest come first, then those that are usual; all open dimensions but the batch get one size together,
then some of them, the others 1; last the batch. With sizes that run, other numbers follow: other constants that a
scalar is compared with, floats of other scales.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from tensortriage.errors import UsageError
from tensortriage.inputs.conform import given_shapes
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.syntax import Range, Shape
from tensortriage.inputs.synthetic.input_roles import Use
from tensortriage.inputs.synthetic.open_sizes import SOUND, Dimension, open_dimensions
from tensortriage.inputs.synthetic.random import FeedMaker, random_feeds
from tensortriage.inputs.synthetic.required_sizes import required_sizes, solved_size
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.values.spec import ValueSpec

SIZES = (
    64, 512, 224, 16, 8, 1, 16000, 32, 128, 256, 1024, 2, 3, 4, 48, 80, 96, 320, 384, 400, 576, 640, 1536, 4096, 28,
    112, 299, 300, 416, 448, 608, 768,
)  # fmt: skip
"""Usual sizes: powers of two, multiples of strides up to 32, images, bands of a spectrum, a second of sound."""
BATCHES = (2, 4, 3, 8, 16)
RANKS = (2, 3, 4, 1)
"""Of an input that may have any: rows, sequences, images, one row."""
SUGGESTED: Sequence[tuple[re.Pattern[str], tuple[int, ...]]] = (
    (re.compile(r"batch|^bs$"), (1,)),
    (re.compile(r"height|width|image|pixel|^h$|^w$"), (64, 224, 320, 640, 256, 512)),
    (SOUND, (512, 1024, 16000, 576, 1536, 4096, 48000)),
    (re.compile(r"frame|mel|spectr|feat|time"), (64, 128, 80, 96, 100, 300, 1000, 3000)),
    (re.compile(r"seq|token|length|position"), (8, 16, 64, 128, 1)),
)
"""Sizes that a word in the name of a dimension, or else of its input, suggests."""
RANGES: Sequence[Range] = ((0.0, 1.0), (-0.1, 0.1), (-10.0, 10.0), (0.5, 1.5), (0.0, 255.0), (0.0, 0.0))
_STATE = re.compile(r"state|hidden|cell|cache|^[hc](_?[0n])?$")
"""Inputs whose middle axis is a batch, as a recurrent layer has it."""
MOST_ELEMENTS = 1 << 22
"""Of a feed that is tried: more would take longer than a question to the user."""
_FEW, _MOST_FREE = 6, 4
"""Sizes tried of each unlikely choice of dimensions, and the most dimensions whose choices are all tried."""
_NO_CHOICE: Mapping[Dimension, int] = MappingProxyType({})


def candidates(model: Model, shapes: Mapping[str, Shape]) -> Iterator[Feed]:
    """Yield made-up feeds, likely ones first, each with a name of its own; without the usual ``random[0]``.

    Args:
        model: The model to feed.
        shapes: Shape by input name, for dimensions that the model leaves open.

    Raises:
        UsageError: As `tensortriage.inputs.synthetic.random.random_feeds` does.
    """
    return (make() for make in _made(model, shapes))


def named_feed(model: Model, shapes: Mapping[str, Shape], name: str) -> Feed:
    """Return the made-up feed of a name that a verdict gave, such as ``random[3.2]``: of the third, the second other.

    Args:
        model: The model to feed.
        shapes: As of `candidates`.
        name: The name.

    Raises:
        UsageError: When there is none of that name (``made-up-unknown``); as `candidates`.
    """
    first, _, second = name[len("random[") : -1].partition(".")
    usual: Callable[[], Feed] = partial(next, random_feeds(model, shapes=shapes))
    for make in itertools.islice(itertools.chain((usual,), _made(model, shapes)), int(first), int(first) + 1):
        made = make()
        others = other_numbers(model, made) if second else (made,)
        if (found := next((feed for feed in others if feed.name == name), None)) is not None:
            return found
    raise UsageError(f"no made-up data are named {name}", slug="made-up-unknown", cure="copy it from a verdict")


def _made(model: Model, shapes: Mapping[str, Shape]) -> Iterator[Callable[[], Feed]]:
    makers, number = [FeedMaker(each) for each in _of_ranks(model, shapes)], itertools.count(1)
    turns = itertools.zip_longest(*([(each, *choice) for choice in _choices(each, shapes)] for each in makers))
    for maker, chosen, numbers in filter(None, itertools.chain.from_iterable(turns)):
        try:
            sizes = maker.sizes(shapes, chosen)
        except UsageError:
            if not chosen:
                raise
            continue  # beyond this machine's memory
        if not chosen or sum(map(math.prod, sizes.values())) <= MOST_ELEMENTS:
            yield partial(maker.feed, sizes, iteration=next(number), **numbers)


def _of_ranks(model: Model, shapes: Mapping[str, Shape]) -> list[Model]:
    """Return the model; where an input may have any rank, with each that is usual."""
    unknown = [spec.name for spec in model.inputs if spec.dtype and spec.shape is None and spec.name not in shapes]
    return [with_input_shapes(model, dict.fromkeys(unknown, (None,) * rank)) for rank in RANKS if unknown] or [model]


def other_numbers(model: Model, feed: Feed) -> Iterator[Feed]:
    """Yield feeds of the same shapes as a made-up one, with other numbers."""
    maker = FeedMaker(model)
    sizes = {name: array.shape for name, array in feed.tensors.items()}
    held = {
        name: float(feed.tensors[name].reshape(-1)[0])
        for name, role in maker.roles.items()
        if role.choices and feed.tensors[name].size
    }
    for number, others in enumerate(_numbers(maker), start=1):
        made = maker.feed(sizes, iteration=number, **{**others, "fills": {**held, **others.get("fills", {})}})
        yield Feed(f"{feed.name[:-1]}.{number}]", made.tensors, made.origin)


def are_ours(model: Model, shapes: Mapping[str, Shape]) -> bool:
    """Whether made-up data may be the reason that a model does not run: for an open size, or a number that selects.

    Floats of a fixed shape are numbers that any engine computes with.
    """
    return bool(open_dimensions(model.inputs, given_shapes(model.inputs, shapes))) or any(
        spec.shape is None or (spec.dtype is not None and not spec.dtype.is_float) for spec in model.inputs
    )


_Numbers = Mapping[str, Any]
"""Arguments of `FeedMaker.feed`."""


def _choices(maker: FeedMaker, shapes: Mapping[str, Shape]) -> Iterator[tuple[Mapping[Dimension, int], _Numbers]]:
    dimensions = open_dimensions(maker.specs, given_shapes(maker.specs, shapes))
    required = required_sizes(maker.model, dimensions) if dimensions else {}
    sizes = []
    usual = maker.sizes(shapes)
    defaults = {dimension: usual[spec.name][axis] for dimension, (spec, axis) in dimensions.items()}
    for chosen in _sizes(maker.model, dimensions, required, defaults):
        sizes.append(chosen)
        yield chosen, {}
    for numbers in _numbers(maker):
        yield _NO_CHOICE, numbers
        if any(math.prod(usual[name]) == 1 for name in numbers.get("fills", ())):  # another branch may take other sizes
            yield from ((chosen, numbers) for chosen in sizes[: len(SIZES)])


def _numbers(maker: FeedMaker) -> Iterator[_Numbers]:
    """Yield other numbers than the usual: constants that are compared with, likenesses, ranges of floats."""
    for name, role in maker.roles.items():
        yield from ({"fills": {name: choice}} for choice in role.choices[1:])
    if any(map(maker.may_be_alike, maker.specs)):
        yield {"alike": True}
    fixed = (Use.FILL, Use.INDEX, Use.COUNT_UP, Use.RESHAPE, Use.LENGTH)
    floats = [
        spec.name
        for spec in maker.specs
        if spec.dtype is not None and spec.dtype.is_float and maker.roles[spec.name].use not in fixed
    ]
    if floats:
        yield from ({"value_ranges": dict.fromkeys(floats, limits)} for limits in RANGES)


def _sizes(
    model: Model,
    dimensions: Mapping[Dimension, tuple[ValueSpec, int]],
    required: dict[Dimension, int],
    usual: Mapping[Dimension, int],
) -> Iterator[dict[Dimension, int]]:
    """Yield sizes of all open dimensions: of those that may be large one size, of the others 1; last of the batch."""
    suggested = {dimension: _suggested(dimension, *place) for dimension, place in dimensions.items()}
    free = [dimension for dimension, sizes in suggested.items() if sizes != (1,) and dimension not in required]
    batch = [dimension for dimension, sizes in suggested.items() if sizes == (1,) and dimension not in required]
    last = [each for each in free if dimensions[each][1] == len(dimensions[each][0].shape or ()) - 1]
    every = [pair for size in range(len(free) - 1, 0, -1) for pair in itertools.combinations(free, size)]
    likely = [tuple(free), tuple(last)]
    groups = [*likely, *(every if len(free) <= _MOST_FREE else [(each,) for each in free])]
    done = set()
    if required:
        yield dict(required)  # beside the usual sizes
    others = dict.fromkeys(batch, 1) | required
    if free and (solved := solved_size(model, free, others) or 1) > 1:  # 1 fits any size, and shows nothing
        yield dict.fromkeys(free, solved) | others
    for each in free if len(free) > 1 else ():  # what others add up to, as past and new tokens to those of a mask
        if (solved := solved_size(model, [each], {**usual, **required}) or 1) > 1:
            yield {each: solved} | required
    for group in dict.fromkeys(group for group in groups if group):
        words = dict.fromkeys(size for dimension in group for size in suggested[dimension])
        sizes = list(dict.fromkeys((*words, *SIZES)))
        for size in sizes if group in likely or len(group) == 1 else sizes[: len(words) + _FEW]:
            chosen = {each: size if each in group else 1 for each in dimensions} | required
            if (key := tuple(chosen.values())) not in done:
                done.add(key)
                yield chosen
    yield from (dict.fromkeys(batch, size) | required for size in (BATCHES if batch else ()))


def _suggested(dimension: Dimension, spec: ValueSpec, axis: int) -> tuple[int, ...]:
    """Return the sizes that names suggest; (1,) of a batch, none where nothing does."""
    if isinstance(dimension, str):
        for pattern, sizes in SUGGESTED:
            if pattern.search(dimension.lower()):
                return sizes
    rank = len(spec.shape or ())
    if (axis == 0 and rank > 1) or (0 < axis < rank - 1 and _STATE.search(spec.name.lower())):
        return (1,)
    return next((sizes for pattern, sizes in SUGGESTED[1:] if pattern.search(spec.name.lower())), ())
