"""Parts of a request that many commands share: data, limits, tolerances, when to stop."""

import re
from collections.abc import Callable

from tensortriage.cli import guard
from tensortriage.cli.option_values import DataValues, ToleranceValues
from tensortriage.cluster.cluster_spec import ClusterSpec
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.base import Limits
from tensortriage.errors import UsageError
from tensortriage.inputs.syntax import parse_named, parse_number, parse_ranges, parse_shapes
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.scripts import METRIC, Arrays, ScriptFunction
from tensortriage.search.statistics.stop_rule import Until
from tensortriage.values.text import parse_bytes

LOW_MEMORY_BATCH_BYTES = 64 << 20
"""Captured tensors held at once with ``--low-memory``."""
_OLD_SHAPE = re.compile(r"^([^:,]+),(-?\d+(?:x-?\d+)*)$")


def feed_request(given: DataValues, *, most: int | None, limits: Limits | None = None) -> FeedRequest:
    """Return what the data options ask for.

    ``--inputs NAME:[SHAPE]``, as Polygraphy has it, is a shape, and so is ``NAME,1x3x224x224``, as it once was.

    Args:
        given: The options.
        most: Most feeds; None for all.
        limits: Of the script that yields the data.
    """
    words = given["inputs"]
    shapes = tuple(word for word in words if (word.endswith("]") and ":[" in word) or _OLD_SHAPE.fullmatch(word))
    return FeedRequest(
        paths=tuple(word for word in words if word not in shapes),
        script=given["data_loader_script"],
        seed=given["seed"],
        iterations=given["iterations"],
        value_ranges=parse_ranges(given["val_range"]),
        shapes=parse_shapes(_OLD_SHAPE.sub(r"\1:\2", word) for word in (*given["input_shapes"], *shapes)),
        most=most,
        limits=limits or Limits(),
    )


def limits_of(timeout: float | None, memory_limit: str) -> Limits:
    """Return limits from the options; the defaults where they are not given."""
    return Limits(timeout or Limits().build_seconds, timeout, parse_bytes(memory_limit))


def metric_of(script: str | None, limits: Limits) -> Callable[[Arrays, Arrays], float] | None:
    """Return the task metric of a script, which is held to limits; None without one."""
    return ScriptFunction(script, METRIC, limits).number if script else None


def tolerance_of(given: ToleranceValues) -> PolygraphyTolerance | None:
    """Return the tolerance that --atol and --rtol stand for; None without them (the noise floor judges)."""
    atol, rtol = parse_named(given["atol"], parse_number), parse_named(given["rtol"], parse_number)
    return PolygraphyTolerance(atol=atol, rtol=rtol) if atol or rtol else None


def until_of(text: str, most: int, *, noun: str, slug: str) -> tuple[Until, int]:
    """Return when something is repeated often enough, and how often at most.

    Args:
        text: ``good``, ``bad``, ``sure`` or a number.
        most: How often at most where no number is given.
        noun: What is repeated, in the plural.
        slug: Slug of the error.

    Raises:
        UsageError: For any other text, with the slug.
    """
    word = text.lower()
    if word in (Until.SURE.value, Until.GOOD.value, Until.BAD.value):
        return Until(word), most
    if word.isdecimal() and int(word) > 0:
        return Until.COUNT, int(word)
    cure = f"give good, bad, sure, or a number of {noun} of at least 1"
    raise UsageError(f"--until {text} is not understood", slug=slug, cure=cure)


def cluster_of(text: str) -> ClusterSpec | None:
    """Return the cluster that ``--cluster`` names; None without one."""
    if not text:
        return None
    guard.about_to_use_cluster()
    return ClusterSpec.parse(text)
