"""Parts of a request that many commands share: data, limits, tolerances."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tensortriage.cli.options import parse_bytes
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.base import Limits
from tensortriage.inputs.syntax import parse_named, parse_number, parse_ranges, parse_shapes
from tensortriage.runs.scripts import METRIC, Arrays, ScriptFunction
from tensortriage.workflows.common.feed_request import FeedRequest

LOW_MEMORY_BATCH_BYTES = 64 << 20
"""Captured tensors held at once with ``--low-memory``."""
_OLD_SHAPE = re.compile(r"^([^:,]+),(-?\d+(?:x-?\d+)*)$")


def feed_request(given: dict[str, Any], *, most: int | None) -> FeedRequest:
    """Take the data options out of a command's options.

    ``--inputs NAME:[SHAPE]``, as Polygraphy has it, is a shape, and so is ``NAME,1x3x224x224``, as it once was.
    """
    words = given.pop("inputs")
    shapes = tuple(word for word in words if (word.endswith("]") and ":[" in word) or _OLD_SHAPE.fullmatch(word))
    return FeedRequest(
        paths=tuple(word for word in words if word not in shapes),
        script=given.pop("data_loader_script"),
        seed=given.pop("seed"),
        iterations=given.pop("iterations"),
        value_ranges=parse_ranges(given.pop("val_range")),
        shapes=parse_shapes(_OLD_SHAPE.sub(r"\1:\2", word) for word in (*given.pop("input_shapes"), *shapes)),
        most=most,
        limits=limits_of(given.get("timeout"), given.get("memory_limit") or ""),
    )


def limits_of(timeout: float | None, memory_limit: str) -> Limits:
    """Return limits from the options; the defaults where they are not given."""
    return Limits(timeout or Limits().build_seconds, timeout, parse_bytes(memory_limit))


def metric_of(script: str | None, given: Mapping[str, Any]) -> Callable[[Arrays, Arrays], float] | None:
    """Return the task metric of a script; None without one."""
    if not script:
        return None
    return ScriptFunction(script, METRIC, limits_of(given.get("timeout"), given.get("memory_limit") or "")).number


def tolerance_of(given: Mapping[str, Any]) -> PolygraphyTolerance | None:
    """Return the tolerance that --atol and --rtol stand for; None without them (the noise floor judges)."""
    atol, rtol = parse_named(given["atol"], parse_number), parse_named(given["rtol"], parse_number)
    return PolygraphyTolerance(atol=atol, rtol=rtol) if atol or rtol else None
