"""Candidates that a command judges: typed models, or ones with Q/DQ pairs; and the emulation that ranks their nodes."""

from collections.abc import Callable, Collection, Mapping, Sequence

from tensortriage.inputs.feed import feed_digest
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.precision.goal import PrecisionGoal
from tensortriage.precision.search.quantized import QUANTIZED, best_quantizer, held_out
from tensortriage.precision.search.shared_parts import in_order, samples_of
from tensortriage.precision.selection.emulation import Emulation, of_quantizers
from tensortriage.precision.selection.switchable_model import (
    Choosable,
    SwitchableModel,
    raised,
    stage_of,
)
from tensortriage.precision.tool_settings import quantizer_settings, settings_for
from tensortriage.runs.check_cache import digest
from tensortriage.runs.golden_source import GoldenSource
from tensortriage.values.dtype import Precision


class TypedShown:
    """Candidates of which types say what computes in what.

    Attributes:
        stage: What can be chosen.
        identity: Digest of what candidates depend on besides the model and the kept nodes.
        scaled: Whether scales move the values into the format's range.
    """

    identity = ""
    scaled = False

    def __init__(self, inv: GoldenSource, precision: Precision) -> None:
        self._inv = inv
        model = raised(inv.model, precision)
        self.stage: SwitchableModel = stage_of(model, precision, inv.specs(inv.question.feeds[0]), typed=True)

    def whole(self, kept: Collection[str]) -> tuple[str, ...]:
        """Return all nodes in the higher precision when some are kept, with what lies between them, in order."""
        return in_order(self.stage.model, {*kept, *self.stage.islands.carriers(kept)})

    def model(self, kept: Collection[str]) -> Model:
        """Return the candidate in which some nodes are kept."""
        stage = self.stage
        return convert(stage.model, stage.precision, specs=stage.specs, kept_nodes=self.whole(kept))

    def emulation(self, goal: PrecisionGoal, seconds: float | None) -> Emulation:
        """Return who tells what each node does (to be closed)."""
        return self.stage.emulation(samples_of(self._inv), goal, lab=self._inv.lab, seconds=seconds)

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        return settings_for(self.stage.model.graph, whole, self.stage.precision)


class QuantizedShown:
    """Candidates with Q/DQ pairs at all nodes but those kept; attributes as of `TypedShown`."""

    scaled = True

    def __init__(self, inv: GoldenSource, precision: Precision, tell: Callable[[str], None]) -> None:
        self._inv = inv
        calibrating, self._judging = held_out(samples_of(inv), tell)
        if inv.inputs_word == "random":
            tell("calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs")
        judged_by = digest([[sample.feed.digest, feed_digest(sample.outputs)] for sample in self._judging])
        word, self._quantizer = best_quantizer(
            inv.model, precision, calibrating, self._judging, inv.lab, identity=judged_by, tell=tell
        )
        self.identity = digest(word, [sample.feed.digest for sample in calibrating])
        self.stage = Choosable(
            model=inv.model,
            precision=precision,
            specs=inv.specs(inv.question.feeds[0]),
            items=tuple(self._quantizer.nodes),
        )

    def whole(self, kept: Collection[str]) -> tuple[str, ...]:
        """Return all nodes in the higher precision when some are kept, in topological order."""
        return in_order(self.stage.model, kept)

    def model(self, kept: Collection[str]) -> Model:
        """Return the candidate in which some nodes are kept; with every node kept it is the float model itself."""
        return self.stage.model if set(self.stage.items) <= set(kept) else self._quantizer.quantized(kept)

    def emulation(self, goal: PrecisionGoal, seconds: float | None) -> Emulation:
        """Return who tells what each node does (to be closed)."""
        whole = self._quantizer.quantized(float_weights=True)
        return of_quantizers(whole, self._judging, goal, lab=self._inv.lab, seconds=seconds)

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        return quantizer_settings(whole, self.stage.precision)


CommandCandidates = TypedShown | QuantizedShown
"""The candidates of one model in one lower format, by the same words."""


def shown(inv: GoldenSource, precision: Precision, tell: Callable[[str], None]) -> CommandCandidates:
    """Return the candidates that a format takes; those with Q/DQ pairs are calibrated on the feeds."""
    if precision in QUANTIZED:
        return QuantizedShown(inv, precision, tell)
    return TypedShown(inv, precision)
