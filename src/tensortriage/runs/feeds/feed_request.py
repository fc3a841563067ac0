"""Makes feeds from the user's options: files, else a loader script, else random data."""

import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tensortriage.errors import DataError
from tensortriage.runs.options.request_fields import LimitOptions
from tensortriage.values.options import option, part, request
from tensortriage.values.registered import EntryPoint, registered

if TYPE_CHECKING:
    from tensortriage.engines.base import Limits
    from tensortriage.inputs.feed import Feed
    from tensortriage.inputs.samples import Samples
    from tensortriage.model.model import Model

READERS = "tensortriage.feeds"
"""Entry-point group, by the ending of a file's name, of functions of path, input specs and limits that yield feeds."""
Readers = Mapping[str, EntryPoint]
"""Registered readers by name."""
FEED_FORMATS = "npz, directory of npy, ONNX test_data_set, Polygraphy JSON, safetensors."
_logger = logging.getLogger(__name__)
_SHAPE = re.compile(r".*:\[.*\]$", re.DOTALL)
_OLD_SHAPE = re.compile(r"^([^:,]+),(-?\d+(?:x-?\d+)*)$")


def shapes_field(names: str = "--input-shapes", **more: Any) -> Any:
    """Declare the shapes of dynamic inputs."""
    return option(names, "NAME:SHAPE...", "Shapes of dynamic inputs for made-up data, e.g. x:[1,3,224,224].",
                  default_factory=dict, read="tensortriage.inputs.syntax:parse_shapes", **more)  # fmt: skip


@request
class FeedRequest:
    """Where feeds come from.

    Attributes:
        limits: Bounds on the script, per sample.
        paths: Files and directories; they come first. ``file.py:function`` is a data loader, ``batch.pt`` a file of
            ``torch.save``. ``NAME:[SHAPE]``, as Polygraphy has it, is a shape, and so is ``NAME,1x3x224x224``.
        value_ranges: ``[low, high]`` per input name (empty name: all inputs). Giving any of ``seed``, ``iterations`` or
            ``value_ranges`` selects the numbers that Polygraphy would make.
        without: Inputs that the files and scripts need not hold, and that are left out.
        most: Largest number of feeds; None for all.
        given: Feeds that are there already; then nothing else is looked at.
        samples: Samples from Python code; likewise.
        made_up: Whether the contents of the files were made up, as the example inputs of an export mostly are.
    """

    # fmt: off
    limits: "Limits" = part(factory=LimitOptions)
    paths: Sequence[str] = option(
        "--inputs --load-inputs --load-input-data", "PATH...", f"Feeds: {FEED_FORMATS}",
        default=(), reads=True, group="Inputs")
    shapes: Mapping[str, tuple[int | str | None, ...]] = shapes_field()
    seed: int | None = option(
        "--seed", "N", "Seed of random data; the values are those that Polygraphy generates.", default=None, rare=True)
    value_ranges: Mapping[str, tuple[float, float]] = option(
        "--val-range", "[NAME:][LOW,HIGH]...", "Range of random data; the values are those that Polygraphy generates.",
        default_factory=dict, read="tensortriage.inputs.syntax:parse_ranges", rare=True)
    iterations: int | None = option(
        "--iterations --iters", "N", "Number of random feeds; the values are those that Polygraphy generates.",
        default=None, least=0, rare=True)
    script: str = option(
        "--data-loader-script", "FILE.py[:FUNCTION]", "Python file whose load_data (or FUNCTION) yields dicts of "
        "arrays.", default="", rare=True)
    # fmt: on
    without: frozenset[str] = frozenset()
    most: int | None = None
    given: Sequence["Feed"] = ()
    samples: "Samples | None" = None
    made_up: bool = False

    @classmethod
    def of(cls, given: object) -> "FeedRequest":
        """Return a request for inputs that are given in Python.

        Args:
            given: A path or several, arrays by the names of the inputs or a list of such dicts, or a data loader; None
                for data that are made up.

        Raises:
            TypeError: For anything else.
        """
        from tensortriage.inputs.samples import Samples, samples_of

        if given is None or isinstance(given, cls):
            return cls() if given is None else given
        found = samples_of(given)
        return cls(samples=found) if isinstance(found, Samples) else cls(paths=found)

    @property
    def chooses(self) -> bool:
        """Whether sizes and numbers are ours to choose: neither data nor Polygraphy's numbers were requested."""
        asked = self.given, self.samples, self.paths, self.script, self.value_ranges
        return not any(asked) and self.seed is None and self.iterations is None

    def __post_init__(self) -> None:
        shapes = [path for path in map(str, self.paths) if _SHAPE.match(path) or _OLD_SHAPE.match(path)]
        if shapes:
            from tensortriage.inputs.syntax import parse_shapes

            found = parse_shapes(_OLD_SHAPE.sub(r"\1:\2", word) for word in shapes)
            object.__setattr__(self, "shapes", {**self.shapes, **found})
            object.__setattr__(self, "paths", tuple(path for path in self.paths if path not in shapes))


def feeds(request: FeedRequest, model: "Model") -> "Iterator[Feed]":
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
        yield feed.made_up if request.made_up else feed


def _grouped(paths: Sequence[str], readers: Readers) -> Iterator[Sequence[str]]:
    """Yield scripts and files with a reader of their own each alone, other files that follow each other together."""
    for alone, group in itertools.groupby(paths, key=lambda path: _is_loader(path) or _ending(path) in readers):
        together = list(group)
        yield from ([path] for path in together) if alone else [together]


def _from(paths: Sequence[str], request: FeedRequest, model: "Model", readers: Readers) -> "Iterator[Feed]":
    from tensortriage.inputs.feeds import load_feeds

    specs = [spec for spec in model.inputs if spec.name not in request.without]
    if _is_loader(paths[0]):
        from tensortriage.runs.scripts import script_feeds

        return script_feeds(paths[0], specs, request.limits)
    if (ending := _ending(paths[0])) in readers:
        return cast("Iterator[Feed]", readers[ending].load()(Path(paths[0]), specs, request.limits))
    return load_feeds([Path(path) for path in paths], specs)


def _is_loader(path: str) -> bool:
    return path.partition(":")[0].endswith(".py")


def _ending(path: str) -> str:
    return Path(path).suffix.removeprefix(".")


def _source(request: FeedRequest, model: "Model") -> "Iterator[Feed]":
    if request.given:
        return iter(request.given)
    if request.samples is not None:
        from tensortriage.inputs.samples import sample_feeds

        return sample_feeds(request.samples, model.inputs)
    if request.paths:
        readers = registered(READERS)
        grouped = _grouped(request.paths, readers)
        return itertools.chain.from_iterable(_from(paths, request, model, readers) for paths in grouped)
    if request.script:
        from tensortriage.runs.scripts import script_feeds

        specs = [spec for spec in model.inputs if spec.name not in request.without]
        return script_feeds(request.script, specs, request.limits)
    from tensortriage.inputs.synthetic.random import polygraphy_feeds, random_feeds

    if request.seed is not None or request.iterations is not None or request.value_ranges:
        return polygraphy_feeds(
            model.inputs,
            seed=1 if request.seed is None else request.seed,
            iterations=1 if request.iterations is None else request.iterations,
            val_range=request.value_ranges,
            shapes=request.shapes,
        )
    return random_feeds(model, seed=0, iterations=1, value_ranges={}, shapes=request.shapes)
