"""Makes feeds of what the user named: files, else a loader script, else random data."""

import dataclasses
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.feeds import load_feeds
from tensortriage.inputs.generated.random import polygraphy_feeds, random_feeds
from tensortriage.model.model import Model
from tensortriage.runs.feeds.torch_batches import torch_feeds
from tensortriage.runs.scripts import script_feeds

_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FeedRequest:
    """Where feeds come from.

    Attributes:
        paths: Files and directories; they come first. ``file.py:function`` is a data loader, ``batch.pt`` what
            ``torch.save`` wrote.
        script: ``file.py[:function]`` of a data loader.
        seed: Seed of random data; None for the default seed.
        iterations: Number of random feeds; None for one.
        value_ranges: ``[low, high]`` per input name (empty name: all inputs). Giving any of ``seed``, ``iterations`` or
            ``value_ranges`` selects the numbers that Polygraphy would make.
        shapes: Shapes of dynamic inputs.
        without: Inputs that the files and scripts need not hold, and that are left out.
        most: Largest number of feeds taken; None for all.
        limits: Bounds on the script, per sample.
        given: Feeds that are there already; then nothing else is looked at.
    """

    paths: Sequence[str] = ()
    script: str = ""
    seed: int | None = None
    iterations: int | None = None
    value_ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    shapes: Mapping[str, tuple[int | str | None, ...]] = dataclasses.field(default_factory=dict)
    without: frozenset[str] = frozenset()
    most: int | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    given: Sequence[Feed] = ()


def feeds(request: FeedRequest, model: Model) -> Iterator[Feed]:
    """Yield the feeds of a request, at least one.

    Raises:
        DataError: When there is none, or one does not fit the model.
    """
    found = itertools.islice(_source(request, model), request.most)
    first = next(found, None)
    if first is None:
        raise DataError(
            "the inputs contain no sample", slug="no-samples", cure="give --inputs with at least one sample"
        )
    for number, feed in enumerate(itertools.chain([first], found)):
        for name, array in feed.tensors.items():
            _logger.debug("feed %d: %s %s %s", number, name, array.dtype, list(array.shape))
        yield feed


def _grouped(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield scripts and PyTorch's files each alone, other files that follow each other together."""
    for alone, group in itertools.groupby(paths, key=lambda path: _is_loader(path) or _is_saved_by_torch(path)):
        together = list(group)
        yield from ([path] for path in together) if alone else [together]


def _from(paths: Sequence[str], request: FeedRequest, model: Model) -> Iterator[Feed]:
    specs = [spec for spec in model.inputs if spec.name not in request.without]
    if _is_loader(paths[0]):
        return script_feeds(paths[0], specs, request.limits)
    if _is_saved_by_torch(paths[0]):
        return torch_feeds(Path(paths[0]), specs, request.limits)
    return load_feeds([Path(path) for path in paths], specs)


def _is_loader(path: str) -> bool:
    return path.partition(":")[0].endswith(".py")


def _is_saved_by_torch(path: str) -> bool:
    return Path(path).suffix in (".pt", ".pth")


def _source(request: FeedRequest, model: Model) -> Iterator[Feed]:
    if request.given:
        return iter(request.given)
    if request.paths:
        return itertools.chain.from_iterable(_from(path, request, model) for path in _grouped(request.paths))
    if request.script:
        specs = [spec for spec in model.inputs if spec.name not in request.without]
        return script_feeds(request.script, specs, request.limits)
    if request.seed is not None or request.iterations is not None or request.value_ranges:
        return polygraphy_feeds(
            model.inputs,
            seed=1 if request.seed is None else request.seed,
            iterations=1 if request.iterations is None else request.iterations,
            val_range=request.value_ranges,
            shapes=request.shapes,
        )
    return random_feeds(model, seed=0, iterations=1, value_ranges={}, shapes=request.shapes)
