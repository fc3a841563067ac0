"""The result of comparing several participants on several feeds, as plain data that any renderer can show."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tensortriage.compare.comparison import Comparison
from tensortriage.compare.cuts import Cuts
from tensortriage.compare.task_metric import TaskComparison
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.outcome import Outcome
from tensortriage.values.result import Result, record
from tensortriage.values.text import count

RUN_FORMAT = "tensortriage.run/1"


@frozen_dataclass
class Invalid:
    """NaN or Inf in an output."""

    participant: str
    feed: str
    output: str
    nan: int
    inf: int


@frozen_dataclass
class FeedComparison:
    """One target against the reference on one feed."""

    feed: str
    comparison: Comparison


@frozen_dataclass
class Disagreement:
    """A value of the reference that differs from the model's exact result on a feed.

    Attributes:
        feed: Name of the feed.
        value: Name of the value.
        node: The node that makes it.
        op_type: Operator of the node.
        error: Relative RMS error against the model evaluated as its types prescribe; inf for another shape.
        limit: The largest healthy error there; the user's tolerance where one was given.
    """

    feed: str
    value: str
    node: str
    op_type: str
    error: float
    limit: str


@frozen_dataclass(repr=False)
class CompareResult(Result):
    """Result of a comparison.

    Attributes:
        reference: Name of the participant assumed to be right; empty when nothing was compared.
        targets: Names of the others.
        feeds: Feed name to ``real`` or ``random``.
        observation: ``deployed``, or ``instrumented`` when other tensors than the model's outputs were captured.
        moved: Participant to whether instrumenting changed the model's own outputs on the first feed.
        comparisons: One per target and feed.
        invalid: NaN and Inf found, when validation was requested.
        task_metrics: Participant to the mean of the task metric over the feeds.
        task_comparisons: Task metric of each target against the reference, sample by sample.
        outcomes: Participant to how its builds and runs ended.
        builds: Models compiled.
        builds_by_engine: Models compiled, by engine.
        checks: Runs made.
        build_seconds: Wall time in builds.
        run_seconds: Wall time in runs.
        commands: Command lines of the vendors' own tools that repeat the builds (trtexec).
        disagreements: Values of the reference that differ from the model's exact results, in topological order by feed.
        unjudged: Why the reference could not be judged by the model; empty when it was, or did not have to be.
        unevaluated: Why no limit can be set, where tensors are within limits that acquit nobody: the model cannot be
            evaluated, or healthy engines differ too much; empty when all limits do.
        cuts: How the model was cut into blocks, because it did not fit into memory; None when it was run as a whole.
    """

    reference: str
    targets: tuple[str, ...]
    feeds: Mapping[str, str]
    observation: str
    moved: Mapping[str, bool]
    comparisons: tuple[FeedComparison, ...]
    invalid: tuple[Invalid, ...]
    task_metrics: Mapping[str, float]
    outcomes: Mapping[str, Outcome]
    builds: int = 0
    checks: int = 0
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    commands: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    unjudged: str = ""
    unevaluated: str = ""
    cuts: Cuts | None = None
    task_comparisons: tuple[TaskComparison, ...] = ()
    builds_by_engine: Mapping[str, int] = dataclasses.field(default_factory=dict)
    format: str = RUN_FORMAT

    def __post_init__(self) -> None:
        rows = [row for item in self.comparisons for row in item.comparison.rows]
        if rows and not self.unevaluated and not any(row.metrics.count for row in rows):
            raise DataError(
                "every compared tensor is empty on every feed, so that agreement would prove nothing",
                slug="nothing-compared",
                cure="give inputs for which the model computes something",
            )

    @property
    def word(self) -> str:
        """Whether it passed."""
        return {0: "passed", 1: "failed", 4: "cannot be judged"}[self.exit_code]

    @property
    def in_short(self) -> str:
        """Whether it passed, and how many tensors are beyond their limits."""
        rows = [row for item in self.comparisons for row in item.comparison.rows]
        beyond = sum(not row.judgement.within for row in rows)
        compared = f"{beyond} of {count(len(rows), 'tensor')} beyond the limit"
        return f"{self.word}: {compared}, on {', '.join(self.targets) or '-'}"

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """A row for each compared tensor of each feed and target, with its metrics."""
        return [
            {
                "target": item.comparison.target, "feed": item.feed, "value": row.value, "node": row.node,
                "op_type": row.op_type, "within": row.judgement.within, "ratio": row.judgement.ratio,
                "limit": row.judgement.limit,
                **{name: value for name, value in record(row.metrics).items() if not isinstance(value, (list, dict))},
            }
            for item in self.comparisons
            for row in item.comparison.rows
        ]  # fmt: skip

    @property
    def passed(self) -> bool:
        """Whether everything ran, every comparison is within its limit, nothing is invalid, no metric is NaN."""
        if any(math.isnan(mean) for mean in self.task_metrics.values()):
            return False
        rows_within = all(row.judgement.within for item in self.comparisons for row in item.comparison.rows)
        return (
            rows_within
            and not self.invalid
            and not self.disagreements
            and all(outcome.ok for outcome in self.outcomes.values())
        )

    @property
    def exit_code(self) -> int:
        """Exit code of ``triage run``: 0 passed, 1 failed, 4 passed but no limit could be set."""
        return 1 if not self.passed else 4 if self.unevaluated else 0
