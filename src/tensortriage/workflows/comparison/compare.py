"""Compare: run every participant on every feed, pair the tensors by name, measure and judge each pair.

Tensors are held for one batch of values and one feed at a time; with ``batch_bytes`` a batch is small and memory stays
bounded whatever the model. Whatever cannot be paired is an error, never a silent pass.
"""

import concurrent.futures
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.tolerance import EveryTolerance, check_names
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.compare.run_result import CompareResult, FeedComparison, Invalid
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.capture import batches
from tensortriage.runs.feeds.feed_request import feeds
from tensortriage.runs.outcome import OK, Outcome
from tensortriage.runs.runner import Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.values.spec import ValueSpec
from tensortriage.workflows.common.memory_cuts import cuts_of
from tensortriage.workflows.common.noise_floor_judge import FloorJudge
from tensortriage.workflows.common.output_selection import EVERYTHING, chosen_values
from tensortriage.workflows.comparison.compare_request import Arrays, CompareRequest, Recorder
from tensortriage.workflows.comparison.decided_outputs import DecidedOutput, decided_outputs, row_of
from tensortriage.workflows.comparison.in_blocks import can_be_cut, compare_in_blocks
from tensortriage.workflows.comparison.pairing import check_compatible, paired
from tensortriage.workflows.comparison.participants import Live, Participant, flat, numbered, same
from tensortriage.workflows.comparison.reference_judge import ReferenceJudge
from tensortriage.workflows.comparison.saved_only import SavedComparison
from tensortriage.workflows.comparison.task_scores import TaskScores

T = TypeVar("T")


