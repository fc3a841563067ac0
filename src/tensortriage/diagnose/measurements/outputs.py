"""Does the target fail at all? Its deployed outputs against the reference's, judged by each output's noise floor."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.relative_error import UNEQUAL, error_of, measure_of, ratio_of
from tensortriage.compare.judgement.within import beyond_any_share, is_gone, is_lost, within_limit
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.compare.patterns.stored_type import stored_type
from tensortriage.compare.reference_checks import mismatched, retyped
from tensortriage.diagnose.measurements.decided import Decided, follow
from tensortriage.diagnose.measurements.moved_values import moved, recognised
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import watched
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.distances import Distance
from tensortriage.envelope.explanations import PREDICTED, ROUNDED
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.setting import Floors
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import OutputPart, with_parts
from tensortriage.model.model import Model
from tensortriage.runs.observation.capture import size_of
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import error_size

FLOOR_FEEDS = 2
"""Feeds on which the floors of the outputs are measured."""

WHOLE_BYTES = 256 << 20
"""Up to this much of tensors, on several feeds, the floors of all layers are measured together with the outputs'."""

EVERY_LAYER = "every layer"
"""The measured tensors, in words."""


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
            if name in target and (told := _in_another_type(array, target[name])):
                return cls(problem, f"of '{name}', {told}", layout=False)
        return cls(problem, recognised(reference, target), layout=False)


def _in_another_type(right: np.ndarray, made: np.ndarray) -> str:
    """Return how numbers, or their bytes, are right in another type, and the cure; empty where they are not."""
    if found := stored_type(right, made):
        return (
            f"the bytes are the right numbers in {found[0]}, read as {found[1]}; cure: read that output as {found[0]}, "
            "the type that the engine writes"
        )
    if (right.dtype.kind, made.dtype.kind) == ("f", "i") and right.size and np.abs(made - right).max() <= 1.0:
        return f"the numbers are cut to whole ones; cure: keep them in {DType.from_numpy(right.dtype).label}"
    return ""


@frozen_dataclass
class FeedResult:
    """The model's outputs on one feed.

    Attributes:
        metrics: Deployed target against reference, by output name.
        floors: Noise floors of the outputs.
        errors: Relative errors, by output name.
        within: Whether each output passes.
        decided: The decision, for outputs that an ArgMax, a TopK or a suppression of boxes decides. Their figures then
            compare with a reference that took the target's decisions, where these are valid.
        parts: Figures of the parts that outputs are composed of, by name, which are judged as outputs are.
        retyped: Outputs of another type than the model declares, with both types in words.
    """

    feed: Feed
    metrics: Mapping[str, Metrics]
    floors: Floors
    errors: Mapping[str, float]
    within: Mapping[str, bool]
    decided: Decided | None = None
    parts: Mapping[str, Metrics] = dataclasses.field(default_factory=dict)
    retyped: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def figures(self) -> Mapping[str, Metrics]:
        """The figures of outputs and of their parts."""
        return {**self.metrics, **self.parts}

    def measure(self, name: str) -> str:
        """Return the error of an output in words."""
        if self.decided is not None and name in self.decided.behind:
            _, worst = self.decided.worst(name)
            if worst.mismatches or (self.metrics[name].exact and not self.metrics[name].mismatches):
                return worst.measure
        return measure_of(self.figures[name])

    def in_words(self, name: str, noise: str = "rounding") -> str:
        """Return how far an output is from the reference, as the rest of a sentence that begins with the output.

        Args:
            name: The output.
            noise: The cause of errors in scores, e.g. ``bf16's rounding``.
        """
        words = f"is off by {error_size(self.errors[name])}"
        if self.measure(name) == UNEQUAL:
            figure = self.figures[name]
            words = f"has {figure.mismatches} of {figure.count} elements unequal"
        if self.decided is None or name not in self.decided.behind:
            return words
        value, worst = self.decided.worst(name)
        ranked = worst.in_words(f"{noise} of the scores")
        if value == name or (self.metrics[name].exact and not self.metrics[name].mismatches):
            return f"is decided by scores: {ranked}"
        if worst.mismatches:
            return f"follows from '{value}': {ranked}"
        return f"{words}" + (f" given '{value}', of which {ranked}" if worst.ties else "")

    @property
    def is_equal(self) -> bool:
        """Whether every number of every output is the reference's."""
        return not any(figure.mismatches for figure in self.metrics.values())

    @property
    def passes(self) -> bool:
        """Whether every output passes, and every part of one."""
        return all(self.within.values())

    @property
    def lost(self) -> bool:
        """Whether half of the signal of an output is gone."""
        return any(is_gone(figure, self.errors[name]) for name, figure in self.figures.items())

    @property
    def failing(self) -> list[str]:
        """The outputs that do not pass as a whole."""
        return [name for name in self.metrics if not self.within[name]]

    def worst_output(self, *, whole: bool = False) -> tuple[str, float, float]:
        """Return name, relative error and error/floor of the output farthest above its fp32 floor, a lost one first.

        Args:
            whole: Whether parts of outputs are left out.
        """
        left = {name: self.errors[name] for name in (self.metrics if whole else self.errors)}
        name = max(
            left,
            key=lambda n: (not self.within[n], is_lost(left[n]), ratio_of(left[n], self.floors.fp32.get(n)) or 0.0),
        )
        return name, self.errors[name], ratio_of(self.errors[name], self.floors.fp32.get(name)) or 0.0


