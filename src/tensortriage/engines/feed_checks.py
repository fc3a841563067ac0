"""Common steps of in-process engines around a run: checking a feed, naming failures."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.errors import BuildFailed, DataError, RunFailed
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

MAX_REASON = 600
"""Longest engine message passed on, in characters."""


def checked_feed(feed: Mapping[str, np.ndarray], inputs: Sequence[ValueSpec]) -> dict[str, np.ndarray]:
    """Return the feed as C-contiguous arrays in native byte order (the same arrays where they already are).

    Args:
        feed: One array per input.
        inputs: Declared inputs of the session; an unknown dtype, rank or dimension accepts anything.

    Raises:
        DataError: For a missing or unknown input, another element type or another shape (slug ``feed-mismatch``).
    """
    wanted = {spec.name: spec for spec in inputs}
    missing = [name for name in wanted if name not in feed]
    unknown = [name for name in feed if name not in wanted]
    if missing or unknown:
        parts = [f"lacks {_quoted(missing)}"] if missing else []
        parts += [f"has {_quoted(unknown)}, which is no input"] if unknown else []
        raise _mismatch("the feed " + " and ".join(parts), f"feed exactly {_quoted(list(wanted))}")
    return {name: _checked(np.asarray(feed[name]), spec) for name, spec in wanted.items()}


def one_line(text: object) -> str:
    """Return an engine's message on one line, at most `MAX_REASON` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 3] + "..."


def build_failed(engine: str, reason: object, *, cure: str = "") -> BuildFailed:
    """Return the error for a model that an engine refused, with the engine's reason on one line."""
    message = f"{engine} refused the model: {one_line(reason) or 'no reason given'}"
    cure = cure or "triage debug reduce finds the smallest piece that it refuses"
    return BuildFailed(message, slug="build-failed", cure=cure)


def run_failed(engine: str, reason: object) -> RunFailed:
    """Return the error for a run that an engine gave up, with the engine's reason on one line."""
    return RunFailed(
        f"{engine} failed to run: {one_line(reason) or 'no reason given'}",
        slug="run-failed",
        cure="check that the feed fits the model (triage inspect data, inspect model); triage debug reduce finds the "
        "smallest model that fails",
    )


def closed(engine: str) -> RunFailed:
    """Return the error for using a session after its close."""
    return RunFailed(f"the {engine} session is closed", slug="session-closed", cure="compile the model again")


def _checked(array: np.ndarray, spec: ValueSpec) -> np.ndarray:
    found = DType.from_numpy(array.dtype)
    if spec.dtype is not None and found is not spec.dtype:
        raise _mismatch(
            f"input '{spec.name}' expects {spec.dtype.label}, the feed has {found.label}", "convert the array first"
        )
    if spec.shape is not None and not fits(array.shape, spec.shape):
        wanted = ", ".join("?" if d is None else str(d) for d in spec.shape)
        raise _mismatch(
            f"input '{spec.name}' expects shape ({wanted}), the feed has {array.shape}", "feed an array of that shape"
        )
    return np.asarray(array, dtype=None if found is DType.STRING else found.numpy, order="C")


def fits(shape: Sequence[int], declared: Sequence[int | str | None] | None) -> bool:
    """Return whether a shape fits a declared one; words, None and negative sizes fit any size, and None any shape."""
    return declared is None or (
        len(shape) == len(declared)
        and all(not isinstance(d, int) or d < 0 or d == size for size, d in zip(shape, declared, strict=True))
    )


def _mismatch(message: str, cure: str) -> DataError:
    return DataError(message, slug="feed-mismatch", cure=cure)


def _quoted(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:10])
    return (shown or "nothing") + (f" and {len(names) - 10} more" if len(names) > 10 else "")
