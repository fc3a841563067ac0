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
    from tensortriage.values.spec import ValueSpec

READERS = "tensortriage.feeds"
"""Entry-point group, by the ending of a file's name, of functions of path, input specs and limits that yield feeds."""
Readers = Mapping[str, EntryPoint]
"""Registered readers by name."""
FEED_FORMATS = "npz or npy, or a directory of them, ONNX test_data_set, Polygraphy JSON, safetensors."
SCRIPT = "py"
"""Ending of a data loader."""
_logger = logging.getLogger(__name__)
_SHAPE = re.compile(r".*:\[.*\]$", re.DOTALL)
_OLD_SHAPE = re.compile(r"^([^:,]+),(-?\d+(?:x-?\d+)*)$")
_NAMED = re.compile(r"^random\[\d+(\.\d+)?\]$")


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
            ``torch.save``. ``NAME:[SHAPE]``, as Polygraphy has it, is a shape, and so is ``NAME,1x3x224x224``;
            ``random[3.2]`` are the made-up data that a verdict names so.
        value_ranges: ``[low, high]`` per input name (empty name: all inputs). Giving any of ``seed``, ``iterations`` or
            ``value_ranges`` selects the numbers that Polygraphy would make.
        without: Inputs that the files and scripts need not hold, and that are left out.
        most: Largest number of feeds; None for all.
        given: Feeds that are there already; then nothing else is looked at.
        samples: Samples from Python code; likewise.
        made_up: Whether the contents of the files were made up, as the example inputs of an export mostly are.
        named: The name of made-up data; see `paths`.
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
    named: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Words after ``--inputs`` of a command line on the same feeds: files, shapes and name of made-up ones."""
        shapes = (f"{name}:[{','.join(map(str, dims))}]" for name, dims in self.shapes.items())
        return (*self.paths, *shapes, *filter(None, [self.named]))

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
        asked = self.given, self.samples, self.paths, self.script, self.value_ranges, self.named
        return not any(asked) and self.seed is None and self.iterations is None

    def __post_init__(self) -> None:
        shapes = [path for path in map(str, self.paths) if _SHAPE.match(path) or _OLD_SHAPE.match(path)]
        if shapes:
            from tensortriage.inputs.syntax import parse_shapes

            found = parse_shapes(_OLD_SHAPE.sub(r"\1:\2", word) for word in shapes)
            object.__setattr__(self, "shapes", {**self.shapes, **found})
            object.__setattr__(self, "paths", tuple(path for path in self.paths if path not in shapes))
        if named := [path for path in map(str, self.paths) if _NAMED.match(path)]:
            object.__setattr__(self, "named", named[-1])
            object.__setattr__(self, "paths", tuple(path for path in self.paths if path not in named))


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


def _source(request: FeedRequest, model: "Model") -> "Iterator[Feed]":
    """Yield the feeds of a request; what was not made for the model, or checked before, is checked against it."""
    if request.given:
        return iter(request.given)
    specs = [spec for spec in model.inputs if spec.name not in request.without]
    if request.samples is None and (request.paths or request.script):
        found = _of_files(request, specs)
    elif request.samples is not None:
        from tensortriage.inputs.samples import sample_feeds

        found = sample_feeds(request.samples, [spec.name for spec in specs])
    elif request.seed is not None or request.iterations is not None or request.value_ranges:
        from tensortriage.inputs.synthetic.polygraphy import polygraphy_feeds

        return polygraphy_feeds(
            model.inputs,
            seed=1 if request.seed is None else request.seed,
            iterations=1 if request.iterations is None else request.iterations,
            val_range=request.value_ranges,
            shapes=request.shapes,
        )
    elif request.named:
        from tensortriage.inputs.synthetic.candidates import named_feed

        return iter([named_feed(model, request.shapes, request.named)])
    else:
        from tensortriage.inputs.synthetic.random import random_feeds

        return random_feeds(model, shapes=request.shapes)
    from tensortriage.inputs.conform import check_feed

    return (check_feed(feed, specs) for feed in found)


def _of_files(request: FeedRequest, specs: "Sequence[ValueSpec]") -> "Iterator[Feed]":
    readers = registered(READERS)
    for kind, paths in _grouped(request.paths, readers) if request.paths else [(SCRIPT, [request.script])]:
        if kind == SCRIPT:
            from tensortriage.runs.scripts import script_feeds

            yield from script_feeds(paths[0], specs, request.limits)
        elif kind:
            yield from cast("Iterator[Feed]", readers[kind].load()(Path(paths[0]), specs, request.limits))
        else:
            from tensortriage.inputs.feeds import load_feeds

            yield from load_feeds([Path(path) for path in paths], specs)


def _grouped(paths: Sequence[str], readers: Readers) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield scripts and files with a registered reader alone, each with its ending, and others in a row together."""
    for kind, group in itertools.groupby(paths, key=lambda path: _kind(path, readers)):
        together = list(group)
        yield from ((kind, [path]) for path in together) if kind else [(kind, together)]


def _kind(path: str, readers: Readers) -> str:
    """Return the ending of a script, or of a file with a reader of its own; empty for any other file."""
    if path.partition(":")[0].endswith(f".{SCRIPT}"):
        return SCRIPT
    ending = Path(path).suffix.removeprefix(".")
    return ending if ending in readers else ""
