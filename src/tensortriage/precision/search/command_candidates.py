"""Candidates that a command judges: typed models, or ones with Q/DQ pairs; and the emulation that ranks their nodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.precision.goal import PrecisionGoal
from tensortriage.precision.quantization.quantized_candidates import QuantizedStage
from tensortriage.precision.quantization.unquantized_nodes import QuantizedNodes
from tensortriage.precision.search.quantized import QUANTIZED, best_quantizer, held_out
from tensortriage.precision.search.shared_parts import Watch, emulation_of, identity_of, in_order, samples_of
from tensortriage.precision.search.switchable_model import (
    Choosable,
    Emulated,
    SwitchableModel,
    raised,
    stage_of,
)
from tensortriage.precision.tool_settings import quantizer_settings, settings_for
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.golden_source import GoldenSource
from tensortriage.runs.runner import feed_digest
from tensortriage.values.dtype import Precision


class CommandCandidates(Protocol):
    """The candidates of one model in one lower format."""

    @property
    def stage(self) -> Choosable:
        """What can be chosen."""
        ...

    @property
    def identity(self) -> str:
        """Digest of what candidates depend on besides the model and the kept nodes."""
        ...

    scaled: bool
    """Whether scales move the values into the format's range."""

    def whole(self, kept: Sequence[str]) -> tuple[str, ...]:
        """Return all nodes that compute in the higher precision, when some are kept, in topological order."""
        ...

    def model(self, kept: Sequence[str]) -> Model:
        """Return the candidate in which some nodes are kept."""
        ...

    def emulation(self, goal: PrecisionGoal, case: Case, watch: Watch) -> Emulated:
        """Return who tells what each node does (to be closed)."""
        ...

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        ...


def shown(inv: GoldenSource, precision: Precision, tell: Callable[[str], None]) -> CommandCandidates:
    """Return the candidates that a format takes; those with Q/DQ pairs are calibrated on the feeds."""
    if precision in QUANTIZED:
        return QuantizedShown(inv, precision, tell)
    return TypedShown(inv, precision)


class TypedShown:
    """Candidates of which types say what computes in what; see `CommandCandidates`."""

    identity = ""
    scaled = False

    def __init__(self, inv: GoldenSource, precision: Precision) -> None:
        self._inv = inv
        model = raised(inv.model, precision)
        self.stage: SwitchableModel = stage_of(model, precision, inv.specs(inv.question.feeds[0]), typed=True)

    def whole(self, kept: Sequence[str]) -> tuple[str, ...]:
        """See `CommandCandidates`; with what lies between them."""
        return in_order(self.stage.model, {*kept, *self.stage.islands.carriers(kept)})

    def model(self, kept: Sequence[str]) -> Model:
        """See `CommandCandidates`."""
        stage = self.stage
        return convert(stage.model, stage.precision, specs=stage.specs, kept_nodes=self.whole(kept))

    def emulation(self, goal: PrecisionGoal, case: Case, watch: Watch) -> Emulated:
        """See `CommandCandidates`."""
        inv, stage = self._inv, self.stage
        identity = identity_of(stage.model, inv.question.feeds, stage.precision, goal, str(inv.question.reference))
        return emulation_of(
            stage, samples_of(inv), goal, workspace=inv.workspace, case=case, identity=identity, watch=watch
        )

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """See `CommandCandidates`."""
        return settings_for(self.stage.model.graph, whole, self.stage.precision)


class QuantizedShown:
    """Candidates with Q/DQ pairs at all nodes but those kept; see `CommandCandidates`."""

    scaled = True

    def __init__(self, inv: GoldenSource, precision: Precision, tell: Callable[[str], None]) -> None:
        self._inv = inv
        calibrating, self._judging = held_out(samples_of(inv), tell)
        if inv.inputs_word == "random":
            tell("calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs")
        word, self._quantizer = best_quantizer(
            inv.model, precision, calibrating, self._judging, inv.workspace, progress=inv.progress, tell=tell
        )
        self.identity = digest(word, [feed_digest(sample.feed.tensors) for sample in calibrating])
        self.stage = QuantizedStage(
            inv.model, precision, inv.specs(inv.question.feeds[0]), tuple(self._quantizer.nodes)
        )

    def whole(self, kept: Sequence[str]) -> tuple[str, ...]:
        """See `CommandCandidates`."""
        return in_order(self.stage.model, kept)

    def model(self, kept: Sequence[str]) -> Model:
        """See `CommandCandidates`; with every node kept it is the float model itself."""
        return self.stage.model if set(self.stage.items) <= set(kept) else self._quantizer.quantized(kept)

    def emulation(self, goal: PrecisionGoal, case: Case, watch: Watch) -> Emulated:
        """See `CommandCandidates`."""
        whole = self._quantizer.quantized(float_weights=True)
        return QuantizedNodes(whole, self._judging, goal, workspace=self._inv.workspace)

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """See `CommandCandidates`."""
        return quantizer_settings(whole, self.stage.precision)
