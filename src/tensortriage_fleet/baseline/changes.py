"""Changes against a baseline: the model, its data, the engine, a version, an output, the verdict.

An output is unchanged while it lies within a healthy engine's limit. If it did not when it was saved, because the
engine is wrong, or takes a freedom that a diagnosis checked, it is unchanged while it is no further from the saved one
than two healthy engines may be from each other (`tensortriage.diagnose`: both limits together). Beyond that it is a
change, unless a diagnosis of the whole acquits it.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from tensortriage.sdk import error_size, percent, times
from tensortriage_fleet.baseline.baseline_file import Baseline, SavedOutput, SavedTarget, SavedVerdict
from tensortriage_fleet.baseline.figures import KeptDistance, KeptTensor, distance
from tensortriage_fleet.baseline.measured import BaselineModel, MeasuredTarget

MOST = 4
"""Names that a sentence lists."""
UNSTEADY = ("intermittent", "nondeterministic-run")
"""Verdicts on engines whose outputs vary."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One difference between a baseline and the current measurement.

    Attributes:
        what: ``output``, ``verdict``, ``model``, ``data``, ``engine``, ``version`` or ``missing``.
        sentence: The former and the current state, for people.
        feed: Feed of an output.
        output: Name of an output.
        error: The output's relative error, against the right one, or else against the saved one.
        limit: The limit of that.
        ratio: Error relative to it.
        nodes: Nodes of the model that are others, as ``Conv 'name'``; culprits of a verdict.
    """

    what: str
    sentence: str
    feed: str = ""
    output: str = ""
    error: float | None = None
    limit: float | None = None
    ratio: float | None = None
    nodes: tuple[str, ...] = ()


def changed_premises(saved: Baseline, target: SavedTarget, now: MeasuredTarget) -> Iterator[Change]:
    """Yield how model, data, engine and versions differ from those of a baseline."""
    if saved.model.sha256 != now.model.sha256:
        yield _changed_model(saved.model, now.model)
    yield from _changed_data(saved, now)
    before, after = target.engine, now.engine
    for word in ("spec", "precision", "hardware", "device"):
        if getattr(before, word) != getattr(after, word):
            name = {"spec": "the engine", "hardware": "class of hardware"}.get(word, word)
            yield Change("engine", f"{name} was {getattr(before, word)}, is {getattr(after, word)}")
    code = _others(before.code, after.code)
    if code:
        yield Change("engine", f"the engine's code changed: {_listed(code)}")
    for name in _others(target.versions, now.versions):
        what = after.spec.partition(":")[0] if name == "engine" else name
        yield Change("version", f"{what} {target.versions.get(name, '-')} -> {now.versions.get(name, '-')}")


def changed_outputs(saved: Baseline, target: SavedTarget, now: MeasuredTarget) -> Iterator[Change]:
    """Yield the outputs that changed."""
    if now.problem != target.problem:
        yield Change("output", now.problem or f"it runs now, and did not before: {target.problem}")
        return
    for feed, outputs in target.outputs.items():
        found = now.outputs.get(feed, {})
        for name, kept in outputs.items():
            right = saved.golden.get(feed, {}).get(name)
            if name not in found:
                yield Change("output", f"'{name}' is not there", feed, name, math.inf, kept.limit, math.inf)
            else:
                yield from _moved(feed, name, kept, right, found[name])


def changed_verdict(before: SavedVerdict, after: SavedVerdict) -> Change | None:
    """Return how a verdict, or the first culprit of one, differs; None where it does not."""
    if before.verdict != after.verdict:
        return Change("verdict", f"{before.verdict} -> {_verdict_words(after)}", nodes=after.culprits)
    if before.culprits[:1] != after.culprits[:1]:
        was = before.culprits[0] if before.culprits else "no op"
        return Change("verdict", f"{before.verdict} at {was} -> {_verdict_words(after)}", nodes=after.culprits)
    return None


def acquitted(verdict: SavedVerdict) -> bool:
    """Whether changed outputs are healthy, or within the variation of an unsteady engine."""
    return verdict.exit_code == 0 or verdict.verdict in UNSTEADY


def limit_now(kept: SavedOutput) -> tuple[float | None, bool]:
    """Return the limit of an output, and whether it limits the distance from the right result."""
    if kept.limit is None or kept.error is None:
        return None, False
    by_right = kept.error <= kept.limit
    return (kept.limit if by_right else 2.0 * kept.limit), by_right


def _moved(feed: str, name: str, kept: SavedOutput, right: KeptTensor | None, found: KeptTensor) -> Iterator[Change]:
    if distance(kept.target, found).error == 0.0:
        return
    limit, by_right = limit_now(kept)
    apart: KeptDistance = distance(right if by_right and right is not None else kept.target, found)
    if limit is not None and apart.within(limit):
        return
    ratio = None if not limit else apart.error / limit
    off = "off" if by_right else "away from the saved one"
    known = f", {times(ratio)} its limit" if ratio is not None else ""
    shape = f" (shape {list(kept.target.shape)} -> {list(found.shape)})" if kept.target.shape != found.shape else ""
    size = (
        f"{error_size(apart.error)} {off}"
        if not apart.exact
        else f"different in {percent(apart.error)} of its elements"
    )
    yield Change("output", f"'{name}' is {size}{shape}{known}", feed, name, apart.error, limit, ratio)


def _changed_model(before: BaselineModel, after: BaselineModel) -> Change:
    names = [name for name in _others(before.nodes, after.nodes) if name in after.nodes]
    others = [f"{after.nodes[name].partition(' ')[0]} '{name}'" for name in names]
    gone = [name for name in before.nodes if name not in after.nodes]
    clauses = []
    if len(others) + len(gone) > len(after.nodes) / 2:
        clauses.append(f"{len(others)} of {len(after.nodes)} nodes changed")
    elif others:
        clauses.append(f"{_listed(others)} changed")
    if gone:
        clauses.append(f"{_listed([repr(name) for name in gone])} left")
    return Change("model", "; ".join(clauses) or "inputs, outputs or bodies of nodes changed", nodes=tuple(others))


def _changed_data(saved: Baseline, now: MeasuredTarget) -> Iterator[Change]:
    before, after = saved.data.feeds, now.data.feeds
    if len(before) != len(after):
        yield Change("data", f"{len(after)} feeds, {len(before)} before")
        return
    for (old, was), (new, is_now) in zip(sorted(before.items()), sorted(after.items()), strict=True):
        others = _others(was, is_now)
        if others or old != new:
            named = f"feed '{new}'" + ("" if old == new else f" in place of '{old}'")
            yield Change("data", f"{named}: {_listed([repr(name) for name in others]) or 'no input'} changed")


def _others(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names whose contents differ, in the current order."""
    names = dict.fromkeys((*after, *before))
    return [name for name in names if before.get(name) != after.get(name)]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _verdict_words(verdict: SavedVerdict) -> str:
    return f"{verdict.verdict} at {verdict.culprits[0]}" if verdict.culprits else verdict.verdict
