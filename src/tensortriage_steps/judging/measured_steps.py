"""One step after the other: the target on the reference's states, and in parallel the target on its own.

With equal feeds, both engines answer the same question at every step, so that the first wrong step is the place of the
fault. On its own states the target drifts, as any healthy engine does by rounding; its limit is the drift of the
healthy evaluations that carry on their own states as well.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.api import EngineError, EngineSpec, Feed, Model, measure
from tensortriage.envelope.sdk import (
    Judgement,
    Lab,
    Limit,
    Metrics,
    NextToken,
    compare_next,
    draws_of,
    error_of,
    judged_by,
    measure_many,
    mismatched,
    require_numbers,
    resolve,
)
from tensortriage.sdk import HealthyJudge, ModelError, UsageError
from tensortriage_steps.feeds.next_feed import Arrays, Run, last_scores
from tensortriage_steps.feeds.state_parts import StatePart
from tensortriage_steps.feeds.step_feeds import TARGET, StepFeeds
from tensortriage_steps.judging.drawn_limits import Walked, in_doubt, with_drawn_limits
from tensortriage_steps.judging.draws import Draws
from tensortriage_steps.judging.healthy_runs import EvaluatedStep, HealthyRuns
from tensortriage_steps.judging.ties import is_tie, lead
from tensortriage_steps.steps_report import HANDED_ON, StepRow, StepValue

Found = EvaluatedStep
Parts = Mapping[str, Sequence[StatePart]]


class MeasuredSteps:
    """All steps of a model on two engines, measured as they are made.

    Args:
        lab: Lab that answers for engines.
        model: The model.
        feeds: Feeds of the steps.
        reference: The engine assumed to be right.
        target: The engine under suspicion.
        drift: Whether the target is also run on its own states.

    Attributes:
        feeds: Feeds of the steps.
        notes: Figures that are missing, each with its reason.
        open_feeds: The feeds of steps that seem wrong by their own limits, by their number.
    """

    def __init__(
        self,
        lab: Lab,
        model: Model,
        feeds: StepFeeds,
        *,
        reference: EngineSpec,
        target: EngineSpec,
        drift: bool,
    ) -> None:
        self._lab, self._model, self.feeds = lab, model, feeds
        self._reference, self._target = reference, target
        self._precision = resolve(target).precision
        self._drifts = drift and feeds.keeps_states
        self.healthy: HealthyRuns | None = HealthyRuns(lab, model, target=target)
        places = {node.name: place for place, node in enumerate(model.graph.nodes)}
        makers = {spec.name: model.graph.producer(spec.name) for spec in model.outputs}
        self._places = {name: places[maker.name] if maker else -1 for name, maker in makers.items()}
        self._order = sorted(makers, key=self._places.__getitem__)
        self.notes: list[str] = []
        self.open_feeds: dict[int, Arrays] = {}

    def drop_reference(self) -> None:
        """Let go of the reference's session."""
        self._lab.drop(self._reference, self._model)

    def rows(self, say: Callable[[str], None]) -> Iterator[StepRow]:
        """Yield every step.

        Raises:
            EngineError: When the reference fails; failures of the target are in the row.
            DataError: When the reference gives NaN.
        """
        feed: Arrays = self.feeds.first
        before: tuple[Arrays, Arrays] | None = None
        alone: _OwnStates | None = None
        with contextlib.ExitStack() as closing:
            taught = closing.enter_context(self.another_target())
            for step in range(self.feeds.steps):
                say(f"step {step}")
                with _at_step(step):
                    feed, reference = self.feeds.taken(step, before, feed, self.reference)
                require_numbers([(f"step {step}", reference)])
                if self._drifts and not step:
                    alone = _OwnStates(self, feed, closing)
                row = self._row(step, feed, reference, taught)
                following = self.feeds.after(step, feed, reference)
                if row.outside:
                    self.open_feeds[step] = feed
                if alone is not None and not row.failure:
                    row = alone.added(step, row, reference, self.parts(feed, reference), following)
                yield row
                before, feed = (feed, reference), following

    def by_chance(self, rows: tuple[StepRow, ...]) -> tuple[StepRow, ...]:
        """Return rows with limits that allow for the chance in rounding, where that may explain their errors."""
        count = draws_of(self._precision)
        if not count or self.feeds.scripted or not in_doubt(rows):
            return rows
        try:
            with Draws(self._lab, self._model, self._precision, feed=self.feeds.first) as draws:
                return with_drawn_limits(rows, draws, count, self._walked(len(rows)), self.feeds)
        except (EngineError, ModelError, UsageError) as error:
            self.notes.append(f"chance is unknown: {error.message}")
            return rows

    def _walked(self, steps: int) -> Iterator[Walked]:
        feed: Arrays = self.feeds.first
        for step in range(steps):
            reference = self.reference(feed)
            following = self.feeds.after(step, feed, reference) if step < steps - 1 else feed
            yield Walked(feed, following, self.parts(feed, reference))
            feed = following

    # -- one step ------------------------------------------------------------------------------------------------------

    def _row(self, step: int, feed: Arrays, reference: Arrays, taught: Run) -> StepRow:
        length = self.feeds.length(feed)
        failed = StepValue(next(iter(reference)), np.inf, np.inf, False)
        try:
            outputs = taught(feed)
        except EngineError as error:
            return StepRow(step, length, (failed,), failure=error.message)
        if problem := mismatched(reference, outputs):
            return StepRow(step, length, (failed,), failure=problem)
        found = self.evaluated(lambda healthy: healthy.on(feed))
        values = self.judged(reference, outputs, found, self.parts(feed, reference), feed)
        row = StepRow(step, length, values)
        token = self.next_token(reference, outputs)
        if token is None:
            return row
        margin = tie = None
        if found is not None:
            margin, tie = self._lead(reference[self.feeds.roles.logits], token, found)
        return dataclasses.replace(
            row,
            divergence=token.divergence,
            top_agreement=token.top_agreement,
            margin=margin,
            tokens=(token.reference, token.target),
            tie=tie,
        )

    def _lead(self, logits: np.ndarray, token: NextToken, found: Found) -> tuple[float, bool | None]:
        """Return the lead of the reference's tokens over a healthy engine's error, and whether others tie."""
        scores, radius = last_scores(logits), last_scores(found.radius(self.feeds.roles.logits, np.asarray(logits)))
        ours, theirs = np.array(token.reference), np.array(token.target)
        return lead(scores, radius), None if token.same else is_tie(ours, theirs, scores, radius)

    def evaluated(self, ask: Callable[[HealthyRuns], Found]) -> Found | None:
        """Return the results of the healthy evaluations; None, with a note, where there are none."""
        if self.healthy is None:
            return None
        try:
            return ask(self.healthy)
        except (EngineError, UsageError) as error:
            self.healthy = None
            self.notes.append(f"the model cannot be evaluated exactly, so that no drift is predicted: {error.message}")
            return None

    def judged(
        self, reference: Arrays, outputs: Arrays, found: Found | None, parts: Parts, feed: Arrays
    ) -> tuple[StepValue, ...]:
        """Judge all outputs on the reference's states; without healthy evaluations by the noise floor of the feed.

        In the order of the graph; of one node's results, as of the If of a merged decoder, the worst first.

        Args:
            reference: The reference's outputs.
            outputs: The target's.
            found: Outputs of the healthy evaluations; None without any.
            parts: Parts of the outputs, which are judged apart: errors of a step are in few of all rows.
            feed: The feed.
        """
        if found is not None:
            each = ((n, p) for n in self._order if n in reference for p in parts[n])
            values = [self._part(name, part, reference[name], outputs[name], found) for name, part in each]
            return tuple(sorted(values, key=lambda value: (self._places[value.value], -value.ratio)))
        figures = dict(measure_many((name, array, outputs[name]) for name, array in reference.items()))
        judge = HealthyJudge(self._model, reference=self._reference, target=self._target, lab=self._lab)
        named = Feed("step", feed, self.feeds.origin)
        judged = judge.judge(named, figures, {n: np.asarray(a) for n, a in reference.items()})
        return tuple(_value(name, figures[name], judged[name]) for name in self._order if name in reference)

    def drifted(
        self, reference: Arrays, outputs: Arrays, found: Found, parts: Parts, feeds: Mapping[str, Arrays]
    ) -> tuple[StepValue, ...]:
        """Judge all outputs on the target's own states: computed ones by drift, others by being carried over unchanged.

        Args:
            reference: The reference's outputs.
            outputs: The target's.
            found: Outputs of the healthy evaluations on their own states.
            parts: Parts of the outputs.
            feeds: Feeds of the target, under `TARGET`, and of the healthy evaluations.
        """
        inputs = {pair.output: pair.input for pair in self.feeds.roles.carry}
        each = []
        for name, part in ((n, p) for n in self._order if n in reference for p in parts[n]):
            if part.source is None:
                each.append(self._part(name, part, reference[name], outputs[name], found))
                continue
            given = {who: np.asarray(feed[inputs[name]]) for who, feed in feeds.items()}
            right, made = given[TARGET][part.source], np.asarray(outputs[name])[part.place]
            limit = found.kept(given, name, part.place, part.source)
            each.append(self._judged(name, HANDED_ON, right, made, limit))
        return tuple(each)

    def _part(self, name: str, part: StatePart, right: np.ndarray, given: np.ndarray, found: Found) -> StepValue:
        limit = found.limit(name, lambda array: array[part.place])
        return self._judged(name, part.word, np.asarray(right)[part.place], np.asarray(given)[part.place], limit)

    def _judged(self, name: str, word: str, right: np.ndarray, given: np.ndarray, limit: Limit) -> StepValue:
        figure = measure(right, given)
        judged = judged_by(limit, figure, format_name=self._precision.value)
        return StepValue(name, error_of(figure), judged.ratio, judged.within, limit.error, word)

    def parts(self, feed: Arrays, reference: Arrays) -> Parts:
        """Return the parts of the outputs of a step, by the reference's results."""
        return {name: self.feeds.roles.parts(name, feed, np.asarray(array)) for name, array in reference.items()}

    def again(self, feed: Arrays) -> bool:
        """Return whether a step is wrong in a new session of the target as well."""
        with self.another_target() as fresh:
            return bool(self._row(0, feed, self.reference(feed), fresh).outside)

    def next_token(self, reference: Arrays, outputs: Arrays) -> NextToken | None:
        """Compare the next token; None without logits."""
        name = self.feeds.roles.logits
        if not name or name not in reference:
            return None
        return compare_next(last_scores(reference[name]), last_scores(outputs[name]))

    def reference(self, feed: Arrays) -> Arrays:
        """Return the reference's results on a feed."""
        named = Feed("step", feed, self.feeds.origin)
        return self._lab.outputs(self._reference, self._model, named, repetition=None)

    def another_target(self) -> contextlib.AbstractContextManager[Run]:
        """Return another session of the target, which no other runs disturb."""
        return self._lab.session(self._target, self._model, sequence=True)


