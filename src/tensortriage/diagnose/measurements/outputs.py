"""Does the target fail at all? Its deployed outputs against the reference's, judged by each output's noise floor."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import MATCH_FACTOR, error_of, ratio_of, say, say_ratio, sqnr_db
from tensortriage.compare.measured import Measured, compare_all
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.floors import floors_of
from tensortriage.diagnose.measurements.misshapen import behind_the_outputs
from tensortriage.diagnose.measurements.moved_values import moved, recognised
from tensortriage.diagnose.measurements.soundness import failed, mismatched, run_once
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.layer_rows import OutputRow
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.floors import Floors
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.capture import size_of
from tensortriage.runs.lab import Mark
from tensortriage.search.statistics.repeats import Rate

FLOOR_FEEDS = 2
"""Feeds on which the floors of the outputs are measured."""

WHOLE_BYTES = 256 << 20
"""Up to this much of tensors the floors of all layers are measured together with those of the outputs."""


class Unsound(Exception):
    """The target's outputs cannot be compared.

    Args:
        problem: Why.
        places: How the values are those of the reference in other places; empty when they are not.
        layout: Whether an output is the right one in another layout, not another output.
    """

    def __init__(self, problem: str, places: str, *, layout: bool) -> None:
        super().__init__(problem)
        self.places = places
        self.layout = layout

    @classmethod
    def because(cls, problem: str, reference: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> "Unsound":
        """Look for the reference's values in outputs that cannot be compared."""
        for name, array in reference.items():
            if name in target and target[name].shape != array.shape and (found := moved(array, target[name])):
                return cls(problem, f"output '{name}': {found.sentence}", layout=True)
        return cls(problem, recognised(reference, target), layout=False)


@dataclasses.dataclass(frozen=True, slots=True)
class FeedResult:
    """The model's outputs on one feed.

    Attributes:
        feed: The feed.
        metrics: Deployed target against reference, by output name.
        floors: Noise floors of the outputs.
        errors: Relative errors, by output name.
        within: Whether each output passes.
    """

    feed: Feed
    metrics: Mapping[str, Metrics]
    floors: Floors
    errors: Mapping[str, float]
    within: Mapping[str, bool]

    @property
    def passes(self) -> bool:
        """Whether every output passes."""
        return all(self.within.values())

    @property
    def worst(self) -> tuple[str, float, float]:
        """Name, relative error and error/floor of the output farthest above its fp32 floor."""
        name = max(
            self.errors, key=lambda n: (not self.within[n], ratio_of(self.errors[n], self.floors.fp32.get(n)) or 0.0)
        )
        return name, self.errors[name], ratio_of(self.errors[name], self.floors.fp32.get(name)) or 0.0


def compare_outputs(inv: Investigation) -> tuple[tuple[FeedResult, ...], Verdict | None]:
    """Run the deployed target on every feed; return the results, or the verdict when it could not be done."""
    since = inv.mark()
    question = f"does {inv.question.target} build and run?"
    measured: list[tuple[Feed, Mapping[str, Metrics]]] = []
    for feed in inv.question.feeds:
        try:
            measured.append((feed, deployed(inv, feed)))
        except EngineError as error:
            inv.answered(question, f"no: {error.message}", since=since, feed=feed.name)
            return (), failed(inv, error)
        except Unsound as problem:
            return (), incomparable(inv, problem, feed, since)
    repeat = {"commands": list(inv.tally.commands)} if inv.tally.commands else {}
    inv.answered(question, "yes", since=since, precision=inv.precision.value, feeds=len(measured), **repeat)
    floors = output_floors(inv)
    return tuple(judge(inv, feed, metrics, floors) for feed, metrics in measured), None


def incomparable(inv: Investigation, problem: Unsound, feed: Feed, since: Mark) -> Verdict:
    """The outputs cannot be compared as they are; where their values are the right ones in another layout, say so."""
    places = f"; {problem.places}" if problem.places else ""
    inv.answered("are the outputs comparable?", f"no: {problem}{places}", since=since, feed=feed.name)
    if problem.layout:
        return inv.verdict(
            VerdictKind.LAYOUT, 0.97, f"{problem.places}; the values are right: give it the model's layout"
        )
    if not problem.places and (verdict := behind_the_outputs(inv, feed)):
        return verdict
    return inv.verdict(VerdictKind.COMPARISON_UNSOUND, 1.0, f"{problem}{places}: nothing to compare")


