"""Does a result depend on the runs before it? Runs in a revealing order, in sessions that run nothing else.

One feed six times, another feed of its shapes, the first one twice, a feed of another shape twice, the first one twice.
A second session that gives the same answers in the same order shows that it is no race: the session keeps some state
between runs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import within_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.batch_rows import another_feed, batch_axes, gather_rows
from tensortriage.runs.questions.suggested_commands import triage_command

AT_FIRST = 6
"""Runs of one feed at first: five that differ would be warming up for long."""

QUESTION = "does a result depend on earlier runs?"
_KEPT = "find the state that persists between runs, and reset it"
_TOO_EARLY = (
    "wait until inputs are copied before a run, and until it has finished before its outputs are read (synchronize the "
    "stream); or two buffers are swapped"
)
_BOUND = "pass the engine the inputs of each run: it reuses those of the first"
_BY_SHAPE = "find the state left by the previous run; reset it when shapes change, or use one session per shape"
_WARM = "warm up: run it once before its results count, or find the buffer that is read before it is written"
_FIRST_IS_RIGHT = ", and only that one is right"
_Values = Mapping[str, np.ndarray]


@frozen_dataclass
class RunOrder:
    """How a result depends on earlier runs.

    Attributes:
        words: It as a clause; empty where it does not, or by chance.
        cure: Advice.
    """

    words: str = ""
    cure: str = ""


def run_order(inv: Investigation, feed: Feed, floors: Mapping[str, float]) -> RunOrder:
    """Return how the results of the deployed model on a feed depend on earlier runs.

    Args:
        inv: The investigation.
        feed: The feed.
        floors: Floors of the outputs, below which runs are equal.
    """
    place = inv.lab.derived(RunOrder, QUESTION, inv.question.target, inv.model, feed)
    try:
        found = place.of(lambda: _Sequences(inv, feed, floors).told())
    except (EngineError, ModelError, UsageError):
        return RunOrder()
    if found.words:
        inv.record.answered(QUESTION, f"yes: {found.words}", cure=found.cure)
    return found


NO_ORDER = RunOrder()
OVERWRITTEN = RunOrder(
    "each run overwrites the result buffer of the previous run, so that stored results change to those of the last run",
    "copy results before the next run, or return copies of the buffer",
)


def of_order(inv: Investigation, order: RunOrder, seen: str, culprits: Sequence[Culprit] = ()) -> Conclusion:
    """Return the verdict on a target whose results depend on earlier runs; ``seen`` is the size, as a clause."""
    return Conclusion(
        VerdictKind.NONDETERMINISTIC_RUN,
        OBSERVED,
        f"{inv.question.target} gives different results for equal inputs: {order.words}; {seen}. Cure: {order.cure}",
        culprits=culprits,
        next=[triage_command(inv.question, "check consistency", "--target", str(inv.question.target))],
    )


class _Sequences:
    """Two sessions with the same sequence of feeds, and their results."""

    def __init__(self, inv: Investigation, feed: Feed, floors: Mapping[str, float]) -> None:
        self.inv, self.feed, self.floors = inv, feed, floors
        self.other, self.larger = another_feed(inv.model, feed, inv.question.feeds), _of_another_shape(inv, feed)
        after_other = [self.other, feed, feed] if self.other else []
        after_larger = [self.larger, self.larger, feed, feed] if self.larger else []
        self.feeds = [*[feed] * AT_FIRST, *after_other, *after_larger]

    def run(self) -> list[_Values]:
        with self.inv.lab.session(self.inv.question.target, self.inv.model, sequence=True) as ask:
            return [dict(ask(each)) for each in self.feeds]

    def first_of_its_session(self, feed: Feed) -> _Values:
        with self.inv.lab.session(self.inv.question.target, self.inv.model, sequence=True) as ask:
            return dict(ask(feed))

    def alike(self, one: _Values, other: _Values) -> bool:
        """Return whether outputs are equal, or as near as floors allow."""
        return all(
            other[name].shape == array.shape
            and within_fp32(error_of(measure(array, other[name])), self.floors.get(name, 0.0))
            for name, array in one.items()
        )

    def told(self) -> RunOrder:
        runs, again = self.run(), self.run()
        if not all(map(self.alike, runs, again)):
            return RunOrder()
        settled, after_other = runs[AT_FIRST - 1], runs[AT_FIRST + 1] if self.other else None
        unlike = [not self.alike(settled, run) for run in runs[:AT_FIRST]]
        if (count := sum(unlike)) == AT_FIRST - 1:
            return RunOrder("every run differs, in any session: a result depends on how many runs came before", _KEPT)
        if after_other is not None and self.other is not None and not self.alike(settled, after_other):
            return self.after_another(settled, runs[AT_FIRST], after_other)
        if self.other is not None and self.alike(settled, runs[AT_FIRST]) and self.differ_by_right(self.other):
            return RunOrder("a run returns the results of the first feed of its session", _BOUND)
        if self.larger is not None and not self.alike(settled, runs[-2]):
            which = "the first run" if self.alike(settled, runs[-1]) else "each run"
            return RunOrder(f"{which} after a run of another shape gives another result", _BY_SHAPE)
        if count and all(unlike[:count]):
            which = (
                "the first run of a session gives another result"
                if count == 1
                else (f"the first {count} runs of a session give other results")
            )
            judged = self.judged(runs[0], settled)
            return RunOrder(f"{which}{judged}", _KEPT if judged == _FIRST_IS_RIGHT else _WARM)
        if self.other is not None and not self.alike(self.first_of_its_session(self.other), runs[AT_FIRST]):
            return RunOrder("something of the first feed of its session is left in the results of later ones", _KEPT)
        return RunOrder()

    def after_another(self, settled: _Values, on_other: _Values, after: _Values) -> RunOrder:
        """Return the effect on a run of a preceding run of another feed."""
        assert self.other is not None
        right = self.inv.lab.outputs(self.inv.question.reference, self.inv.model, self.other)
        if self.alike(settled, on_other) or self.near(right, after):
            return RunOrder("a run returns the results of the previous feed", _TOO_EARLY)
        if rows := _stale_rows(settled, after):
            return RunOrder(f"{rows} of the batch repeats the previous run",
                            "find the code that stops writing before the end of the batch")  # fmt: skip
        what = "a result depends on the feed that ran before it"
        return RunOrder(what, _KEPT)

    def differ_by_right(self, other: Feed) -> bool:
        """Return whether the reference makes more of another feed than the limits of this one allow for equal."""
        ask = self.inv.lab.outputs
        right, of_other = (ask(self.inv.question.reference, self.inv.model, each) for each in (self.feed, other))
        return not self.near(right, of_other)

    def near(self, right: _Values, made: _Values) -> bool:
        """Return whether outputs are those of another feed, by the limits of this one."""
        return all(
            name in made
            and made[name].shape == array.shape
            and error_of(measure(array, made[name])) <= max(1e-3, 100 * self.floors.get(name, 0.0))
            for name, array in right.items()
        )

    def judged(self, first: _Values, settled: _Values) -> str:
        """Return which of the first and the later runs are right, as a clause."""
        store = self.inv.golden.outputs(self.feed)
        golden = {spec.name: np.asarray(store[spec.name]) for spec in self.inv.model.outputs if spec.name in store}
        if self.near(golden, settled):
            return ", and later ones are right"
        return _FIRST_IS_RIGHT if self.near(golden, first) else ""


def _of_another_shape(inv: Investigation, feed: Feed) -> Feed | None:
    """Return a given feed of another shape, else one of one row more; None where the model takes none."""
    shapes = [{name: array.shape for name, array in each.tensors.items()} for each in (feed, *inv.question.feeds)]
    for other, found in zip(inv.question.feeds, shapes[1:], strict=True):
        if found != shapes[0]:
            return other
    axes = batch_axes(inv.model.inputs)
    own = axes.rows_in(feed) if axes is not None and axes.fixed is None else 0
    if axes is None or not own:
        return None
    rows = gather_rows(inv.model, [feed], axes, own + 1)
    return rows.batch(range(len(rows.rows)), "one row more") if len(rows.rows) > own else None


def _stale_rows(settled: _Values, after: _Values) -> str:
    """Return which rows alone are others, where it is the last one or the last ones; empty else."""
    found: set[int] = set()
    for name, array in settled.items():
        if array.ndim < 2 or len(array) < 2:
            return ""
        unlike = [not np.array_equal(one, other) for one, other in zip(array, after[name], strict=True)]
        if not any(unlike):
            continue
        if unlike[0] or not all(unlike[unlike.index(True) :]):
            return ""
        found.add(len(array) - unlike.index(True))
    if len(found) != 1:
        return ""
    count = found.pop()
    return "the last row" if count == 1 else f"each of the last {count} rows"
