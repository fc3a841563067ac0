"""The judge of an investigation: what it may ask of the target, and which outputs of a feed it is asked about."""

import contextlib
import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.measurements.marked_values import asked_values
from tensortriage.diagnose.measurements.outputs import FeedResult, judged_outputs
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import Usual
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.judge import Judge, expected_limits
from tensortriage.envelope.limits import Limit
from tensortriage.envelope.registry import freedoms_of_target
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.values.store import TensorStore


class Seen:
    """What is known of a target beside its outputs, or asked of it: a `tensortriage.envelope.judge.SeenTarget`.

    Args:
        inv: The investigation.
        feed: The feed.
        inside: Figures of values in the target's own run.
        local: Its ops run one by one; None where that was not asked yet.
    """

    def __init__(self, inv: Investigation, feed: Feed, inside: Mapping[str, Metrics], local: Local | None) -> None:
        self._inv, self._feed, self._inside, self._local = inv, feed, inside, local

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run, as far as it was looked at."""
        return self._inside

    def alone(self) -> Local:
        """Return its ops run one by one, which are asked for where they were not.

        Raises:
            EngineError: When the target does not run them.
        """
        if self._local is None:
            self._local = local_errors(self._inv, self._feed)
        return self._local


class _Asked(Seen):
    """A target of which nothing is known yet but its outputs."""

    def __init__(self, inv: Investigation, feed: Feed) -> None:
        super().__init__(inv, feed, {}, None)
        self._looked = False

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run, all of them marked; empty where it does not run so."""
        if not self._looked:
            self._looked, inv, target = True, self._inv, self._inv.question.target
            with contextlib.suppress(EngineError):
                golden, what = inv.golden.of(self._feed), f"every layer on {target}"
                asked = asked_values(inv, golden)
                shown = inv.lab.figures(target, inv.model, self._feed, asked, against=golden, what=what, partly=True)
                self._inside = shown.figures.metrics
        return self._inside


def judge_of(
    inv: Investigation,
    result: FeedResult,
    *,
    floors: Floors | None = None,
    inside: Mapping[str, Metrics] | None = None,
    local: Local | None = None,
) -> Judge:
    """Return the judge of the outputs that fail on a feed.

    Args:
        inv: The investigation.
        result: The outputs.
        floors: Those of every layer; None for the outputs' own.
        inside: Figures of values inside the target's own run, which explanations have to account for where they need
            that; None for nothing.
        local: The target's ops run one by one; None where they are asked for when that is needed.
    """
    failing = {name: result.metrics[name] for name, within in result.within.items() if not within}
    errors = {name: _error(result, name) for name in failing}
    known, behind = floors or result.floors, result.decided.behind if result.decided is not None else {}
    fp32 = {**known.fp32, **{name: result.floors.fp32[name] for name in behind if name in result.floors.fp32}}
    target = {**known.target, **{name: result.floors.target[name] for name in behind if name in result.floors.target}}
    known = dataclasses.replace(known, fp32=fp32, target=target)  # of what is decided, once the decisions are given
    shown = Seen(inv, result.feed, inside or {}, local)
    return Judge(inv.setting(result.feed), known, failing, errors=errors, shown=shown)


def _error(result: FeedResult, name: str) -> float:
    """Return how far off an output is; inf after a decision that rounding does not explain."""
    decided = result.decided
    if decided is None or name not in decided.behind:
        return result.errors[name]
    return error_of(result.metrics[name]) if decided.valid(name, rounded=True) else math.inf


def limits_of(
    inv: Investigation,
    feed: Feed,
    figures: Mapping[str, Metrics],
    *,
    golden: TensorStore,
    apart: Mapping[str, float],
    asked: bool,
) -> dict[str, Limit]:
    """Return the limits of tensors of a model whose figures are known.

    Args:
        inv: The investigation.
        feed: The feed.
        figures: Outputs, which the walk judges, or values inside.
        golden: The reference's values of them.
        apart: By how much of each error the model itself is another, by name.
        asked: Whether the target may be asked for more.
    """
    setting, names = inv.setting(feed), [name for name in inv.question.values if name in figures]
    names = names or list(figures)
    floors = floors_of(setting, names, golden=golden, what="the outputs")
    errors = {name: max(error_of(figure) - apart.get(name, 0.0), 0.0) for name, figure in figures.items()}
    plain = {name: floors.limit(name, figure.count) for name, figure in figures.items()}
    beyond = {name: figures[name].count for name, limit in plain.items() if not limit.allows(errors[name])}
    if not {spec.name for spec in inv.model.outputs}.issuperset(figures):  # who has values shown looks for the op
        return plain | expected_limits(setting, floors, beyond)
    freedoms = freedoms_of_target(setting.target, Usual.EXPECTED, op_types=setting.op_types)
    if asked and beyond and (freedoms or not setting.hardware.has_habits):  # rows that need values inside
        floors = floors_of(setting, inv.question.values, golden=golden, what="every layer")
    shown = _Asked(inv, feed) if asked else None
    return Judge(setting, floors, figures, errors=errors, shown=shown).walk()


def healthy_outputs(inv: Investigation, feed: Feed) -> dict[str, Limit]:
    """Return what healthy engines of the target's class may be off by at the outputs, whatever it makes of them."""
    golden = inv.golden.of(feed)
    counts = {name: int(np.prod(golden[name].shape, dtype=np.int64)) for name in judged_outputs(inv)}
    setting = inv.setting(feed)
    return expected_limits(setting, floors_of(setting, list(counts), what="the outputs"), counts)
