"""Which made-up feed runs and proves something? Candidates are tried in order on an engine, until one does.

Made-up data are never to blame: when an engine does not run on our sizes and numbers, or returns NaN, others are made
up. The user is asked for data where none are found.
"""

import contextlib
import dataclasses
import itertools
import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tensortriage.compare.reference_checks import any_finite, has_nan, is_constant
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import DataError, EngineError, EngineMissing, RunFailed
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import given_shapes, show_shape
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.syntax import Shape
from tensortriage.inputs.synthetic.candidates import are_ours, candidates
from tensortriage.inputs.synthetic.open_sizes import open_dimensions
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.lab import Lab
from tensortriage.values.text import some

if TYPE_CHECKING:
    import numpy as np

_logger = logging.getLogger(__name__)

MOST_TRIED = 160
MOST_SECONDS = 30.0
"""A question to the user costs less than a longer search."""
MOST_FOR_MORE = 5.0
"""Seconds to search for informative data, once there are some that run."""
MOST_FOR_NOISE = 4
"""Feeds tried for a smaller floor: each costs evaluations of the model."""
SMALL = 16
"""The numbers of an input are shown up to this many."""


@frozen_dataclass
class FeedTrial:
    """The result of trying made-up feeds.

    Attributes:
        feed: The first that runs, without a NaN and not constant; else the first that runs without a NaN, None where
            none does.
        tried: Number of feeds that were tried.
        ran: Whether any of them ran at all.
        problem: Why the first that did not run did not.
        varied: Whether the outputs on ``feed`` are informative: an element differs from others, or there is but one.
    """

    feed: Feed | None
    tried: int
    ran: bool
    problem: str = ""
    varied: bool = False


def feeds_that_run(
    request: FeedRequest,
    model: Model,
    lab: Lab | None = None,
    *,
    option: str = "--input-shapes",
    nan_will_do: bool = False,
) -> tuple[Feed, ...]:
    """Return the feeds of a request: where they are ours to choose, one with informative outputs.

    The model runs on ONNX Runtime without optimizations. A feed in place of the usual one is reported, with the option
    that restores that.

    Args:
        request: The requested source of feeds.
        model: The model to feed.
        lab: The lab that asks the engine; None for a new one.
        option: The option of the command that takes shapes.
        nan_will_do: Whether data that end in NaN are of use where there are no others, as for shapes.

    Raises:
        DataError: Where no made-up data run, or all give NaN (``made-up-data-fail``); as `feeds`.
    """
    samples = tuple(feeds(request, model))
    if not request.chooses:
        return samples
    candidate = itertools.chain(samples, candidates(model, request.shapes))
    try:
        with contextlib.nullcontext(lab) if lab else Lab() as asked:
            trial = first_that_runs(PLAIN, model, candidate, asked)
    except (EngineError, EngineMissing):
        return samples  # it is not for the data that the model cannot be asked
    if trial.feed is None and (not nan_will_do if trial.ran else are_ours(model, request.shapes)):
        raise asked_for(model, PLAIN, trial.tried, "the data that run give NaN" if trial.ran else trial.problem)
    if trial.feed is None or trial.feed.name == samples[0].name:
        return samples
    chosen = f"{in_words(trial.feed)}, number {trial.tried} of those tried"
    _logger.warning("made-up data that the model accepts: %s: %s %s", chosen, option, " ".join(as_options(trial.feed)))
    return (trial.feed,)


def say_nothing(outputs: Mapping[str, "np.ndarray"]) -> bool:
    """Return whether outputs are no evidence: NaN in one of them, or each constant or nowhere finite."""
    found = outputs.values()
    return any(map(has_nan, found)) or all(is_constant(array) or not any_finite(array) for array in found)


def first_that_runs(engine: EngineSpec, model: Model, candidates: Iterable[Feed], lab: Lab) -> FeedTrial:
    """Run candidates in order until one gives outputs that are free of NaN and vary.

    Raises:
        EngineError: When the engine fails otherwise than by refusing the feed.
    """
    began = time.perf_counter()
    seconds = min(MOST_SECONDS, lab.budget.left)
    fallback, tried, ran, problem = None, 0, False, ""
    with lab.session(engine, model) as ask:
        for tried, feed in enumerate(itertools.islice(candidates, MOST_TRIED), start=1):
            try:
                outputs = ask(feed, what=f"trying made-up data {feed.name} on {engine}")
                ran = True
                if not say_nothing(outputs):
                    return FeedTrial(feed, tried, ran, problem, varied=True)
                if fallback is None and not any(map(has_nan, outputs.values())):
                    fallback, seconds = feed, min(seconds, time.perf_counter() - began + MOST_FOR_MORE)
            except RunFailed as error:
                problem = problem or error.message
            if time.perf_counter() - began > seconds:
                break
    return FeedTrial(fallback, tried, ran, problem)


def as_options(feed: Feed) -> tuple[str, ...]:
    """Return the shapes of a feed as ``--input-shapes`` takes them."""
    return tuple(f"{name}:[{','.join(map(str, array.shape))}]" for name, array in feed.tensors.items() if array.ndim)


def in_words(feed: Feed) -> str:
    """Return the shapes of a feed, and the numbers of scalars."""
    return some([f"{name} {_told(array)}" for name, array in feed.tensors.items()], 6)


def made_up_sizes(model: Model, feed: Feed, given: Mapping[str, Shape]) -> str:
    """Return the sizes of a feed that are ours and may decide, with how to give others; empty without any.

    The leading size, which is the batch, is none of them: with one row more the rows are computed alike.
    """
    shapes = given_shapes(model.inputs, given)
    opened = [spec.name for spec, axis in open_dimensions(model.inputs, shapes).values() if axis]
    named = {
        name: array
        for name, array in feed.tensors.items()
        if name in opened or (not array.ndim and array.dtype.kind in "iu")
    }
    if not named:
        return ""
    told = dataclasses.replace(feed, tensors=named)
    how = f"--input-shapes {' '.join(as_options(told)[:6])}" if opened else "--inputs"
    return f"on {'sizes' if opened else 'numbers'} that were made up: {in_words(told)} (give yours: {how})"


def _told(array: "np.ndarray") -> str:
    return f"= {array.reshape(-1)[0]}" if array.size == 1 and array.ndim < 2 else show_shape(array.shape)


def asked_for(model: Model, engine: EngineSpec, tried: int, why: str) -> DataError:
    """Return the question to the user where no made-up data run."""
    inputs = [f"{spec.name} {show_shape(spec.shape)}" for spec in model.inputs]
    return DataError(
        f"{engine} takes none of {tried} made-up feeds, so that data are needed for {some(inputs, 8)}: {why}",
        slug="made-up-data-fail",
        cure="give real data with --inputs, or sizes that the model takes with --input-shapes; where real data end in "
        "NaN as well, triage diagnose finds the node that makes it",
    )
