"""Which made-up feed runs and says something? Candidates are tried in order on an engine, until one does.

What we made up is never to blame: sizes and numbers of ours that an engine does not run, or that end in NaN, are made
up anew. The user is asked where none is found.
"""

import dataclasses
import itertools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tensortriage.compare.reference_checks import has_nan, is_constant
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError, RunFailed
from tensortriage.inputs.conform import show_shape
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.text import some

if TYPE_CHECKING:
    import numpy as np

MOST_TRIED = 160
MOST_SECONDS = 30.0
"""A question to the user costs less than a longer search."""
SMALL = 16
"""An input of at most so many numbers is told with them."""


@dataclasses.dataclass(frozen=True, slots=True)
class FeedTrial:
    """What trying made-up feeds came to.

    Attributes:
        feed: The first that runs, without a NaN and not constant; else the first that runs without a NaN, None where
            none does.
        tried: Number of feeds that were tried.
        ran: Whether any of them ran at all.
        varied: Whether the outputs on ``feed`` say something: an element differs from others, or there is but one.
    """

    feed: Feed | None
    tried: int
    ran: bool
    varied: bool = False


def first_that_runs(engine: EngineSpec, model: Model, candidates: Iterable[Feed], lab: Lab) -> FeedTrial:
    """Run candidates in order until one gives outputs that are free of NaN and vary.

    Raises:
        EngineError: When the engine fails in another way than by refusing what it is fed.
    """
    ends = time.perf_counter() + min(MOST_SECONDS, lab.budget.left)
    fallback, tried, ran = None, 0, False
    for tried, feed in enumerate(itertools.islice(candidates, MOST_TRIED), start=1):
        try:
            outputs = lab.outputs(engine, model, feed, what=f"trying made-up data {feed.name} on {engine}")
        except RunFailed:
            outputs = {}
        if outputs:
            ran = True
            if not any(map(has_nan, outputs.values())):
                if any(not is_constant(array) for array in outputs.values()):
                    return FeedTrial(feed, tried, ran, varied=True)
                fallback = fallback or feed
        if time.perf_counter() > ends:
            break
    return FeedTrial(fallback, tried, ran)


def as_options(feed: Feed) -> tuple[str, ...]:
    """Return the shapes of a feed as ``--input-shapes`` takes them."""
    return tuple(f"{name}:[{','.join(map(str, array.shape))}]" for name, array in feed.tensors.items() if array.ndim)


def in_words(feed: Feed) -> str:
    """Return the shapes of a feed, and the numbers of scalars."""
    return some([f"{name} {_told(array)}" for name, array in feed.tensors.items()], 6)


def _told(array: "np.ndarray") -> str:
    return f"= {array.reshape(-1)[0]}" if array.size == 1 and array.ndim < 2 else show_shape(array.shape)


def asked_for(model: Model, engine: EngineSpec, tried: int, why: str) -> DataError:
    """Return the question to the user where no made-up data run."""
    inputs = [f"{spec.name} {show_shape(spec.shape)}" for spec in model.inputs]
    return DataError(
        f"{engine} runs none of {tried} made-up feeds, so that data are needed for {some(inputs, 8)}: {why}",
        slug="made-up-data-fail",
        cure="give real data with --inputs, or sizes that the model takes with --input-shapes",
    )
