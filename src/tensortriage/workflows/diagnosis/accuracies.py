"""The user's task metric on reference, target and remedy, over all inputs, not those few that are investigated."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from tensortriage.compare.task_metric import TaskAccuracy
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError, EngineError, EngineMissing
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.questions.question import Question
from tensortriage.runs.task_metric import TaskMetric
from tensortriage.workflows.comparison.task_scores import TaskScores

QUESTION = "what is the task metric?"

MOST_FEEDS = 1000
"""Feeds that are scored at most: an interval of accuracy is then within 3 %, and a paired one much less."""


@frozen_dataclass
class Accuracies:
    """The engines to score, and the metric.

    Attributes:
        inv: The investigation that has ended.
        asked: The user's question.
        least: The smallest mean that will do; None for that of the reference.
        feeding: The source of all feeds.
    """

    inv: Investigation
    asked: Question
    metric: TaskMetric
    least: float | None
    feeding: FeedRequest

    def compared(self) -> TaskAccuracy | None:
        """Return reference and target on all feeds; recorded as a step; None where one of them does not answer."""
        try:
            found = self._on(self.asked.target, self.asked.target_model or self.asked.model)
        except BudgetSpent:
            self.inv.record.unasked(QUESTION)
        except (EngineError, EngineMissing, DataError) as problem:
            self.inv.record.answered(QUESTION, f"unknown: {problem.message}")
        else:
            self.inv.record.answered(QUESTION, found.words, reference=found.reference, target=found.target)
            return found
        return None

    def of(self, spec: EngineSpec, model: Model) -> TaskAccuracy | None:
        """Return reference and a changed model, or a changed engine, as target; None where one does not answer."""
        with contextlib.suppress(EngineError, EngineMissing, DataError, BudgetSpent):
            return self._on(spec, model)
        return None

    def _on(self, spec: EngineSpec, model: Model) -> TaskAccuracy:
        """Return reference and a target on all feeds.

        Raises:
            DataError: When the metric is no number on some feed (``script-not-number``), or fails.
        """
        scores, words = self._scored(spec, model), self.metric.words
        found = scores.compared("reference", ["target"])
        if not found:
            raise DataError(f"{words} is no number on some input", slug="script-not-number", cure="return a number")
        means = scores.means
        return TaskAccuracy(words, means["reference"], means["target"], found[0], least=self.least)

    def _scored(self, spec: EngineSpec, model: Model) -> TaskScores:
        """Return the scores of the reference and of another side, feed by feed."""
        scores, lab, asked = TaskScores(), self.inv.lab, self.asked
        names = [output.name for output in asked.model.outputs]
        right = lab.session(asked.reference, asked.model, sequence=True)
        with right as expects, lab.session(spec, model, sequence=True) as run:
            for feed in self._feeds():
                lab.progress(f"scoring {feed.name} on {spec}")
                expected = expects(feed)
                found = run(check_feed(feed, model.inputs, casting=Casting.ROUND))
                for who, outputs in (("reference", expected), ("target", found)):
                    own = {output: outputs[output] for output in names if output in outputs}
                    scores.add(who, feed, own, self.metric.scores(own, feed, expected))
        return scores

    def _feeds(self) -> Iterator[Feed]:
        if self.feeding.chooses or self.feeding.given:
            return iter(self.inv.question.feeds)
        every = dataclasses.replace(self.feeding, most=None)
        return itertools.islice(feeds(every, self.asked.model), MOST_FEEDS)


@frozen_dataclass
class WantedFix:
    """The goal of a remedy.

    Attributes:
        file: The changed model's file; None to write none.
        accuracies: Scores of engines; None without a metric.
        accuracy: Scores of reference and target.
    """

    file: Path | None = None
    accuracies: Accuracies | None = None
    accuracy: TaskAccuracy | None = None

    def scored(self, spec: EngineSpec, model: Model) -> tuple[float | None, bool | None]:
        """Return the metric of a change, and whether it will do."""
        if self.accuracies is None or self.accuracy is None:
            return None, None
        found = self.accuracies.of(spec, model)
        return (None, None) if found is None else (found.target, found.enough)
