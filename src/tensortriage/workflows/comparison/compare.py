"""Compare: run every participant on every feed, pair the tensors by name, measure and judge each pair.

Tensors are held for one batch of values and one feed at a time; with ``batch_bytes`` a batch is small and memory stays
bounded whatever the model. Whatever cannot be paired is an error, never a silent pass.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from tensortriage.compare.comparison import Row
from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.tolerance import check_names
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure, measure_many
from tensortriage.compare.reference_checks import is_constant, retyped
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import OddKind, oddities
from tensortriage.model.inspect.output_parts import OutputPart, output_parts, with_parts
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.feeds.trial import MOST_FOR_NOISE, feeds_that_run, say_nothing
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.capture import batches
from tensortriage.runs.outcome import OK, Outcome
from tensortriage.runs.questions.question import Question
from tensortriage.values.spec import ValueSpec
from tensortriage.workflows.common.memory_cuts import cut_to_memory
from tensortriage.workflows.common.output_selection import chosen_values
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.compared_engines import engines_of
from tensortriage.workflows.comparison.decided_outputs import DecidedOutput, decided_outputs, row_of
from tensortriage.workflows.comparison.in_blocks import can_be_cut, compare_in_blocks
from tensortriage.workflows.comparison.pairing import Gathered, check_compatible, flat, paired, same, why_unevaluated
from tensortriage.workflows.comparison.participants import Arrays, Live, Participant, Recorder
from tensortriage.workflows.comparison.reference_judge import ReferenceJudge
from tensortriage.workflows.comparison.saved_only import SavedComparison
from tensortriage.workflows.comparison.steady_reference import exact_in_place_of
from tensortriage.workflows.comparison.target_judge import TargetJudge
from tensortriage.workflows.comparison.task_scores import TaskScores

T = TypeVar("T")
_logger = logging.getLogger(__name__)


def compare(
    request: CompareRequest,
    *,
    record: Recorder | None = None,
    on_feed: Callable[[int, Feed], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> CompareResult:
    """Run, compare and judge.

    Args:
        request: The user's request.
        record: Sees every output before it is compared.
        on_feed: Sees every feed before it is run.
        say: Receives progress lines.

    Raises:
        TriageError: For bad input, and when there is nothing to compare.
    """
    if request.model is None:
        return SavedComparison(request, record).go()
    with (
        Lab(limits=request.limits, progress=say) as lab,
        contextlib.closing(_Comparing(request, lab, record, on_feed)) as work,
    ):
        whole = not request.in_blocks or not can_be_cut(request)
        cut = None if whole else cut_to_memory(work.model, request.limits.memory_bytes)
        if cut is not None:
            return compare_in_blocks(
                request,
                cut,
                compare=lambda block, recorder: compare(block, record=recorder),
                record=record,
                on_feed=on_feed,
                say=lab.progress,
            )
        found = work.go()
    ours = request.feeding.chooses and record is None and on_feed is None  # else the data are on record
    noise = work.gathered.noise if ours else ""
    return (noise and _on_other_numbers(request, next(iter(found.feeds)), noise, say)) or found


def _on_other_numbers(
    request: CompareRequest, first: str, noise: str, say: Callable[[str], None] | None
) -> CompareResult | None:
    """Compare on other made-up data than the first, which make an output noise; None where there are none."""
    for number in range(1, MOST_FOR_NOISE + 1):
        named = f"{first[:-1]}.{number}]"
        feeding = dataclasses.replace(request.feeding, named=named)
        with contextlib.suppress(UsageError):
            other = compare(dataclasses.replace(request, feeding=feeding), say=say)
            if not other.unevaluated:
                _logger.warning("made-up data on which '%s' is more than noise: --inputs '%s'", noise, named)
                return other
    return None


class _Comparing:
    """One comparison in progress."""

    def __init__(
        self,
        request: CompareRequest,
        lab: Lab,
        record: Recorder | None,
        on_feed: Callable[[int, Feed], None] | None,
    ) -> None:
        self.request = request
        self.lab = lab
        self.record = record
        self.on_feed = on_feed
        assert request.model is not None, "else saved results are compared"
        self.model = Model.load(request.model, external_data_dir=request.external_data_dir)
        live, saved = engines_of(request, self.model, lab), request.saved
        self.everyone: list[Participant] = [*live, *saved] if request.reference else [*saved[:1], *live, *saved[1:]]
        if not self.everyone:
            raise UsageError(
                "no engine to run on", slug="engine-none", cure="give --target ENGINE, e.g. --target onnxruntime"
            )
        self.reference = self.everyone[0] if request.reference or saved else None
        self.targets = self.everyone[1:] if self.reference else self.everyone
        self.outcomes: dict[str, Outcome] = {p.name: OK for p in self.everyone}
        self.gathered = Gathered(request.validate)
        self.scores = TaskScores()
        self.expected: Arrays = {}
        self.seen: dict[str, str] = {}
        self.odd: set[tuple[OddKind, str]] = set()
        self.uncontrolled: list[tuple[Participant, Feed, Arrays]] = []
        self.judge = ReferenceJudge(self.model, tolerances=request.tolerances, lab=lab)
        self.judged: set[str] = set()
        self.by = TargetJudge(request, self.model, self.reference, self.judge, lab=lab)
        self.first_outputs: tuple[Participant | None, Arrays | None] = None, None

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
            if self.request.fail_fast and self.gathered.failed:
                break
        return self._result(marked, moved)

    def _group(self, group: Sequence[str], moved: dict[str, bool] | None) -> None:
        samples = feeds(self.request.feeding, self.model)
        first = next(samples)
        self._look_at(first)
        self.lab.progress("building " + ", ".join(participant.name for participant in self.everyone))
        # Builds are mostly single-threaded, and engines share nothing: build all at once.
        with concurrent.futures.ThreadPoolExecutor(len(self.everyone)) as pool:
            list(pool.map(lambda who: self._guarded(who, lambda: who.prepare(group)), self.everyone))
        try:
            for number, feed in enumerate(itertools.chain([self._that_runs(first)], samples)):
                self._look_at(feed)
                if self.on_feed is not None and feed.name not in self.seen:
                    self.on_feed(number, feed)
                self.seen[feed.name] = feed.origin.value
                self._feed(feed, number, group, moved if number == 0 else None)
                if self.request.fail_fast and self.gathered.failed:
                    break
        finally:
            self.close()

    def _that_runs(self, feed: Feed) -> Feed:
        """Return a feed, or another made-up one where the first engine does not run on it, or gives no evidence."""
        lead = next((who for who in self.everyone if isinstance(who, Live) and self.outcomes[who.name].ok), None)
        if lead is None or not self.request.feeding.chooses:
            return feed
        with contextlib.suppress(EngineError):
            outputs = lead.outputs(feed, 0)
            own = {spec.name: outputs[spec.name] for spec in self.model.outputs if spec.name in outputs}
            if not own or not say_nothing(own):
                self.first_outputs = lead, outputs
                return feed
        try:
            (other,) = feeds_that_run(self.request.feeding, self.model, self.lab)
        except DataError:
            if self.request.validate:  # which asks for NaN
                return feed
            raise
        self.request = dataclasses.replace(self.request, feeding=FeedRequest(given=(other,)))
        return other

    def _look_at(self, feed: Feed) -> None:
        """Warn of oddities of a feed before the first run."""
        for odd in oddities([feed] if feed.name not in self.seen else (), self.model.inputs):
            if (odd.kind, odd.value) not in self.odd:
                self.odd.add((odd.kind, odd.value))
                _logger.warning("%s", odd.sentence)

    def _feed(self, feed: Feed, number: int, group: Sequence[str], moved: dict[str, bool] | None) -> None:
        reference: Arrays | None = None
        if self.reference is not None:
            seconds = self.lab.tally.run_seconds
            reference = self._outputs(self.reference, feed, number, moved)
            if reference is None:
                return
            seconds_taken = self.lab.tally.run_seconds - seconds
            self.lab.tally.reference_run_seconds = max(self.lab.tally.reference_run_seconds, seconds_taken)
        for target in self.targets:
            outputs = self._outputs(target, feed, number, moved)
            if outputs is not None and reference is not None:
                self._pair(target, feed, reference, outputs, moved)
            elif outputs is not None:
                self.gathered.check(target.name, feed.name, outputs)
        self._control(moved)
        if not self.targets and self.reference is not None and reference is not None:
            self.gathered.check(self.reference.name, feed.name, reference)

    def _outputs(
        self, participant: Participant, feed: Feed, number: int, moved: dict[str, bool] | None
    ) -> Arrays | None:
        if not self.outcomes[participant.name].ok:
            return None
        self.lab.progress(f"running {participant.name} on {feed.name}")
        outputs: Arrays | None
        if participant is self.first_outputs[0]:
            (_, outputs), self.first_outputs = self.first_outputs, (None, None)
        else:
            outputs = self._guarded(participant, lambda: participant.outputs(feed, number))
        if outputs is None:
            return None
        own = {spec.name: outputs[spec.name] for spec in self.model.outputs if spec.name in outputs}
        if moved is not None and participant.name not in moved and own:  # else a later batch holds them
            kept = {name: array.copy() for name, array in own.items()} if self.request.postprocess else own
            self.uncontrolled.append((participant, feed, kept))
        if participant is self.reference and participant.needs_judging and feed.name not in self.judged:
            self.judged.add(feed.name)
            self.lab.progress(f"judging {participant.name} by the model on {feed.name}")
            self.judge.judge(feed, participant.everything(number) or outputs, self.by.rewritten(self.model))
        if self.record is not None:
            self.record(participant.name, number, outputs)
        if self.request.metric is not None:
            if participant is self.reference:
                self.expected = outputs
            scores = self.request.metric.scores(outputs, feed, self.expected)
            self.scores.add(participant.name, feed, outputs, scores)
        return self.request.postprocess(outputs) if self.request.postprocess else outputs

    def _control(self, moved: dict[str, bool] | None) -> None:
        """Run the untouched model where it has not run yet, and return whether marking moved its outputs."""
        while moved is not None and self.uncontrolled:
            participant, feed, outputs = self.uncontrolled.pop(0)
            twin = next((other for other in self.everyone if other.name in moved and other.like(participant)), None)
            if twin is not None:
                moved[participant.name] = moved[twin.name]
                continue
            deployed = self._guarded(participant, functools.partial(participant.deployed, feed))
            if deployed is not None:
                shared = [(array, outputs[name]) for name, array in deployed.items() if name in outputs]
                moved[participant.name] = not all(same(one, other) for one, other in shared)

    def _pair(
        self, target: Participant, feed: Feed, reference: Arrays, outputs: Arrays, moved: dict[str, bool] | None
    ) -> None:
        """Pair by name, names that are missing by value, measure and judge."""
        assert self.reference is not None
        lacking: list[str] = []
        if target.knows_some:
            lacking = [name for name in reference if name not in outputs]
            reference = {name: array for name, array in reference.items() if name in outputs}
        pair = paired((self.reference.name, target.name), reference, outputs)
        outputs = pair.outputs
        decided: Mapping[str, DecidedOutput] = {}
        if not self.request.tolerances and self.request.postprocess is None:  # else outputs are compared as they are
            reference_spec = self.reference.precision_spec or PLAIN
            spec = target.precision_spec if self.request.target_model is None else None
            question = Question(model=self.model, feeds=[feed], reference=reference_spec, target=spec or reference_spec)
            decided = decided_outputs(question, self.lab, golden=reference, outputs=outputs, asked=spec is not None)
        check_compatible(pair, reference, target.name, flatten=self.request.flatten, but=decided)
        pairs = ((n, *flat(array, outputs[n])) for n, array in reference.items() if n not in decided)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # Neither engines nor metrics keep all cores busy.
            control = pool.submit(self._control, moved)
            metrics = dict(measure_many(pairs))
            control.result()
        parts = self._parts(feed, metrics)
        right, found = (with_parts({name: each[name] for name in metrics}, parts) for each in (reference, outputs))
        metrics |= {part.name: measure(right[part.name], found[part.name]) for part in parts if part.name in found}
        judged = dict(self.by.judge(target, feed, metrics, reference, outputs))
        if exact := self._exact(feed, list(reference), judged):
            self._pair(target, feed, exact.outputs(feed, 0), outputs, moved)
            return
        names = [*reference, *(part.name for part in parts if part.name in judged)]
        metrics = {name: decided[name].metrics if name in decided else metrics[name] for name in names}
        makers = {part.name: part.output for part in parts}
        other = {} if self.request.postprocess else retyped((target.model or self.model).outputs, outputs)
        rows = [
            dataclasses.replace(
                self._row(name, makers.get(name, name), figure, judged.get(name), decided.get(name)),
                retyped=other.get(name, ""),
            )
            for name, figure in metrics.items()
        ]
        self.gathered.add(target.name, feed.name, rows, [*lacking, *pair.only_target], pair.renamed)
        self.gathered.silent &= all(map(is_constant, reference.values()))
        for name, figure in ((name, metrics[name]) for name in reference):
            self.gathered.note(target.name, feed.name, name, figure.nan_target, figure.inf_target)
            if target is self.targets[0]:
                self.gathered.note(self.reference.name, feed.name, name, figure.nan_reference, figure.inf_reference)

    def _exact(self, feed: Feed, values: Sequence[str], judged: Mapping[str, Judgement]) -> Participant | None:
        """Return what takes the place of a reference that contradicts itself, where it is asked about."""
        disputed = any(each.feed == feed.name for each in self.judge.found)
        doubted = disputed or any(not each.within for each in judged.values())
        if self.request.tolerances or self.request.postprocess or not doubted:
            return None
        assert self.reference is not None
        exact = exact_in_place_of(self.reference, feed, self.lab)
        if exact is not None:
            exact.prepare(values)
            self.outcomes[exact.name] = self.outcomes.pop(self.reference.name)
            self.judge.found = [each for each in self.judge.found if each.feed != feed.name]
            self.reference = self.everyone[0] = exact
            self.by = TargetJudge(self.request, self.model, exact, self.judge, lab=self.lab)
        return exact

    def _parts(self, feed: Feed, names: Collection[str]) -> list[OutputPart]:
        """Return the parts of composed outputs, where the user gives no tolerance."""
        if self.request.tolerances or self.request.postprocess is not None:
            return []
        return [part for part in output_parts(self.model, feed.tensors) if part.output in names]

    def _row(
        self, name: str, value: str, figure: Metrics, judged: Judgement | None, decided: DecidedOutput | None
    ) -> Row:
        node = self.model.graph.producer(value)
        module = next(iter(self.model.graph.origin_labels([node.name])), "") if node else ""
        return row_of(name, node, figure, judged, decided, module)

    def _guarded(self, participant: Participant, work: Callable[[], T]) -> T | None:
        """Do a participant's work unless it failed before; a failure of its engine becomes its outcome."""
        if not self.outcomes[participant.name].ok:
            return None
        try:
            return work()
        except EngineError as error:
            self.outcomes[participant.name] = Outcome.of(error)
            return None

    def close(self) -> None:
        """Close all sessions."""
        for participant in self.everyone:
            participant.release()

    def _result(self, marked: bool, moved: Mapping[str, bool]) -> CompareResult:
        name, tally = self.reference.name if self.reference else "", self.lab.tally
        return CompareResult(
            reference=name,
            targets=tuple(target.name for target in self.targets),
            feeds=dict(self.seen),
            observation="instrumented" if marked else "deployed",
            moved=dict(moved),
            comparisons=self.gathered.comparisons(name),
            invalid=tuple(self.gathered.invalid),
            outcomes=dict(self.outcomes),
            task_metrics=self.scores.means,
            task_comparisons=self.scores.compared(name, [target.name for target in self.targets]),
            builds=tally.builds,
            builds_by_engine=tally.builds_by_engine,
            checks=tally.checks,
            build_seconds=round(tally.build_seconds, 3),
            run_seconds=round(tally.run_seconds, 3),
            commands=tuple(tally.commands),
            disagreements=tuple(self.judge.found),
            unjudged=self.judge.unjudged,
            unevaluated=why_unevaluated(self.gathered, self.lab, self.model),
        )