class _OwnStates:
    """The target on its own states, and the healthy evaluations on theirs; all take the reference's tokens."""

    def __init__(self, steps: MeasuredSteps, first: Arrays, closing: contextlib.ExitStack) -> None:
        self._steps = steps
        self._run = closing.enter_context(steps.another_target())
        self._feeds: Mapping[str, Arrays] = dict.fromkeys(
            (TARGET, *(steps.healthy.names if steps.healthy else ())), first
        )

    def added(self, step: int, row: StepRow, reference: Arrays, parts: Parts, following: Arrays) -> StepRow:
        """Return the row of a step with the target's results on its own states."""
        steps = self._steps
        if not self._feeds or steps.healthy is None:
            return row
        try:
            outputs = self._run(self._feeds[TARGET])
            problem = mismatched(reference, outputs)
        except EngineError as error:
            problem = error.message
        if problem:
            steps.notes.append(f"on its own states the target stops at step {step}: {problem}")
            self._feeds = {}
            return row
        found = steps.evaluated(lambda healthy: healthy.each_on(self._feeds))
        if found is None:
            return row
        drifted = steps.drifted(reference, outputs, found, parts, self._feeds)
        made = {**found.values, TARGET: outputs}
        self._feeds = {who: steps.feeds.own(who, step, fed, made[who], following) for who, fed in self._feeds.items()}
        return dataclasses.replace(row, drifted=drifted)


@contextlib.contextmanager
def _at_step(step: int) -> Iterator[None]:
    """Name the step at which the reference fails."""
    try:
        yield
    except EngineError as error:
        if not step:
            raise
        cure = f"if a cache of a fixed size is full: --steps {step}; else {error.cure}"
        raise type(error)(f"at step {step}: {error.message}", slug=error.slug, cure=cure) from error


def _value(name: str, figure: Metrics, judgement: Judgement) -> StepValue:
    return StepValue(name, error_of(figure), judgement.ratio, judgement.within)
