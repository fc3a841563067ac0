"""The findings of the ladder so far, and their rendering as rows for files and reports."""

import dataclasses
import math
from collections.abc import Mapping
from typing import TypedDict, Unpack

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.diagnose.measurements.local_errors.injection import Influence
from tensortriage.diagnose.measurements.local_errors.local import Local
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import Excess
from tensortriage.diagnose.measurements.outputs import FeedResult, worst_result
from tensortriage.diagnose.state.configuration import Configuration
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.layer_rows import LayerRow
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, ShapeRow
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.setting import Floors
from tensortriage.envelope.unrounded_match import UnroundedMatch
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.lint import finding as lint
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.analyses.ranges import Ranges


@frozen_dataclass
class Calibrated:
    """A quantized model with better quantizers.

    Attributes:
        output: The output that was worst.
        before: Its relative error against the original model's, before the change.
        after: The same afterwards, on the reference.
        kind: Name of the remedy.
        words: The change, in words.
    """

    model: Model
    output: str
    before: float
    after: float
    kind: str = "calibrate"
    words: str = "calibrated on these inputs"


@frozen_dataclass
class WrongPart:
    """Nodes of the exported model that compute something else than its PyTorch network.

    Attributes:
        feed: The inputs on which the difference shows.
        values: The network's values on that feed, with the results of these nodes and all their operands.
        value: The wrong result.
        label: Module and line of the network.
        reason: The mistake of the nodes, as a clause.
    """

    nodes: tuple[str, ...]
    feed: Feed
    values: Mapping[str, np.ndarray]
    value: str
    label: str
    reason: str


@frozen_dataclass
class SoundQuantization:
    """A quantized model whose quantizers fit the values they quantize: the remaining error is the cost of the bits.

    Attributes:
        output: The output that differs most from the original's, on the reference.
        error: Its relative error.
        fit: Fit of the quantizers, as a clause.
        lost: Loss and its place, as a clause, where a tenth of the signal or more is lost; else empty.
        culprits: The ops that cost most then.
        cure: Commands that recover part of it.
    """

    output: str
    error: float
    fit: str
    lost: str = ""
    culprits: tuple[Culprit, ...] = ()
    cure: tuple[str, ...] = ()


@frozen_dataclass
class TypedNetwork:
    """The reference's network with other types, which do not explain the target's error.

    Attributes:
        share: Number of nodes by type, e.g. ``fp16 in 12 of 14 nodes``.
        output: The output that is farthest off; empty when the outputs could not be compared.
        error: Its relative error.
    """

    share: str
    output: str = ""
    error: float = 0.0


class Findings(TypedDict, total=False):
    """Additions of a rung to the evidence: fields of `Evidence`, described there."""

    model_diff: Correspondence | None
    results: tuple[FeedResult, ...]
    floors: Floors | None
    excess: tuple[Excess, ...]
    ranges: Ranges
    unrounded_match: UnroundedMatch | None
    quantization: SoundQuantization | None
    exact_reference: str
    shown_format: str
    two_targets: str
    same_network: bool
    unexplained: TypedNetwork | None
    calibrated: Calibrated | None
    in_context: Mapping[str, Metrics] | None
    in_context_moved: tuple[str, ...]
    in_context_judged: Mapping[str, Judgement]
    rounded: Conclusion | None
    explained: Mapping[str, tuple[str, ...]]
    local: Local | None
    influence: Influence | None
    wrong_together: tuple[Wired, ...]
    configuration: Configuration | None
    wrong_in_fp32: bool
    moved: Mapping[str, PatternFinding]
    kept: tuple[str, ...]
    shapes: tuple[ShapeRow, ...]
    wrong_part: WrongPart | None
    in_training: tuple[lint.LintFinding, ...]
    builds_compared: int
    builds_fail: bool
    builds_choose: tuple[Explanation, ...]
    unasked: tuple[str, ...]
    concluded: Conclusion | None


