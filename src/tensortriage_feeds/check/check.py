"""Two files of inputs compared with each other, and the cost of their difference at a model's outputs."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensortriage.api import EngineSpec, Feed, Model
from tensortriage.envelope.sdk import Lab, Origin, check_feed, error_of, measure_many, usable
from tensortriage.sdk import DataError, Kind, TriageError, error_size, open_data
from tensortriage_feeds.check.request import FeedFilesRequest
from tensortriage_feeds.check.saved_outputs import SavedOutputs
from tensortriage_feeds.returned import cure_of as outputs_cure
from tensortriage_feeds.returned import in_words
from tensortriage_feeds.transforms import Tensors, cure_of, sentence
from tensortriage_feeds.two_feeds.differences import FoundDifference, difference

FEED_FORMAT = "tensortriage.feed-difference/1"
MOST_SAMPLES = 8
"""So many samples of each file are compared."""
_NOR_MEANT = ", and no known difference of meaning gives them"
_SAME, _DIFFERENT, _UNKNOWN = 0, 1, 4


@dataclasses.dataclass(frozen=True, slots=True)
class FeedDifference:
    """How the inputs of one file differ from those of another.

    Attributes:
        mine: The file that is right.
        theirs: The other file.
        same: Whether all inputs are equal, to the last bit or but for rounding in fp32.
        known: Whether it is told how they differ.
        summary: It in one sentence.
        transforms: Kind, inputs, parameters and cure of each transform, in their order.
        cure: The change that undoes them.
        residual: Remaining difference, as a share of the deviation of the other inputs.
        samples: How many samples were compared.
        alike: How many of them differ in this way.
        unpaired: Inputs that only one file has.
        costs: Relative error at each output of the model on the other inputs; empty without a model.
        refused: Why the model does not run on them; empty where it does.
    """

    mine: str
    theirs: str
    same: bool
    known: bool
    summary: str
    transforms: tuple[Mapping[str, Any], ...] = ()
    cure: str = ""
    residual: float = 0.0
    samples: int = 1
    alike: int = 1
    unpaired: tuple[str, ...] = ()
    costs: Mapping[str, float] = dataclasses.field(default_factory=dict)
    refused: str = ""
    format: str = FEED_FORMAT

    @property
    def exit_code(self) -> int:
        """0 for the same inputs, 1 where they differ in a known way, else 4."""
        return _SAME if self.same else _DIFFERENT if self.known else _UNKNOWN


def compare_feed_files(
    request: FeedFilesRequest, *, say: Callable[[str], None] = lambda text: None, seconds: float = math.inf
) -> FeedDifference:
    """Return how the inputs of one file differ from those of another.

    Args:
        request: The files.
        say: Receives progress lines.
        seconds: How long the search for inputs, and that for a meaning, that give saved outputs may take each.

    Raises:
        TriageError: For files that cannot be read, or have no inputs in common (``feeds-unpaired``).
    """
    model = None if request.model is None else Model.load(request.model, external_data_dir=request.external_data_dir)
    if model is not None and (saved := _saved(request, model)):
        return _behind_outputs(request, model, saved, say, seconds)
    pairs = [*itertools.islice(_pairs(request, model), MOST_SAMPLES)]
    say(f"comparing {len(pairs)} sample{'s' * (len(pairs) > 1)}")
    found = [difference(mine, theirs) for mine, theirs, _ in pairs]
    first, (mine, theirs, unpaired) = next(
        ((each, pair) for each, pair in zip(found, pairs, strict=True) if each.inputs), (found[0], pairs[0])
    )
    same = not any(each.inputs and not each.rounding for each in found) and not unpaired
    costs, refused = ({}, "") if model is None or same else _costs(request, model, mine, theirs)
    words = _told(first) if first.inputs else ""
    return FeedDifference(
        str(request.mine),
        str(request.theirs),
        same,
        same or first.is_known or (bool(unpaired) and not first.inputs),
        _summary(first, same, unpaired),
        tuple(step.stated for step in first.steps) if first.is_known else (),
        cure_of(first.steps) if first.is_known else "",
        first.residual,
        len(pairs),
        sum(_told(each) == words for each in found) if words else len(found),
        unpaired,
        costs,
        refused,
    )


def _saved(request: FeedFilesRequest, model: Model) -> list[Tensors]:
    """Return the first of the outputs of a model that each runner of a file saved; none where it holds inputs."""
    names = {spec.name for spec in model.outputs}
    file = open_data(request.theirs)
    firsts = [next(iter(series)).tensors for series in file.series]
    if file.kind is not Kind.OUTPUTS and not all(names.issuperset(tensors) for tensors in firsts):
        return []
    return [{name: np.asarray(tensors[name]) for name in tensors if name in names} for tensors in firsts]


def _behind_outputs(
    request: FeedFilesRequest, model: Model, outputs: Sequence[Tensors], say: Callable[[str], None], seconds: float
) -> FeedDifference:
    """Return the inputs that give a program's saved outputs: the first of its runners that is beyond limits."""
    series = itertools.chain.from_iterable(open_data(request.mine, model.inputs).series[:1])
    mine = {name: np.asarray(array) for name, array in next(series).tensors.items()}
    files = str(request.mine), str(request.theirs)
    with Lab() as lab:
        runners = [SavedOutputs(model, usable(request.reference), each, lab, seconds=seconds) for each in outputs]
        beyond = ((saved, limits) for saved in runners if (limits := saved.limits(mine)) is not None)
        saved, limits = next(beyond, (None, None))
        if saved is None or limits is None:
            return FeedDifference(*files, True, True, "the outputs are those of these inputs, within their limits")
        costs = {name: error_of(figure) for name, figure in saved.figures(saved.run(mine)).items()}
        if changed := saved.returned(mine):
            summary = f"the program changed what its network computed: {in_words(changed)}"
            return FeedDifference(*files, False, True, summary, cure=outputs_cure(changed), costs=costs)
        found = saved.behind(mine, limits)
        if found is None:
            say("trying known differences of meaning")
            meant = saved.understood(mine)
            told = f"those of these inputs, but {meant}" if meant else f"those of no input that was tried{_NOR_MEANT}"
            return FeedDifference(*files, False, bool(meant), f"the outputs are {told}", costs=costs)
    rest = f"; {found.left:.2g} of what they were off by remains" if found.left < 1.0 else ""
    return FeedDifference(
        *files,
        False,
        True,
        f"the outputs are those of another input: {sentence(found.steps)}{rest}",
        tuple(step.stated for step in found.steps),
        cure_of(found.steps),
        found.left if found.left < 1.0 else 0.0,
        costs=costs,
    )