def output_floors(inv: Investigation) -> Floors:
    """Return the floors of the model's outputs: the largest over the first feeds (relative floors vary little).

    In a format whose error is predicted the layers always follow later, and the evaluations are the same: the floors of
    every layer are measured at once on a single feed, and on several where all tensors are small together. In fp32
    nothing else is measured on a target that agrees.
    """
    outputs = judged_outputs(inv)
    found: list[Floors] = []
    for feed in inv.question.feeds[:FLOOR_FEEDS]:
        golden, specs = inv.golden.outputs(feed), inv.golden.foreseen_specs(feed)
        if not found and inv.floors_ahead is not None and (floors := inv.floors_ahead(golden)) is not None:
            found.append(floors)
            continue
        values, what = measured_with(inv, specs)
        with seeing(inv, feed, values, what) as seen:
            setting = inv.setting(feed)
            judged = setting.of_reference(golden, outputs)
            floors = floors_of(setting, values, judged=judged, specs=specs, seen=seen, what=what)
        found.append(floors)
    parts = parts_of(inv, inv.question.feeds[0])
    outputs += [part.name for part in parts if all(part.name in floors.fp32 for floors in found)]
    fp32 = {name: max(floors.fp32.get(name, 0.0) for floors in found) for name in outputs}
    target = {name: max(floors.target.get(name, 0.0) for floors in found) for name in outputs}
    figures: dict[str, Distance] = {}
    for floors in found:
        for name, figure in floors.reference.items():
            if name not in figures or error_of(figure) > error_of(figures[name]):
                figures[name] = figure
    signal = {name: max(floors.signal.get(name, 0.0) for floors in found) for name in outputs}
    return Floors(fp32, target, found[0].emulated, found[0].source, figures, signal)


def parts_of(inv: Investigation, feed: Feed) -> Sequence[OutputPart]:
    """Return the parts that outputs are composed of, where the user gives no tolerance of his own."""
    return inv.setting(feed).parts if inv.question.tolerance is None else ()


def judged_outputs(inv: Investigation) -> list[str]:
    """Return the outputs of the model that have floors."""
    return [spec.name for spec in inv.model.outputs if spec.name in inv.question.values]


def measured_with(inv: Investigation, specs: Mapping[str, ValueSpec]) -> tuple[list[str], str]:
    """Return the values whose floors are measured with those of the outputs, and their meaning; see `output_floors`."""
    small = len(inv.question.feeds) == 1 or sum(size_of(specs.get(n)) for n in inv.question.values) <= WHOLE_BYTES
    if inv.precision in PREDICTED and small:
        return list(inv.question.values), EVERY_LAYER
    return judged_outputs(inv), "the outputs"


@contextlib.contextmanager
def seeing(
    inv: Investigation, feed: Feed, values: Sequence[str], what: str
) -> Iterator[Callable[[str, np.ndarray], None] | None]:
    """Return a listener to evaluated values: values beyond the format are found where all of them are evaluated."""
    if inv.precision not in ROUNDED or what != EVERY_LAYER:
        yield None
        return
    with watched(inv, feed, values) as seen:
        yield seen


@frozen_dataclass
class OutputFigures:
    """The figures of one run's outputs.

    Attributes:
        metrics: Against the reference's, by name.
        decided: The decisions and their judgement, when outputs depend on decisions.
        judged: The user's tolerance's judgement of the tensors; empty without one.
        parts: Figures of the parts that outputs are composed of, by name.
        retyped: Outputs of another type than the model declares, with both types in words.
    """

    metrics: Mapping[str, Metrics]
    decided: Decided | None = None
    judged: Mapping[str, Judgement] = dataclasses.field(default_factory=dict)
    parts: Mapping[str, Metrics] = dataclasses.field(default_factory=dict)
    retyped: Mapping[str, str] = dataclasses.field(default_factory=dict)


