"""The judge of an investigation: the target's inner values that it may request, and the outputs of a feed to judge."""

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import beyond_any_share, is_decisive
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.function_pieces import (
    few_together,
    function_pieces,
    may_round_inside,
    only_together,
)
from tensortriage.diagnose.measurements.in_context.marked_values import marked_figures
from tensortriage.diagnose.measurements.local_errors.injection import influence
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.measurements.outputs import FeedResult, judged_outputs, with_decided
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import Fused, Together, Usual
from tensortriage.envelope.floors import expected_limits, floors_of
from tensortriage.envelope.judge import Judge, only
from tensortriage.envelope.limits import Limit
from tensortriage.envelope.registry import freedoms_of_target
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed


class Seen:
    """Observations of a target other than its outputs, made on demand (`SeenTarget` of `tensortriage.envelope`).

    Args:
        inv: The investigation.
        feed: The feed.
        inside: Figures of values in the target's own run; None where they are measured on demand.
        local: Its ops run one by one; None before that was done.
        refused: Why the ops do not run one by one, where that is known.
        pieces: Functions as it computes them; None where these are measured on demand.
    """

    def __init__(
        self,
        inv: Investigation,
        feed: Feed,
        *,
        inside: Mapping[str, Metrics] | None = None,
        local: Local | None = None,
        refused: str = "",
        pieces: Sequence[Wired] | None = None,
    ) -> None:
        self._inv, self._feed, self._inside, self._pieces = inv, feed, inside, pieces
        self.local, self.refused, self._windows_asked = local, refused, pieces is not None

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run, all of them marked; empty where it does not run so."""
        if self._inside is None:
            self._inside = {}
            with contextlib.suppress(EngineError):
                self._inside = marked_figures(self._inv, self._feed).figures.metrics
        return self._inside

    def alone(self, *, asked: bool = True) -> Local | None:
        """Return its ops run one by one; None where it cannot run them, or if they were not run and not ``asked``."""
        if self.local is None and asked and not self.refused:
            try:
                found = local_errors(self._inv, self._feed)
            except EngineError as error:
                self.refused = error.message
            else:
                if found.metrics or found.misshapen:
                    self.local = found
                else:  # nobody is right alone whom nobody saw
                    self.refused = f"{self._inv.question.target} shows none of their results"
        return self.local

    def are_harmless(self, values: Sequence[str]) -> bool:
        """Return whether the local errors of some ops, injected into the reference's run, do not make the error."""
        if self.local is None or any(value not in self.local.arrays for value in values):
            return False
        with contextlib.suppress(EngineError):
            return not is_decisive(influence(self._inv, self._feed, self.local.arrays, values).explained)
        return False

    def fused(self, *, windows: bool = False) -> Fused:
        """Return the measurements of functions fused with the nodes that make their operands."""
        inv = self._inv
        if self._pieces is None:
            self._pieces = function_pieces(inv, self._feed)
        if windows and not self._windows_asked and not any(each.wrong or each.taken for each in self._pieces):
            self._pieces, self._windows_asked = few_together(inv, self._feed), True
        wrong = [piece for piece in self._pieces if piece.wrong]
        rough = [piece for piece in wrong if may_round_inside(inv, [piece.ratio])]
        taken = [piece for piece in self._pieces if piece.taken]
        together = only_together(inv, self.local, taken) if self.local is not None else []
        chosen = {value: freedom for piece in together for value, (freedom, _) in piece.taken.items()}
        return Fused(chosen, bool(wrong), len(wrong) > len(rough))


def judge_of(
    inv: Investigation, result: FeedResult, *, floors: Floors | None = None, seen: Seen | None = None
) -> Judge:
    """Return the judge of the outputs that fail on a feed.

    Args:
        inv: The investigation.
        result: The outputs; their parts are judged as if they were outputs.
        floors: Floors of every layer; None for the outputs' own.
        seen: Further observations of the target; None without any.
    """
    failing = {name: result.figures[name] for name, within in result.within.items() if not within}
    errors = {name: _error(result, name) for name in failing}
    known = floors or result.floors
    if result.decided is not None:
        known = with_decided(known, result.decided)
    return Judge(inv.setting(result.feed), known, failing, errors=errors, shown=seen)


def left_by(inv: Investigation, result: FeedResult, *sets: Together) -> list[str]:
    """Return the outputs that stand out on a feed and that no set of explanations accounts for, by its cost alone."""
    judge = judge_of(inv, result)
    names = judge.standing_out
    explained = judge.take(only(*sets), names).limits
    return [name for name in names if name not in explained]


def _error(result: FeedResult, name: str) -> float:
    """Return how far off an output is; inf where that is no rounding: after a decision, or of whole numbers by half."""
    decided, allowed = result.decided, max(result.floors.in_fp32(name).error, result.floors.target.get(name, 0.0))
    if beyond_any_share(result.figures[name], allowed):
        return math.inf
    if decided is None or name not in decided.behind:
        return result.errors[name]
    return error_of(result.metrics[name]) if decided.valid(name, rounded=True) else math.inf


def observed_limits(
    inv: Investigation, feed: Feed, floors: Floors, figures: Mapping[str, Metrics], errors: Mapping[str, float]
) -> dict[str, Limit]:
    """Return the limits of outputs, for which the target may be asked for more than them.

    Args:
        inv: The investigation.
        feed: The feed.
        floors: Those of the outputs.
        figures: The outputs and parts of them.
        errors: How far off they are.
    """
    setting = inv.setting(feed)
    freedoms = freedoms_of_target(setting.target, Usual.EXPECTED, op_types=setting.op_types)
    judge = Judge(setting, floors, figures, errors=errors, shown=Seen(inv, feed))
    beyond = [name for name in figures if not judge.limit(name).allows(errors[name])]
    rows_ask = beyond and (freedoms or not setting.hardware.has_habits)
    if (rows_ask and judge.in_reach) or judge.excused:  # values inside are asked for
        floors = floors_of(setting, inv.question.values, what="every layer")
        judge = Judge(setting, floors, figures, errors=errors, shown=judge.shown)
    return judge.walk()


def healthy_outputs(inv: Investigation, feed: Feed) -> dict[str, Limit]:
    """Return the errors at the outputs, and at their parts, that healthy engines of the target's class may have."""
    golden, setting = inv.golden.of(feed), inv.setting(feed)
    counts = {name: int(np.prod(golden[name].shape, dtype=np.int64)) for name in judged_outputs(inv)}
    floors = floors_of(setting, list(counts), what="the outputs")
    counts |= {part.name: int(part.where.sum()) for part in setting.parts if part.name in floors.fp32}
    return expected_limits(setting, floors, counts)