def _pairs(request: FeedFilesRequest, model: Model | None) -> Iterator[tuple[Tensors, Tensors, tuple[str, ...]]]:
    specs = () if model is None else model.inputs
    files = [open_data(path, specs) for path in (request.mine, request.theirs)]
    for file in files:
        if file.kind is Kind.OUTPUTS:
            raise DataError(f"{file.path} holds saved outputs, not inputs", slug="feed-is-outputs", cure="give inputs")
    series = [itertools.chain.from_iterable(file.series[:1]) for file in files]
    none = True
    for one, other in zip(*series, strict=False):
        none = False
        yield paired(dict(one.tensors), dict(other.tensors), (request.mine, request.theirs))
    if none:
        raise DataError(f"{request.mine} and {request.theirs} hold no sample in common", slug="no-samples",
                        cure="give files with samples")  # fmt: skip


def paired(mine: Tensors, theirs: Tensors, files: Sequence[Path]) -> tuple[Tensors, Tensors, tuple[str, ...]]:
    """Return two feeds under the names of the first, and the inputs that only one has.

    Where no name is in both, a single tensor of each, or as many, belong to each other in their order.

    Raises:
        DataError: When nothing belongs together (``feeds-unpaired``).
    """
    common = [name for name in mine if name in theirs]
    if not common and len(mine) == len(theirs):
        theirs = dict(zip(mine, theirs.values(), strict=True))
        common = list(mine)
    if not common:
        raise DataError(
            f"{files[0]} has {', '.join(map(repr, mine))}, {files[1]} has {', '.join(map(repr, theirs))}",
            slug="feeds-unpaired",
            cure="name the arrays of both files alike: np.savez(FILE, NAME=array)",
        )
    unpaired = tuple(name for name in (*mine, *theirs) if name not in common)
    arrays = [{name: np.asarray(feed[name]) for name in common} for feed in (mine, theirs)]
    return arrays[0], arrays[1], unpaired


def _told(found: FoundDifference) -> str:
    return sentence(found.steps)


def _summary(found: FoundDifference, same: bool, unpaired: tuple[str, ...]) -> str:
    lacking = f"; only one file has {', '.join(map(repr, unpaired))}" if unpaired else ""
    if same and found.rounding:
        return f"the inputs are the same but for rounding, {error_size(found.rounding)} of their deviation"
    if same:
        return "the inputs are the same, to the last bit"
    if not found.inputs:
        return f"the common inputs are the same{lacking}"
    named = ", ".join(map(repr, found.inputs))
    if not found.is_known:
        nearest = (
            f"; the nearest that was tried leaves {error_size(found.residual)} of its deviation" if found.steps else ""
        )
        return f"{named} differ{'s' * (len(found.inputs) == 1)}, in no known way{nearest}{lacking}"
    left = "nothing remains" if found.residual == 0.0 else f"{error_size(found.residual)} of its deviation remains"
    return f"{_told(found)}; {left}{lacking}"


def _costs(request: FeedFilesRequest, model: Model, mine: Tensors, theirs: Tensors) -> tuple[dict[str, float], str]:
    """Return the error at each output on the other inputs, or why the model does not run on them."""
    spec: EngineSpec = usable(request.reference)
    try:
        with Lab() as lab:
            outputs = [
                lab.outputs(spec, model, check_feed(Feed(name, {**mine, **tensors}, Origin.REAL), model.inputs))
                for name, tensors in (("mine", mine), ("theirs", theirs))
            ]
    except TriageError as error:
        return {}, error.message
    right, other = outputs
    if unlike := [name for name in right if right[name].shape != other[name].shape]:
        return (
            {},
            f"output '{unlike[0]}' has shape {list(other[unlike[0]].shape)} instead of {list(right[unlike[0]].shape)}",
        )
    figures = measure_many((name, array, other[name]) for name, array in right.items())
    return {name: error_of(figure) for name, figure in figures}, ""