def output_floors(inv: Investigation) -> Floors:
    """Return the floors of the model's outputs: the largest over the first feeds (relative floors vary little).

    Where all tensors are small together, the floors of every layer are measured at once: later steps ask for them, and
    the float64 run is the same.
    """
    outputs = [spec.name for spec in inv.model.outputs if spec.name in inv.values]
    found = []
    for feed in inv.question.feeds[:FLOOR_FEEDS]:
        golden = inv.golden(feed)
        whole = sum(size_of(golden.spec(name)) for name in golden.names()) <= WHOLE_BYTES
        values, what = (inv.values, "every layer") if whole else (outputs, "the outputs")
        found.append(floors_of(inv, inv.model, feed, values, golden=golden, specs=inv.specs(feed), what=what))
    fp32 = {name: max(floors.fp32.get(name, 0.0) for floors in found) for name in outputs}
    target = {name: max(floors.target.get(name, 0.0) for floors in found) for name in outputs}
    judged: dict[str, Metrics] = {}
    for floors in found:
        for name, figure in floors.reference.items():
            if name not in judged or error_of(figure) > error_of(judged[name]):
                judged[name] = figure
    return Floors(fp32, target, found[0].emulated, found[0].source, judged)


def deployed(inv: Investigation, feed: Feed) -> Mapping[str, Metrics]:
    """Return the figures of the target's own outputs on one feed, from its untouched model.

    Raises:
        EngineError: When the target fails.
        Unsound: When its outputs have other names, shapes or kinds than the reference's.
    """
    target = inv.question.target
    golden = inv.golden_outputs(feed)
    expected = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}

    def ask() -> Measured:
        inv.listener.progress(f"running {target} on {feed.name}")
        outputs = run_once(inv, target, inv.model, feed)
        if problem := mismatched(expected, outputs):
            raise Unsound.because(problem, expected, outputs)
        return compare_all(((name, outputs[name]) for name in expected), golden)

    key = inv.key(target, inv.model, feed, "deployed", list(expected))
    return inv.case.checks.remember(key, f"outputs of {target} on {feed.name}", Measured, ask).metrics


def judge(inv: Investigation, feed: Feed, metrics: Mapping[str, Metrics], floors: Floors) -> FeedResult:
    """Judge the outputs of one feed by the user's tolerance, else by the fp32 floor."""
    errors = {name: error_of(figure) for name, figure in metrics.items()}
    within: dict[str, bool] = {}
    for name, error in errors.items():
        if inv.question.tolerance is not None:
            within[name] = inv.question.tolerance.judge(name, metrics[name]).within
        else:
            within[name] = error <= MATCH_FACTOR * floors.fp32.get(name, 0.0)
    return FeedResult(feed, metrics, floors, errors, within)


def above_the_floor(inv: Investigation, results: tuple[FeedResult, ...]) -> bool:
    """Record whether any output of any feed fails, and return it."""
    since = inv.mark()
    worst = worst_result(results)
    name, error, ratio = worst.worst
    limit = "the tolerance given" if inv.question.tolerance is not None else f"{MATCH_FACTOR:g}x the fp32 noise floor"
    fails = not worst.passes
    failing = sum(not result.passes for result in results)
    inv.answered(
        "does it fail above the noise floor?",
        f"{'yes' if fails else 'no'}: output '{name}' has relative error {say(error)}, {say_ratio(ratio)}"
        + (f", on {failing} of {len(results)} feeds" if fails else ""),
        since=since,
        output=name,
        feed=worst.feed.name,
        relative_error=error,
        floor_ratio=ratio,
        limit=limit,
        failing_feeds=failing,
        failing_share_95=Rate(failing, len(results)).interval(0.95),
        feeds=len(results),
        floor_source=worst.floors.source,
    )
    return fails


def worst_result(results: tuple[FeedResult, ...]) -> FeedResult:
    """Return the feed that fails worst (the passing one nearest its limit when none fails)."""
    return max(results, key=lambda result: (not result.passes, result.worst[2], result.worst[1]))


def output_rows(results: tuple[FeedResult, ...], inv: Investigation) -> tuple[OutputRow, ...]:
    """Return one row per model output, from the feed on which that output is worst."""
    rows: list[OutputRow] = []
    for name in results[0].metrics if results else ():
        result = max(results, key=lambda r: (not r.within[name], r.errors[name]))
        metrics, spec = result.metrics[name], inv.golden_outputs(result.feed).spec(name)
        rows.append(
            OutputRow(
                name=name,
                dtype=spec.dtype.label if spec.dtype else "",
                shape=tuple(d for d in spec.shape or () if isinstance(d, int)),
                sqnr_db=sqnr_db(result.errors[name]),
                max_abs_error=float(metrics.max_abs_error),
                relative_rms_error=result.errors[name],
                floor=result.floors.fp32.get(name),
                within=result.within[name],
                nonfinite_target=metrics.nonfinite_mismatch,
                feed=result.feed.name,
                predicted=result.floors.target.get(name),
            )
        )
    return tuple(rows)