def compare(
    request: CompareRequest,
    *,
    record: Recorder | None = None,
    on_feed: Callable[[int, Feed], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> CompareResult:
    """Run, compare and judge.

    Args:
        request: What to do.
        record: Sees every output before it is compared.
        on_feed: Sees every feed before it is run.
        say: Hears what is being done.

    Raises:
        TriageError: For bad input, and when there is nothing to compare.
    """
    if request.model is None:
        return SavedComparison(request, record).go()
    say = say or (lambda _: None)
    with Workspace() as workspace, contextlib.ExitStack() as closing:
        work = _Comparing(request, workspace, record, on_feed, say)
        closing.callback(work.release)
        cut = cuts_of(work.model, request.limits.memory_bytes) if request.in_blocks and can_be_cut(request) else None
        if cut is None:
            return work.go()
        return compare_in_blocks(
            request,
            work.model,
            *cut,
            compare=lambda block, recorder: compare(block, record=recorder),
            record=record,
            on_feed=on_feed,
            say=say,
        )


class _Comparing:
    """One comparison in progress."""

    def __init__(
        self,
        request: CompareRequest,
        workspace: Workspace,
        record: Recorder | None,
        on_feed: Callable[[int, Feed], None] | None,
        say: Callable[[str], None],
    ) -> None:
        self.request = request
        self.workspace = workspace
        self.record = record
        self.on_feed = on_feed
        self.say = say
        self.tally = Tally()
        assert request.model is not None, "else saved results are compared"
        self.model = Model.load(request.model, external_data_dir=request.external_data_dir)
        self.reference, self.targets = self._participants()
        self.outcomes: dict[str, Outcome] = {p.name: OK for p in self.everyone}
        self.invalid: list[Invalid] = []
        self.rows: dict[tuple[str, str], list[Row]] = {}
        self.unmatched: dict[tuple[str, str], list[str]] = {}
        self.paired: dict[tuple[str, str], dict[str, str]] = {}
        self.scores = TaskScores()
        self.seen: dict[str, str] = {}
        self.uncontrolled: list[tuple[Participant, Feed, Arrays]] = []
        self.judge = ReferenceJudge(self.model, tolerances=request.tolerances, folder=workspace.folder)
        self.judged: set[str] = set()

    @property
    def everyone(self) -> list[Participant]:
        """The reference, when there is one, and the targets."""
        return [*([self.reference] if self.reference else []), *self.targets]

    def _participants(self) -> tuple[Participant | None, list[Participant]]:
        request = self.request
        changed = self.model
        if request.target_model is not None:
            changed = Model.load(request.target_model, external_data_dir=request.external_data_dir)
        specs = [*([request.reference] if request.reference else []), *request.targets]
        live: list[Participant] = [
            Live(
                name,
                spec,
                self.model if number == 0 and request.reference else changed,
                workspace=self.workspace,
                limits=request.limits,
                warm_up=request.warm_up,
                tally=self.tally,
                some=tuple(request.outputs.mark) in EVERYTHING,
            )
            for number, (name, spec) in enumerate(numbered(specs))
        ]
        saved: list[Participant] = list(request.saved)
        if not live and not saved:
            raise UsageError(
                "no engine to run on", slug="engine-none", cure="give --target ENGINE, e.g. --target onnxruntime"
            )
        if request.reference:
            return live[0], [*live[1:], *saved]
        if saved:
            return saved[0], [*live, *saved[1:]]
        return None, live

    def go(self) -> CompareResult:
        """Run everything and gather the result."""
        values = chosen_values(self.model, self.request.outputs)
        check_names(self.request.tolerances, values, strict=self.request.strict)
        own = [spec.name for spec in self.model.outputs]
        marked = list(values) != own
        specs: Mapping[str, ValueSpec] = {}
        if self.request.batch_bytes is not None:
            first = next(feeds(self.request.feeding, self.model))
            specs = value_specs(self.model, {name: ValueSpec.of(name, array) for name, array in first.tensors.items()})
        moved: dict[str, bool] = {}
        for group in batches(values, specs, batch_bytes=self.request.batch_bytes):
            self._group(group, moved if marked else None)
            if self.request.fail_fast and self._failed():
                break
        return self._result(marked, moved)

    def _group(self, group: Sequence[str], moved: dict[str, bool] | None) -> None:
        self.say("building " + ", ".join(participant.name for participant in self.everyone))
        # Builds are mostly single-threaded, and engines share nothing: build all at once.
        with concurrent.futures.ThreadPoolExecutor(len(self.everyone)) as pool:
            list(pool.map(lambda who: self._guarded(who, lambda: who.prepare(group)), self.everyone))
        try:
            for number, feed in enumerate(feeds(self.request.feeding, self.model)):
                if self.on_feed is not None and feed.name not in self.seen:
                    self.on_feed(number, feed)
                self.seen[feed.name] = feed.origin.value
                self._feed(feed, number, group, moved if number == 0 else None)
                if self.request.fail_fast and self._failed():
                    break
        finally:
            self.release()

    def _feed(self, feed: Feed, number: int, group: Sequence[str], moved: dict[str, bool] | None) -> None:
        reference: Arrays | None = None
        if self.reference is not None:
            seconds = self.tally.run_seconds
            reference = self._outputs(self.reference, feed, number, moved)
            if reference is None:
                return
            taken = self.tally.run_seconds - seconds
            self.tally.reference_run_seconds = max(self.tally.reference_run_seconds, taken)
        for target in self.targets:
            outputs = self._outputs(target, feed, number, moved)
            if outputs is None:
                continue
            if reference is None:
                self._validate_alone(target, feed, outputs)
                continue
            self._pair(target, feed, reference, outputs, moved)
        self._control(moved)
        if not self.targets and self.reference is not None and reference is not None:
            self._validate_alone(self.reference, feed, reference)

    def _outputs(
        self, participant: Participant, feed: Feed, number: int, moved: dict[str, bool] | None
    ) -> Arrays | None:
        if not self.outcomes[participant.name].ok:
            return None
        self.say(f"running {participant.name} on {feed.name}")
        outputs: Arrays | None = self._guarded(participant, lambda: participant.outputs(feed, number))
        if outputs is None:
            return None
        own = {spec.name: outputs[spec.name] for spec in self.model.outputs if spec.name in outputs}
        if moved is not None and participant.name not in moved and own:  # else a later batch holds them
            kept = {name: array.copy() for name, array in own.items()} if self.request.postprocess else own
            self.uncontrolled.append((participant, feed, kept))
        if participant is self.reference and participant.needs_judging and feed.name not in self.judged:
            self.judged.add(feed.name)
            self.say(f"judging {participant.name} by the model on {feed.name}")
            self.judge.judge(feed, participant.everything(number) or outputs)
        if self.record is not None:
            self.record(participant.name, number, outputs)
        if self.request.metric is not None:
            self.scores.add(participant.name, feed, outputs, self.request.metric(outputs, feed.tensors))
        return self.request.postprocess(outputs) if self.request.postprocess else outputs

    def _control(self, moved: dict[str, bool] | None) -> None:
        """Run the untouched model of those that have not yet, and say whether marking moved its outputs."""
        while moved is not None and self.uncontrolled:
            participant, feed, outputs = self.uncontrolled.pop(0)
            twin = next((other for other in self.everyone if other.name in moved and other.like(participant)), None)
            if twin is not None:
                moved[participant.name] = moved[twin.name]
                continue
            deployed = self._guarded(participant, functools.partial(participant.deployed, feed))
            if deployed is not None:
                moved[participant.name] = any(
                    not same(deployed[name], outputs[name]) for name in deployed if name in outputs
                )

    def _pair(
        self, target: Participant, feed: Feed, reference: Arrays, outputs: Arrays, moved: dict[str, bool] | None
    ) -> None:
        """Pair by name, names that are missing by value, measure and judge."""
        assert self.reference is not None
        key = (target.name, feed.name)
        if target.knows_some:
            lacking = [name for name in reference if name not in outputs]
            self.unmatched.setdefault(key, []).extend(lacking)
            reference = {name: array for name, array in reference.items() if name in outputs}
        pair = paired((self.reference.name, target.name), reference, outputs)
        outputs = pair.outputs
        if pair.renamed:
            self.paired.setdefault(key, {}).update(pair.renamed)
        decided: Mapping[str, DecidedOutput] = {}
        if not self.request.tolerances and self.request.postprocess is None:  # else outputs are compared as they are
            decided = decided_outputs(
                self.model,
                feed,
                golden=reference,
                outputs=outputs,
                reference=self.reference.precision_spec or PLAIN,
                target=target.precision_spec if self.request.target_model is None else None,
                folder=self.workspace.folder,
            )
        check_compatible(pair, reference, target.name, flatten=self.request.flatten, but=decided)
        self.unmatched.setdefault(key, []).extend(pair.only_target)
        pairs = ((n, *flat(array, outputs[n])) for n, array in reference.items() if n not in decided)
        with concurrent.futures.ThreadPoolExecutor(1) as beside:  # Neither engines nor metrics keep all cores busy.
            control = beside.submit(self._control, moved)
            metrics = dict(measure_many(pairs))
            control.result()
        judged = dict(self._judge(target, feed, metrics, reference, outputs))
        metrics = {name: decided[name].metrics if name in decided else metrics[name] for name in reference}
        graph = self.model.graph
        for name, figure in metrics.items():
            node = graph.producer(name)
            module = next(iter(graph.origin_labels([node.name])), "") if node else ""
            row = row_of(name, node, figure, judged.get(name), decided.get(name), module)
            self.rows.setdefault(key, []).append(row)
            if self.request.validate:
                self._invalid(target.name, feed.name, name, figure.nan_target, figure.inf_target)
                if target is self.targets[0]:
                    self._invalid(self.reference.name, feed.name, name, figure.nan_reference, figure.inf_reference)

    def _judge(
        self, target: Participant, feed: Feed, metrics: Mapping[str, Metrics], reference: Arrays, outputs: Arrays
    ) -> Mapping[str, Judgement]:
        if not self.request.tolerances:
            spec = self.reference.precision_spec if self.reference else None
            judge = FloorJudge(
                self.model,
                reference=spec or PLAIN,
                target=target.precision_spec,
                folder=self.workspace.folder,
            )
            return judge.judge(feed, metrics, reference)
        tolerance = EveryTolerance(self.request.tolerances)
        return {name: tolerance.judge(name, figure, reference[name], outputs[name]) for name, figure in metrics.items()}

    def _validate_alone(self, participant: Participant, feed: Feed, outputs: Arrays) -> None:
        if self.request.validate:
            for name, figure in measure_many((name, array, array) for name, array in outputs.items()):
                self._invalid(participant.name, feed.name, name, figure.nan_target, figure.inf_target)

    def _invalid(self, participant: str, feed: str, output: str, nan: int, inf: int) -> None:
        if nan or inf:
            self.invalid.append(Invalid(participant, feed, output, nan, inf))

    def _guarded(self, participant: Participant, work: Callable[[], T]) -> T | None:
        """Do a participant's work unless it failed before; a failure of its engine becomes its outcome."""
        if not self.outcomes[participant.name].ok:
            return None
        try:
            return work()
        except EngineError as error:
            self.outcomes[participant.name] = Outcome.of(error)
            return None

    def _failed(self) -> bool:
        return bool(self.invalid) or any(not row.judgement.within for rows in self.rows.values() for row in rows)

    def release(self) -> None:
        """Close all sessions."""
        for participant in self.everyone:
            participant.release()

    def _result(self, marked: bool, moved: Mapping[str, bool]) -> CompareResult:
        name = self.reference.name if self.reference else ""
        comparisons = tuple(
            FeedComparison(
                feed,
                Comparison(
                    name, target, tuple(rows), tuple(self.unmatched.get(key, ())), dict(self.paired.get(key, {}))
                ),
            )
            for key, rows in self.rows.items()
            for target, feed in (key,)
        )
        return CompareResult(
            reference=name,
            targets=tuple(target.name for target in self.targets),
            feeds=dict(self.seen),
            observation="instrumented" if marked else "deployed",
            moved=dict(moved),
            comparisons=comparisons,
            invalid=tuple(self.invalid),
            outcomes=dict(self.outcomes),
            task_metrics=self.scores.means,
            task_comparisons=self.scores.compared(name, [target.name for target in self.targets]),
            builds=self.tally.builds,
            builds_by_engine=self.tally.builds_by_engine,
            checks=self.tally.checks,
            build_seconds=round(self.tally.build_seconds, 3),
            run_seconds=round(self.tally.run_seconds, 3),
            commands=tuple(self.tally.commands),
            disagreements=tuple(self.judge.found),
            unjudged=self.judge.unjudged,
        )