def deployed(inv: Investigation, feed: Feed) -> OutputFigures:
    """Return the figures of the target's own outputs on one feed, from its untouched model.

    Raises:
        EngineError: When the target fails.
        Unsound: When its outputs have other names, shapes or kinds than the reference's.
    """
    return measured_outputs(inv, feed, inv.deployed(feed))


def measured_outputs(
    inv: Investigation,
    feed: Feed,
    outputs: Mapping[str, np.ndarray],
    *,
    spec: EngineSpec | None = None,
    model: Model | None = None,
) -> OutputFigures:
    """Return the figures of outputs on one feed; by decisions where they depend on some and no tolerance was given.

    Args:
        inv: The investigation.
        feed: The feed.
        outputs: The outputs.
        spec: The engine that computed it; None for the target.
        model: The model it ran; None for the one that is investigated.

    Raises:
        Unsound: When the outputs have other names, shapes or kinds than the reference's.
    """
    store = inv.golden.outputs(feed)
    golden = {spec.name: np.asarray(store[spec.name]) for spec in inv.model.outputs if spec.name in store}
    decided = None
    if inv.question.tolerance is None:
        decided = follow(
            inv, feed, golden=golden, outputs=outputs, ask=(spec or inv.question.target, model or inv.model)
        )
    followed = {} if decided is None else decided.metrics
    expected = {name: array for name, array in golden.items() if name not in followed}
    if problem := mismatched(expected, outputs):
        raise Unsound.because(problem, expected, outputs)
    alike = [name for name, array in golden.items() if array.shape == outputs[name].shape]
    found = compare_all(((name, outputs[name]) for name in alike), store, tolerances=inv.question.tolerances)
    parts = figures_of_parts({n: golden[n] for n in alike if n not in followed}, outputs, parts_of(inv, feed))
    figures = {n: found.metrics.get(n) or followed[n] for n in golden}
    other = retyped((model or inv.question.target_model or inv.model).outputs, outputs)
    return OutputFigures(figures, decided, found.judged, parts, other)


def figures_of_parts(
    golden: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray], parts: Sequence[OutputPart]
) -> dict[str, Metrics]:
    """Return the figures of the parts of given outputs, which have the reference's shapes."""
    right, found = (with_parts({name: each[name] for name in golden}, parts) for each in (golden, outputs))
    return {part.name: measure(right[part.name], found[part.name]) for part in parts if part.name in right}


def judge(inv: Investigation, feed: Feed, measured: OutputFigures, floors: Floors) -> FeedResult:
    """Judge the outputs of one feed by the user's tolerance, else by the fp32 floor."""
    metrics, decided = dict(measured.metrics), measured.decided
    if decided is not None:
        metrics |= {name: figure for name, figure in decided.metrics.items() if decided.valid(name, rounded=True)}
        floors = with_decided(floors, decided)
    parts = {name: figure for name, figure in measured.parts.items() if name in floors.fp32}
    figures = {**metrics, **parts}
    errors = {name: error_of(figure) for name, figure in figures.items()}
    within: dict[str, bool] = {}
    for name, error in errors.items():
        if inv.question.tolerance is not None:
            within[name] = measured.judged[name].within
        else:
            limit = floors.in_fp32(name)
            within[name] = within_limit(error, limit.error) and not beyond_any_share(figures[name], limit.error)
            within[name] |= limit.drowns(figures[name])
        if decided is not None and name in decided.behind:
            within[name] &= decided.valid(name)
            errors[name] = max(error, *(decided.fp32[value].share for value in decided.behind[name]))
    return FeedResult(feed, metrics, floors, errors, within, decided, parts, measured.retyped)


def noise_of(inv: Investigation) -> str:
    """Return the causes of different scores in a healthy run of the target, in words."""
    return f"{inv.precision.value}'s rounding"


def with_decided(floors: Floors, decided: Decided) -> Floors:
    """Return floors, with those of decided outputs replaced by their floors for given decisions."""
    mine = decided.floors
    fp32 = {**floors.fp32, **{name: mine.fp32[name] for name in decided.behind if name in mine.fp32}}
    target = {**floors.target, **{name: mine.target[name] for name in decided.behind if name in mine.target}}
    judged = {**floors.reference, **{n: mine.reference[n] for n in decided.behind if n in mine.reference}}
    return dataclasses.replace(floors, fp32=fp32, target=target, reference=judged)


def worst_result(results: tuple[FeedResult, ...]) -> FeedResult:
    """Return the feed that fails worst (the passing one nearest its limit when none fails)."""
    return max(results, key=lambda result: (not result.passes, result.worst_output()[2], result.worst_output()[1]))