@frozen_dataclass
class Evidence:
    """The findings of all rungs so far; the defaults hold before the first one.

    Attributes:
        model_diff: The target's model matched with the reference's; None when they are one.
        results: Deployed outputs on every feed.
        floors: In-context floors of every value on the worst feed.
        excess: Values the format cannot hold.
        ranges: Values of the first feed's tensors that formats cannot hold.
        calibrated: The target's model with quantizers that fit, or suit its kernels, where its own do not.
        unrounded_match: The target's file compared with the network that it may represent; None when it is not rounded.
        quantization: Cost of the target's model as a sound quantization of the reference's; None when it is none.
        in_context: Figures of every value of the instrumented target.
        in_context_moved: Outputs that marking every value changed.
        in_context_judged: Judgements of its outputs by the user's tolerance; empty without one.
        rounded: The conclusion that rounding explains the outputs, not the inner values; valid unless an op is blamed.
        explained: Outputs that stages of the judge's walk explain, with their rows.
        local: Local errors.
        influence: Influence of the suspects.
        same_network: Whether the target's model is known to be the reference's in another number format.
        unexplained: The target's error that its types do not explain; None when they do.
        wrong_together: Pieces around a function that no freedom explains, though each of their ops is right.
        configuration: Options of the target that work, and those that break it.
        wrong_in_fp32: Whether the target is wrong in fp32 throughout as well.
        moved: Failing outputs that hold the right values in another order, with the order.
        kept: Nodes that bring the model back into the format's range when they stay in fp32.
        shapes: Results at each shape of a sweep.
        wrong_part: The part of the exported model that differs from its network; None where none is known.
        in_training: Nodes of the reference's model that are in training mode.
        exact_reference: Why float64 took the reference's place, as a clause; empty where it did not.
        shown_format: The format that the outputs show though none was asked for, as a clause; else empty.
        two_targets: Changes between two targets, and the one outside the envelope; empty without a second target.
        builds_compared: Builds of the deployed model whose outputs were compared.
        builds_fail: Whether every one of them fails.
        builds_choose: Choices of only part of these builds, where they make all of them healthy.
        unasked: Questions about rows of the batch that were left out, each with its reason.
        concluded: The ladder's verdict, for questions that follow it.
    """

    model_diff: Correspondence | None = None
    results: tuple[FeedResult, ...] = ()
    floors: Floors | None = None
    excess: tuple[Excess, ...] = ()
    ranges: Ranges = dataclasses.field(default_factory=Ranges)
    unrounded_match: UnroundedMatch | None = None
    quantization: SoundQuantization | None = None
    exact_reference: str = ""
    shown_format: str = ""
    two_targets: str = ""
    same_network: bool = False
    unexplained: TypedNetwork | None = None
    calibrated: Calibrated | None = None
    in_context: Mapping[str, Metrics] | None = None
    in_context_moved: tuple[str, ...] = ()
    in_context_judged: Mapping[str, Judgement] = dataclasses.field(default_factory=dict)
    rounded: Conclusion | None = None
    explained: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    local: Local | None = None
    influence: Influence | None = None
    wrong_together: tuple[Wired, ...] = ()
    configuration: Configuration | None = None
    wrong_in_fp32: bool = False
    moved: Mapping[str, PatternFinding] = dataclasses.field(default_factory=dict)
    kept: tuple[str, ...] = ()
    shapes: tuple[ShapeRow, ...] = ()
    wrong_part: WrongPart | None = None
    in_training: tuple[lint.LintFinding, ...] = ()
    builds_compared: int = 1
    builds_fail: bool = False
    builds_choose: tuple[Explanation, ...] = ()
    unasked: tuple[str, ...] = ()
    concluded: Conclusion | None = None

    def with_(self, **findings: Unpack[Findings]) -> "Evidence":
        """Return the evidence with further findings."""
        return dataclasses.replace(self, **findings)

    @property
    def worst_feed(self) -> FeedResult:
        """The outputs on the feed that fails worst."""
        return worst_result(self.results)

    @property
    def feed(self) -> Feed:
        """The feed under investigation."""
        return self.worst_feed.feed

    def error(self, value: str) -> float | None:
        """Return the relative error of a value in the target's own full run; None when it was not looked at."""
        figure = (self.in_context or {}).get(value)
        return error_of(figure) if figure else None

    def layer_rows(self, inv: Investigation) -> tuple[LayerRow, ...]:
        """Return one row per captured value; empty without a layer-wise run."""
        if self.in_context is None and self.local is None and self.floors is None:
            return ()
        rows = []
        looked_into = self.in_context is not None or self.local is not None
        specs, graph = (
            inv.golden.specs(self.feed) if looked_into else inv.golden.foreseen_specs(self.feed),
            inv.model.graph,
        )
        notes = {value: freedom.words for value, freedom in (self.local.chosen if self.local else {}).items()}
        notes |= {item.value: f"exceeds {inv.precision.value}" for item in self.excess}
        for order, value in enumerate(inv.question.values):
            node, spec = graph.producer(value), specs.get(value)
            if spec is None or node is None:
                continue
            seen = (self.in_context or {}).get(value)
            origin = graph.origin(node.name)
            local = self.local.error(value) if self.local else None
            rows.append(
                LayerRow(
                    value=value,
                    node=node.name,
                    op_type=node.op_type,
                    scope=origin.module,
                    source=", ".join(filter(None, (origin.module_class, origin.source))),
                    order=order,
                    dtype=spec.dtype.label if spec.dtype else "",
                    shape=spec.sizes,
                    in_context_error=self.error(value),
                    floor=self.floors.target.get(value) if self.floors else None,
                    local_error=local,
                    local_floor=self.local.floors.target.get(value) if self.local else None,
                    floor_ratio=self.local.floor_ratio(value) if self.local else None,
                    influence=self.influence.alone.get(value) if self.influence else None,
                    max_abs_reference=finite(seen.reference_max_abs) if seen else None,
                    max_abs_target=finite(seen.target_max_abs) if seen else None,
                    nonfinite_target=seen.nonfinite_mismatch if seen else 0,
                    note=notes.get(value, ""),
                )
            )
        return tuple(rows)


def finite(number: float) -> float | None:
    """Return a finite number, or None."""
    return float(number) if math.isfinite(number) else None
